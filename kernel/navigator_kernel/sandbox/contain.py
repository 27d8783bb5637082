"""Runs a job in the best sandbox that works here, or not at all, within limits and with its packages."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.adapters.files.scratch import (
    PRIVATE,
    TEMPORARY,
    lent,
    make_scratch,
    new_scratch,
    remove_scratch_aside,
)
from navigator_kernel.adapters.files.tree import disk_used
from navigator_kernel.adapters.files.writer import stamp
from navigator_kernel.adapters.processes.launcher import (
    FAILED,
    NOT_SET_UP,
    descendants,
    no_more_threads,
    threads_of_user,
)
from navigator_kernel.adapters.processes.process import (
    FULL,
    Contained,
    ProcessRunner,
    environment,
    execute,
    memory_used,
    too_long,
    unlinked,
)
from navigator_kernel.errors import KernelError, NoSandbox, NotFound
from navigator_kernel.sandbox.backends import SandboxBackend, inline, launch, rungs
from navigator_kernel.sandbox.confinement import Confinement, confinement, covers
from navigator_kernel.values.job import NPM, Exceeded, Job, Outcome

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer


PATIENCE = 10.0  # seconds for the trial of a backend
ARGUMENT = 128 * 1024  # bytes of one argument: the system's own limit
REMEDIES = (
    "install bubblewrap (apt-get install bubblewrap)",
    "or use a Linux of 6.7 or newer with Landlock",
    "or add --unsafe-no-sandbox to this one command, if you trust what it runs",
)


class ContainedRunner(Struct):
    """Implements `ports.Sandbox`. The file `memory` keeps which backend worked, until the machine restarts. With
    `unsafe`, an option that a person set for this process, a job runs without a sandbox if none works. `made` returns
    the environment with the packages that a job declares."""

    inner: ProcessRunner
    memory: Path
    writer: Callable[[], Writer]
    unsafe: bool = False
    made: Callable[[Sequence[str]], Path] | None = None

    async def run(self, job: Job) -> Outcome:
        """Runs a job. NoSandbox if no sandbox works or this one cannot be set up, NotFound if the program is missing,
        and the errors of `equipped` and of `inner`."""
        if job.packages and self.made is not None:
            job = await equipped(job, self.made)
        rung = self._allowed(job)
        scratch = new_scratch()
        job = replace(job, scratch=scratch)
        lock = make_scratch(scratch)
        try:
            if rung is None:
                with lent(job.cwd, job.links, job.copies):
                    return await self.inner.run(job)
            with lent(job.cwd, job.links, job.copies), _prepared(job, rung) as contained:
                outcome = await self.inner.run(job, contained)
                if outcome.exit_code and (limit := contained.exceeded()):  # it ended between two looks
                    return replace(outcome, exit_code=None, exceeded=limit)
            if reason := _not_set_up(outcome):
                self._keep({})  # what works here has changed, so the backends are tried again
                hint = FULL if "threads" in reason else "try again: another sandbox may work; navigator doctor names it"
                raise NoSandbox(f"the sandbox for {job.subject} cannot be set up: {reason}", hint=hint)
            return outcome
        finally:
            await remove_scratch_aside(scratch, lock)

    def argv(self, job: Job) -> tuple[str, ...]:
        """The command line for a job that another part starts, contained except for the control group; NoSandbox and
        NotFound as in `run`."""
        rung = self._allowed(job)
        allowed, program = confinement(job), _program(job)
        if rung is None:
            return (program, *job.argv[1:])
        spec = {"gate": None, "threads": _threads(allowed), "seconds": None, "limits": dict(allowed.limits)}
        return inline({**spec, **rung.wrap([program, *job.argv[1:]], allowed)})

    def rung(self) -> SandboxBackend | None:
        """The best backend that works, tried once per start of the machine."""
        available, key = {rung.name: rung for rung in rungs()}, _machine()
        remembered = self._remembered()
        if remembered.get("key") == key and str(remembered.get("rung")) in available:
            return available[str(remembered["rung"])]
        return self.tried_again()[0]

    def tried_again(self) -> tuple[SandboxBackend | None, dict[str, str]]:
        """The best backend that works now, whatever worked before, and by name why better ones do not. The next run
        uses it."""
        failed: dict[str, str] = {}
        for rung in rungs():
            if reason := trial(rung):
                failed[rung.name] = reason
            else:
                self._keep({"key": _machine(), "rung": rung.name})
                return rung, failed
        if self._remembered():
            self._keep({})
        return None, failed

    def _allowed(self, job: Job) -> SandboxBackend | None:
        """The backend for the job; None if it runs without one, because a person said so."""
        rung = self.rung()
        if rung is None and not self.unsafe:
            reasons = "; ".join(f"{backend.name}: {trial(backend)}" for backend in rungs())
            message = f"nothing here can contain {job.subject}" + (f" ({reasons})" if reasons else "")
            raise NoSandbox(message, hint="; ".join(REMEDIES))
        return rung

    def _remembered(self) -> dict[str, Any]:
        try:
            record = json.loads(self.memory.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def _keep(self, body: dict[str, Any]) -> None:
        """Stores `body`; if that fails, the backends are tried again next time."""
        try:
            writer = self.writer()
            writer.make_folder(self.memory.parent)
            writer.write(self.memory, json.dumps(body).encode())
        except KernelError:
            return


def trial(rung: SandboxBackend) -> str:
    """Why `rung` does not work here; empty if it does: a program starts with the limits of a run, and cannot list a
    folder that it must not see. Nothing is remembered."""
    from tempfile import TemporaryDirectory  # 5 ms, seldom needed

    with TemporaryDirectory(prefix="navigator-") as made:
        inside, outside = (Path(os.path.realpath(made), name) for name in ("inside", "outside"))
        for folder in (inside, outside):
            folder.mkdir()
        job = Job(
            actor="type_a",
            subject="the trial",
            digest="",
            run="trial",
            argv=("/bin/sh", "-c", 'ls "$1" || exit; ls "$2" && exit 3; exit 0', "sh", str(inside), str(outside)),
            cwd=inside,
            timeout=PATIENCE,
        )
        try:
            with _prepared(job, rung) as contained:
                outcome = execute(job, contained=contained)
        except (KernelError, OSError) as error:
            return str(error)
    reasons = {0: "", 3: "it does not hide files", None: "it does not start"}
    fallback = outcome.stderr.decode("utf-8", "replace").strip() or f"exit code {outcome.exit_code}"
    return _not_set_up(outcome) or reasons.get(outcome.exit_code, fallback)


def _machine() -> list[Any]:
    """The facts that decide whether a backend works: this start of the machine, the user and bubblewrap's file."""
    bwrap = shutil.which("bwrap")
    boot = Path("/proc/sys/kernel/random/boot_id")
    started = boot.read_text().strip() if boot.is_file() else ""
    return [started, os.getuid(), bwrap, list((bwrap and stamp(Path(bwrap))) or ())]


