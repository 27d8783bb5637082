"""Runs a job in the best sandbox that works here, or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.adapters.files.lent import lent
from navigator_kernel.adapters.files.scratch import make_scratch, new_scratch, remove_scratch_aside
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
    environment,
    execute,
    memory_used,
    too_long,
    unlinked,
)
from navigator_kernel.errors import KernelError, NoSandbox, NotFound
from navigator_kernel.sandbox.backends import SandboxBackend, inline, launch, rungs
from navigator_kernel.sandbox.cgroup import Cgroup, grouped
from navigator_kernel.sandbox.confinement import Confinement, confinement
from navigator_kernel.values.job import Job

if TYPE_CHECKING:
    from navigator_kernel.adapters.processes.process import ProcessRunner
    from navigator_kernel.ports import Writer
    from navigator_kernel.values.job import Exceeded, Outcome

PATIENCE = 10.0  # seconds for the trial of a backend
ARGUMENT = 128 * 1024  # bytes of one argument: the system's own limit
REMEDIES = (
    "install bubblewrap (apt-get install bubblewrap)",
    "or use a Linux of 6.7 or newer with Landlock",
    "or add --unsafe-no-sandbox to this one command, if you trust what it runs",
)


class ContainedRunner(Struct):
    """Implements `ports.Sandbox`. The file `memory` keeps which backend worked, until the machine restarts. With
    `unsafe`, an option that a person set for this process, a job runs without a sandbox if none works."""

    inner: ProcessRunner
    memory: Path
    writer: Callable[[], Writer]
    unsafe: bool = False

    async def run(self, job: Job) -> Outcome:
        """Runs a job. NoSandbox if no sandbox works or this one cannot be set up, NotFound if the program is missing,
        and the errors of `inner`."""
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
        held, program = confinement(job), _program(job)
        if rung is None:
            return (program, *job.argv[1:])
        spec = {"gate": None, "threads": _threads(held), "seconds": None, "limits": dict(held.limits)}
        return inline({**spec, **rung.wrap([program, *job.argv[1:]], held)})

    def rung(self) -> SandboxBackend | None:
        """The best backend that works, tried once per start of the machine."""
        found, key = {rung.name: rung for rung in rungs()}, _machine()
        held = self._remembered()
        if held.get("key") == key and str(held.get("rung")) in found:
            return found[str(held["rung"])]
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
            reasons = "; ".join(f"{one.name}: {trial(one)}" for one in rungs())
            message = f"nothing here can contain {job.subject}" + (f" ({reasons})" if reasons else "")
            raise NoSandbox(message, hint="; ".join(REMEDIES))
        return rung

    def _remembered(self) -> dict[str, Any]:
        try:
            held = json.loads(self.memory.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return held if isinstance(held, dict) else {}

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
    held = confinement(job)
    program = _program(job)
    if any(len(os.fsencode(word)) >= ARGUMENT for word in job.argv):
        raise too_long(job)
    with ExitStack() as held_open:
        gate, opener = os.pipe()
        held_open.callback(os.close, gate)
        held_open.callback(os.close, opener)
        spec = {"gate": gate, "seconds": job.timeout, "limits": dict(held.limits)}
        argv, fd = launch({**spec, **rung.wrap([program, *job.argv[1:]], held)})
        held_open.callback(os.close, fd)
        running = _Running(held, opener)
        held_open.callback(running.remove_group)
        yield Contained(argv, (fd, gate), running.started, running.exceeded)


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

    def remove_group(self) -> None:
        if self.group is not None:
            self.group.remove()


def _threads(held: Confinement) -> int:
    """The limit of the user's threads in a run without a group: a quarter more than exist, because other programs start
    some meanwhile, and those of the run. 0, which is none, for root, whom the system does not limit."""
    if os.getuid() == 0:
        return 0
    existing = threads_of_user()
    return existing + existing // 4 + held.processes


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


def exceeded(held: Confinement, pid: int, hidden: dict[int, float]) -> Exceeded:
    """The limit of disk or memory that the processes below `pid` are over, else empty; open files without a name count
    as disk."""
    used, below = 0, descendants(pid)
    for folder in (held.writes, held.scratch):
        if folder is not None:
            used += disk_used(folder, held.disk - used)
            if used > held.disk:
                return "disk"
    if used + unlinked(pid, below, held.disk, hidden) > held.disk:
        return "disk"
    return "memory" if memory_used(below, held.memory) > held.memory else ""
