"""The gate in front of every process: policy, then consent, then the sandbox (AGT-2, X-4, SAF-1)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.adapters.files.autoload import disarm
from navigator_kernel.adapters.files.project_files import refuse_named
from navigator_kernel.adapters.files.tree import listed
from navigator_kernel.config.settings import Policy
from navigator_kernel.errors import Refused
from navigator_kernel.ports import NullAudit
from navigator_kernel.sandbox.confinement import project_of
from navigator_kernel.sandbox.policy import GIVEN, refusal
from navigator_kernel.sandbox.traces import MOST, left_since
from navigator_kernel.text import clean, cut_text, ends, escape_controls, shown_command, size_of
from navigator_kernel.values.job import ASKED, NPM
from navigator_kernel.values.owner import owner_of_run, viewer

if TYPE_CHECKING:
    from navigator_kernel.adapters.files.tree import Listing
    from navigator_kernel.ports import Audit, Consents, Sandbox
    from navigator_kernel.values.job import Job, Outcome


SHOWN = 600  # characters of a person's command, and of its program, that a question shows; its facts contain all of it
TOOL = "tool"


def _same(folder: Path) -> Path:
    return folder


class ConsentGate(Struct, frozen=True):
    """Implements `ports.Sandbox` in front of another sandbox. `fresh` returns an empty folder within a run's own;
    `makeable` raises an error if packages cannot be installed here, before anybody is asked. What is closed to the
    token that a run belongs to is closed to its processes."""

    consents: Consents
    inner: Sandbox
    policy: Policy = field(default_factory=Policy)
    audit: Audit = field(default_factory=NullAudit)
    fresh: Callable[[Path], Path] = _same
    makeable: Callable[[Sequence[str]], None] = lambda _packages: None

    async def run(self, job: Job) -> Outcome:
        """Checks the job, then runs it in the inner sandbox, and records its start and its end. A process gets an empty
        folder, and may read the files of the run's earlier processes. Those that a model starts for one skill work in
        one folder: they have the same rights, and the model passes files from one to the next. At its end, nothing is
        left in the folder that a program of the person would run or obey unasked."""
        self.check(job)
        folder = job.cwd if job.actor == TOOL else self.fresh(job.cwd)
        inside = f"{folder.relative_to(job.cwd).as_posix()}/" if folder != job.cwd else ""
        if inside:
            job = replace(job, cwd=folder, reads=(*job.reads, job.cwd))
        job = replace(job, is_shared=bool(_owner(job)))
        before = listed(job.cwd)
        self._started(job)
        began = time.perf_counter()
        try:
            outcome = await self.inner.run(job)
        except BaseException as error:
            self._ended(job, before, inside, type(error).__name__, time.perf_counter() - began)
            raise
        how = "timeout" if outcome.timed_out else outcome.exceeded or f"exit code {outcome.exit_code}"
        wrote, disarmed = self._ended(job, before, inside, how, outcome.elapsed)
        return replace(outcome, wrote=tuple(one["path"] for one in wrote), disarmed=disarmed)

    def _ended(
        self, job: Job, before: Listing, inside: str, how: str, seconds: float
    ) -> tuple[list[dict[str, str]], tuple[tuple[str, str], ...]]:
        """Disarms what the job left, records its end, and returns the files that it left and those disarmed."""
        disarmed = tuple((f"{inside}{one.before}", one.after and f"{inside}{one.after}") for one in disarm(job.cwd))
        left = left_since(job.cwd, before, listed(job.cwd), inside)
        more: dict[str, Any] = {"cut": True} if left.cut else {}
        more |= {"disarmed": [list(one) for one in disarmed[:MOST]]} if disarmed else {}
        facts = {"how": how, "seconds": round(seconds, 3), "wrote": left.files[:MOST], **more}
        self.audit.record("ended", run=job.run, subject=job.subject, **facts)
        return left.files, disarmed

    def check(self, job: Job) -> None:
        """Refused if the person's policy denies what it asks for, ConsentNeeded if nobody agreed to it."""
        self._refuse_closed(job)
        denied = refusal(self.policy, job.actor, job.subject, job.wants, is_script=job.is_script)
        if denied is not None:
            message = f"{clean(job.subject, lines=False)!r} may not {denied.what}"
            self.audit.record("refused", run=job.run, subject=job.consent, why=denied.rule)
            raise Refused(
                message, hint=f"{denied.rule}; change your settings to allow it", reason="policy", rule=denied.rule
            )
        if job.packages:
            self.makeable(job.packages)
        asked = [GIVEN[want] for want in ASKED if want in job.wants]
        if asked or not job.shipped:
            by_name = job.actor == TOOL  # a model proposed the command, so `--yes` does not cover it
            argv = shown_command(job.argv)
            shown = argv if by_name or job.actor == "mcp_server" else _shown(job.argv, argv, SHOWN)
            subject = "a shell command" if job.actor == "shell" else cut_text(escape_controls(job.subject), SHOWN)
            what = f"run {subject}: {shown}"
            if job.actor == "mcp_server" and job.reads:
                what += f" (it reads {', '.join(escape_controls(str(path)) for path in job.reads)})"
            question = "; let it ".join([what, *asked]) + _packages(job.packages)
            self.consents.require(
                job.run,
                job.consent,
                question,
                by_name=by_name,
                for_order=job.for_order,
                lasting=job.lasting,
                unless=job.unless,
                also=job.also,
                command=argv,
            )

    def _started(self, job: Job) -> None:
        facts = {"actor": job.actor, "subject": job.subject, "digest": job.digest, "origin": job.origin}
        more = {"wants": list(job.wants), "packages": list(job.packages), "shipped": job.shipped}
        self.audit.record("started", run=job.run, **facts, **more, argv=list(job.argv))

    def _refuse_closed(self, job: Job) -> None:
        """Refuses a file of secrets by its name, as for `@` (PRE-8), and what is closed to the viewer; a link has two
        names."""
        root = project_of(job) or Path(os.path.realpath(job.cwd))
        for path in job.reads:
            real = Path(os.path.realpath(path))
            names = [one.relative_to(root).parts for one in (path, real) if one.is_relative_to(root)]
            if real.is_file() or _owner(job):
                self._refuse_named(job, path.name, names)

    def _refuse_named(self, job: Job, written: str, names: Iterable[tuple[str, ...]]) -> None:
        for parts in names:
            try:
                refuse_named(parts, escape_controls(written), _owner(job))
            except Refused as error:
                self.audit.record("refused", run=job.run, subject=job.consent, why=escape_controls(error.message))
                raise


def _owner(job: Job) -> str:
    """The token whose turn the job belongs to, or ""; a server that a tool calls has no run of its own."""
    return owner_of_run(job.run) or viewer()


def _packages(packages: Sequence[str]) -> str:
    """Which packages the question is about, and from which index."""
    python = ", ".join(one for one in packages if not one.startswith(NPM))
    node = ", ".join(one.removeprefix(NPM).removesuffix("@*") for one in packages if one.startswith(NPM))
    named = [f"PyPI: {python}" if python else "", f"npm: {node}" if node else ""]
    return f" ({'; '.join(filter(None, named))})" if packages else ""


def _shown(argv: Sequence[str], whole: str, limit: int) -> str:
    """The command for a question. If it is long: both ends of its program and of its arguments, with the length and the
    SHA-256 of `whole`, so that no padding hides what runs."""
    if len(whole) <= limit:
        return whole
    words = (argv[0], " ".join(argv[1:]))
    return f"{' '.join(ends(escape_controls(word), limit) for word in words)} ({size_of(whole)})"
