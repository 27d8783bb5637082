"""A control group for one run: its limits hold for all processes of the run, and count no others (cgroups(7))."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

BASE = Path("/sys/fs/cgroup")
_LIMITS = {"pids": ("pids.max", "pids.max"), "memory": ("memory.limit_in_bytes", "memory.max")}  # files in version 1, 2
_KILLED = "memory.oom_control", "memory.events"  # files in version 1 and 2 that count the processes killed for memory
_FIRST_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO
_TRIES = 50  # attempts to remove a group while its last processes exit
_PATIENCE = 2.0  # seconds for the user's service manager to make a group


class Cgroup(NamedTuple):
    """`folders` are the group's: one for each controller in version 1, a single one in version 2."""

    folders: tuple[Path, ...]

    def is_out_of_memory(self) -> bool:
        """Whether the system killed a process of the group because its memory ran out."""
        for file in (folder / name for folder in self.folders for name in _KILLED):
            with contextlib.suppress(OSError):
                if any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in file.read_text().splitlines()):
                    return True
        return False

    def remove(self) -> None:
        """Kills the group's processes, and removes it."""
        for folder in self.folders:
            for _ in range(_TRIES):
                for pid in _pids(folder):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:  # the service manager removes its groups when they are empty
                    break
                except OSError:
                    time.sleep(0.01)


def grouped(pid: int, processes: int, memory: int) -> Cgroup | None:
    """Puts the process, and all that it starts from now on, into a new group with these limits. None if this user can
    make no group here: neither in a folder of the system, nor by the user's service manager."""
    return _made(pid, processes, memory) or _by_service_manager(pid, processes, memory)


def _made(pid: int, processes: int, memory: int) -> Cgroup | None:
    """The kernel takes some milliseconds to move the process."""
    folders: list[Path] = []
    name, limits = f"navigator-{os.urandom(8).hex()}", {"pids": processes, "memory": memory}
    try:
        for version, parent, controllers in _parents():
            folder = parent / name
            folder.mkdir()
            folders.append(folder)
            for controller in controllers:
                (folder / _LIMITS[controller][version - 1]).write_text(str(limits[controller]))
            (folder / "cgroup.procs").write_text(str(pid))
    except OSError:
        for folder in folders:  # the process must outlive this
            with contextlib.suppress(OSError):
                (folder.parent / "cgroup.procs").write_text(str(pid))
            with contextlib.suppress(OSError):
                folder.rmdir()
        return None
    return Cgroup(tuple(folders)) if folders else None


def _parents() -> Iterator[tuple[int, Path, tuple[str, ...]]]:
    """Version, folder and controllers of each parent of the new group. In version 2 it is the nearest folder above this
    process that hands out the controllers, if this user may move processes in it."""
    own = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    if not _is_version_2():
        for name in _LIMITS:
            folder = BASE / name / own.get(name, "/").lstrip("/")
            if folder.is_dir():
                yield 1, folder, (name,)
        return
    current = BASE / own.get("", "/").lstrip("/")
    for folder in (current, *current.parents):
        if not folder.is_relative_to(BASE) or not os.access(folder / "cgroup.procs", os.W_OK):
            return
        handed_out = (folder / "cgroup.subtree_control").read_text().split()
        if "pids" in handed_out:
            yield 2, folder, tuple(name for name in _LIMITS if name in handed_out)
            return


def _by_service_manager(pid: int, processes: int, memory: int) -> Cgroup | None:
    """What `systemd-run --user --scope` does, but for a process that exists already (org.freedesktop.systemd1(5)): so
    the process starts meanwhile, and sees none of the variables that lead to the manager."""
    busctl = shutil.which("busctl")
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    is_ours = os.access(f"{runtime}/bus", os.R_OK | os.W_OK)  # after `su` the variable may name another user's folder
    if busctl is None or not is_ours or not _is_version_2() or not _is_first_namespace():
        return None
    name = f"navigator-{os.urandom(8).hex()}.scope"
    manager = "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"
    limits = "TasksMax", "t", str(processes), "MemoryMax", "t", str(memory)
    argv = [busctl, "--user", "--quiet", "call", *manager, "StartTransientUnit", "ssa(sv)a(sa(sv))", name, "fail"]
    argv += ["4", "PIDs", "au", "1", str(pid), *limits, "CollectMode", "s", "inactive-or-failed", "0"]
    try:
        subprocess.run(
            argv,
            env={**os.environ, "XDG_RUNTIME_DIR": runtime},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=True,
        )
        folder = _when(lambda: _folder_of(pid, name))
        if folder is not None and (folder / "pids.max").read_text() == f"{processes}\n":
            return Cgroup((folder,))
    except (OSError, subprocess.SubprocessError):
        pass
    return None


def _when(look: Callable[[], Path | None]) -> Path | None:
    end = time.monotonic() + _PATIENCE
    while (found := look()) is None and time.monotonic() < end:
        time.sleep(0.002)
    return found


def _folder_of(pid: int, name: str) -> Path | None:
    """The folder of the process's group, if that is called `name`."""
    path = Path(f"/proc/{pid}/cgroup").read_text().rpartition("0::/")[2].strip()
    return BASE / path if path.endswith(f"/{name}") else None


def _is_version_2() -> bool:
    return (BASE / "cgroup.controllers").is_file()


def _is_first_namespace() -> bool:
    """Whether process ids here are those of the whole machine: a container's mean other processes to the manager."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino == _FIRST_NAMESPACE  # noqa: PTH116 - a link of the system
    except OSError:
        return False


def _pids(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text().split()]
    except OSError:
        return []
