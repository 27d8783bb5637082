"""Runs a job in the best sandbox that works here, or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.files.scratch import make_scratch, new_scratch, remove_scratch_aside
from navigator_kernel.adapters.files.tree import disk_used
from navigator_kernel.adapters.files.writer import stamp
from navigator_kernel.adapters.processes.process import Contained, environment, too_long, unlinked
from navigator_kernel.errors import KernelError, NoSandbox, NotFound
from navigator_kernel.sandbox import cgroup
from navigator_kernel.sandbox.backends import SandboxBackend, inline, launch, rungs, works
from navigator_kernel.sandbox.confinement import MEMORY, Confinement, confinement

if TYPE_CHECKING:
    from navigator_kernel.adapters.processes.process import ProcessRunner
    from navigator_kernel.ports import Writer
    from navigator_kernel.sandbox.cgroup import Cgroup
    from navigator_kernel.values.job import Exceeded, Job, Outcome

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
        """Runs a job. NoSandbox if no sandbox works, NotFound if the program is missing, and the errors of `inner`."""
        rung = self.rung()
        if rung is None and not self.unsafe:
            raise _uncontainable(job)
        scratch = new_scratch()
        job = replace(job, scratch=scratch)
        lock = make_scratch(scratch)
        try:
            if rung is None:
                return await self.inner.run(job)
            with _prepared(job, rung) as contained:
                return await self.inner.run(job, contained)
        finally:
            await remove_scratch_aside(scratch, lock)

    def argv(self, job: Job) -> tuple[str, ...]:
        """The command line for a job that another part starts, contained except for the control group; NoSandbox and
        NotFound as in `run`."""
        rung = self.rung()
        if rung is None and not self.unsafe:
            raise _uncontainable(job)
        held, program = confinement(job), _program(job)
        if rung is None:
            return (program, *job.argv[1:])
        return inline({"gate": None, "limits": dict(held.limits), **rung.wrap([program, *job.argv[1:]], held)})

    def rung(self) -> SandboxBackend | None:
        """The best backend that works, tried once per start of the machine."""
        found, key = {rung.name: rung for rung in rungs()}, _machine()
        held = self._remembered()
        if held.get("key") == key and str(held.get("rung")) in found:
            return found[str(held["rung"])]
        return self.tried_again()

    def tried_again(self) -> SandboxBackend | None:
        """The best backend that works now, whatever worked before; the next run uses it."""
        best = _tried(rungs())
        if best is not None or self._remembered():
            self._keep({"key": _machine(), "rung": best.name if best else ""})
        return best

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


def _tried(found: tuple[SandboxBackend, ...]) -> SandboxBackend | None:
    from tempfile import TemporaryDirectory  # 5 ms, once after each start of the machine

    with TemporaryDirectory(prefix="navigator-") as folder:
        return next((rung for rung in found if works(rung, Path(os.path.realpath(folder)))), None)


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
        group = cgroup.made(held.processes, MEMORY)
        gate, opener = os.pipe() if group is not None else (None, None)
        spec = {"gate": gate, "limits": dict(held.limits), **rung.wrap([program, *job.argv[1:]], held)}
        argv, fd = launch(spec)
        for open_file in (fd, gate, opener):
            if open_file is not None:
                held_open.callback(os.close, open_file)
        if group is not None:
            held_open.callback(group.remove)
        fds = (fd,) if gate is None else (fd, gate)
        leaders: list[int] = []
        yield Contained(argv, fds, partial(_counted, group, opener, leaders), partial(exceeded, held, leaders, {}))


def _program(job: Job) -> str:
    program = shutil.which(job.argv[0], path=environment(job, "")["PATH"])
    if program is None:
        raise NotFound(f"no program is called {job.argv[0]!r}", hint="check the command and PATH")
    return program


def _uncontainable(job: Job) -> NoSandbox:
    return NoSandbox(f"nothing here can contain {job.subject}", hint="; ".join(REMEDIES))


def _counted(group: Cgroup | None, opener: int | None, leaders: list[int], pid: int) -> None:
    """Puts the launcher into the group while it starts, and lets it go on. If that fails, it runs outside the group, as
    on a system without groups."""
    leaders.append(pid)
    if group is not None and opener is not None:
        with suppress(OSError):
            group.take(pid)
        os.write(opener, b"x")


def exceeded(held: Confinement, leaders: Sequence[int], hidden: dict[int, float]) -> Exceeded:
    """`disk` if the job takes more disk than allowed, else empty; open files without a name count, too."""
    used = 0
    for folder in (held.writes, held.scratch):
        if folder is not None:
            used += disk_used(folder, held.disk - used)
            if used > held.disk:
                return "disk"
    used += sum(unlinked(pid, held.disk, hidden) for pid in leaders)
    return "disk" if used > held.disk else ""
