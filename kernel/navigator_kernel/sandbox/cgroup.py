"""A control group for one run as root, whose processes resource limits do not count (cgroups(7), version 1 and 2)."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

BASE = Path("/sys/fs/cgroup")
_LIMITS = {"pids": ("pids.max", "pids.max"), "memory": ("memory.limit_in_bytes", "memory.max")}  # files in version 1, 2
_TRIES = 50  # attempts to remove a group while its last processes exit


class Cgroup(NamedTuple):
    """`folders` are the group's: one for each controller in version 1, a single one in version 2."""

    folders: tuple[Path, ...]

    def take(self, pid: int) -> None:
        """Adds the process, and all that it starts from now on, to the group. The kernel takes some milliseconds."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(pid))

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
                except OSError:
                    time.sleep(0.01)


def made(processes: int, memory: int) -> Cgroup | None:
    """Makes a group with these limits; None if this process is not root, or if no group can be made here."""
    if os.getuid() != 0:
        return None
    folders: list[Path] = []
    name, limits = f"navigator-{secrets.token_hex(8)}", {"pids": processes, "memory": memory}
    try:
        for version, parent, controllers in _parents():
            folder = parent / name
            folder.mkdir()
            folders.append(folder)
            for controller in controllers:
                (folder / _LIMITS[controller][version - 1]).write_text(str(limits[controller]))
    except OSError:
        Cgroup(tuple(folders)).remove()
        return None
    return Cgroup(tuple(folders)) if folders else None


def _parents() -> Sequence[tuple[int, Path, tuple[str, ...]]]:
    """Version, folder and controllers of each parent of the new group."""
    enabled = BASE / "cgroup.subtree_control"
    if enabled.is_file():
        there = enabled.read_text().split()
        wanted = tuple(name for name in _LIMITS if name in there)
        return [(2, BASE, wanted)] if "pids" in wanted else []
    own = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    parents = ((name, BASE / name / own.get(name, "/").lstrip("/")) for name in _LIMITS)
    return [(1, folder, (name,)) for name, folder in parents if folder.is_dir()]


def _pids(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text().split()]
    except OSError:
        return []