@contextmanager
def _prepared(job: Job, rung: SandboxBackend) -> Iterator[Contained]:
    allowed = confinement(job)
    program = _program(job)
    if not covers((*allowed.reads, allowed.writes), Path(os.path.realpath(program))):
        hint = "install it for all users, or with a version manager such as nvm or pyenv"
        raise NotFound(f"the sandbox does not show {program!r}: it is in a folder of yours", hint=hint)
    if any(len(os.fsencode(word)) >= ARGUMENT for word in job.argv):
        raise too_long(job)
    with ExitStack() as held_open:
        if allowed.tmp is not None:
            allowed = held_open.enter_context(_with_tmp(allowed))
        gate, opener = os.pipe()
        held_open.callback(os.close, gate)
        held_open.callback(os.close, opener)
        spec = {"gate": gate, "seconds": job.timeout, "limits": dict(allowed.limits)}
        argv, fd = launch({**spec, **rung.wrap([program, *job.argv[1:]], allowed)})
        held_open.callback(os.close, fd)
        running = _Running(allowed, opener)
        held_open.callback(lambda: running.group and running.group.remove())
        yield Contained(argv, (fd, gate), running.started, running.exceeded)


@contextmanager
def _with_tmp(allowed: Confinement) -> Iterator[Confinement]:
    """Makes the folder for `/tmp`, which goes at the end if nothing is in it. If a link or a file is there in its
    place, the process gets a folder for its time."""
    tmp, scratch = cast(Path, allowed.tmp), cast(Path, allowed.scratch)
    with contextlib.suppress(FileExistsError):
        tmp.mkdir(PRIVATE)
    if not stat.S_ISDIR(tmp.lstat().st_mode):
        yield allowed._replace(tmp=scratch / TEMPORARY)
        return
    try:
        yield allowed
    finally:
        for folder in (tmp / scratch.name, tmp):  # the first is where bubblewrap shows the process its own folder
            with contextlib.suppress(OSError):
                folder.rmdir()


class _Running(Struct):
    """One run: its launcher waits for a line from `opener`. `hidden` is for `unlinked`."""

    held: Confinement
    opener: int
    pid: int = 0
    group: Cgroup | None = None
    hidden: dict[int, float] = field(default_factory=dict)

    def started(self, pid: int) -> None:
        """Puts the launcher into a group while it starts, or gives it the limit to use without one."""
        self.pid = pid
        self.group = grouped(pid, self.held.processes, self.held.memory)
        os.write(self.opener, b"0" if self.group else str(_threads(self.held)).encode())

    def exceeded(self) -> Exceeded:
        if self.group is not None and self.group.is_out_of_memory():
            return "memory"
        return exceeded(self.held, self.pid, self.hidden)


def _threads(allowed: Confinement) -> int:
    """The limit of the user's threads in a run without a group: a quarter more than exist, because other programs start
    some meanwhile, and those of the run. 0, which is none, for root, whom the system does not limit."""
    if os.getuid() == 0:
        return 0
    existing = threads_of_user()
    return existing + existing // 4 + allowed.processes


def _program(job: Job) -> str:
    program = shutil.which(job.argv[0], path=environment(job, "")["PATH"])
    if program is None:
        raise NotFound(f"no program is called {job.argv[0]!r}", hint="check the command and PATH")
    return program


def _not_set_up(outcome: Outcome) -> str:
    """Why the sandbox could not be set up for the program; empty if it was."""
    line = outcome.stderr.decode("utf-8", "replace").partition("\n")[0]
    if outcome.exit_code == FAILED and line.startswith(NOT_SET_UP):
        return line.removeprefix(NOT_SET_UP)
    if outcome.exit_code != 1 or outcome.stdout or not line.startswith("bwrap: ") or line.startswith("bwrap: execvp"):
        return ""
    return no_more_threads() if line.endswith(os.strerror(errno.EAGAIN)) else line


def exceeded(allowed: Confinement, pid: int, hidden: dict[int, float]) -> Exceeded:
    """The limit of disk or memory that the processes below `pid` are over, else empty; open files without a name count
    as disk."""
    used, below = 0, descendants(pid)
    for folder in (allowed.writes, allowed.scratch):
        if folder is not None:
            used += disk_used(folder, allowed.disk - used)
            if used > allowed.disk:
                return "disk"
    if used + unlinked(pid, below, allowed.disk, hidden) > allowed.disk:
        return "disk"
    return "memory" if memory_used(below, allowed.memory) > allowed.memory else ""


# A control group for one run: its limits hold for all processes of the run, and count no others (cgroups(7)).

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
                pids = ""
                with contextlib.suppress(OSError):
                    pids = (folder / "cgroup.procs").read_text()
                for pid in pids.split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
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
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            path = Path(f"/proc/{pid}/cgroup").read_text().rpartition("0::/")[2].strip()
            if path.endswith(f"/{name}"):  # the process is in its group
                folder = BASE / path
                return Cgroup((folder,)) if (folder / "pids.max").read_text() == f"{processes}\n" else None
            time.sleep(0.002)
    except (OSError, subprocess.SubprocessError):
        pass
    return None


def _is_version_2() -> bool:
    return (BASE / "cgroup.controllers").is_file()


def _is_first_namespace() -> bool:
    """Whether process ids here are those of the whole machine: a container's mean other processes to the manager."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino == _FIRST_NAMESPACE  # noqa: PTH116 - a link of the system
    except OSError:
        return False


async def equipped(job: Job, made: Callable[[Sequence[str]], Path]) -> Job:
    """The job with its packages; `made` returns the environment with these requirements (SAF-3). The person has been
    asked before. NotLoadable without uv or npm, FetchFailed for packages that cannot be fetched."""
    from navigator_kernel.adapters.processes.environments import activated, argv_in, node_activated

    node = [package for package in job.packages if package.startswith(NPM)]
    python = [package for package in job.packages if not package.startswith(NPM)]
    if python:
        place = await asyncio.to_thread(made, python)
        env = {**job.env, **activated(place)}
        job = replace(job, argv=argv_in(place, job.argv), reads=(*job.reads, place), env=env)
    if node:
        place = await asyncio.to_thread(made, node)
        env = {**job.env, **node_activated(place, job.env)}
        job = replace(job, reads=(*job.reads, place), env=env)
    return job
