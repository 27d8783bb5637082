"""The gate in front of every process: policy, then consent, then the sandbox (AGT-2, X-4, SAF-1, X-16)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.adapters.files.autoload import disarm
from navigator_kernel.adapters.files.project_files import refuse_named
from navigator_kernel.adapters.files.tree import listed
from navigator_kernel.adapters.files.writer import seal_file
from navigator_kernel.adapters.processes.process import PASSED_ON
from navigator_kernel.config.denials import denial, project_denial, run_denial, tool_denial
from navigator_kernel.config.settings import Policy
from navigator_kernel.errors import KernelError, Refused
from navigator_kernel.ports import NullAudit
from navigator_kernel.sandbox.authority import TABLE
from navigator_kernel.sandbox.confinement import DISK, FILE, MEMORY, MIB, PROCESSES, project_of
from navigator_kernel.text import clean, cut_text, ends, escape_controls, shown_command, size_of
from navigator_kernel.values.allowed import DELIVER, EDIT, EVERY, FETCH, LOOKING, RUN, WRITE, allowed_tools
from navigator_kernel.values.allowed import built_in as built_in_named
from navigator_kernel.values.job import ASKED, NPM, OUTPUT_LIMIT, Want
from navigator_kernel.values.owner import owner_of_run, viewer
from navigator_kernel.values.rights import EDIT as EDITS
from navigator_kernel.values.rights import EVERYWHERE

if TYPE_CHECKING:
    from navigator_kernel.adapters.files.tree import Listing
    from navigator_kernel.ports import Audit, Consents, Executor, Sandbox
    from navigator_kernel.values.job import Actor, Job, Outcome

SHOWN = 600  # characters of a person's command, and of its program, that a question shows; its facts contain all of it
TOOL = "tool"


class ConsentGate(Struct, frozen=True):
    """Implements `ports.Sandbox` in front of another sandbox. `fresh` returns an empty folder within a run's own;
    `makeable` raises an error if packages cannot be installed here, before anybody is asked. What is closed to the
    token that a run belongs to is closed to its processes."""

    consents: Consents
    inner: Sandbox
    policy: Policy = field(default_factory=Policy)
    audit: Audit = field(default_factory=NullAudit)
    fresh: Callable[[Path], Path] = lambda folder: folder
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
        facts = {"actor": job.actor, "subject": job.subject, "digest": job.digest, "origin": job.origin}
        more = {"wants": list(job.wants), "packages": list(job.packages), "shipped": job.shipped}
        self.audit.record("started", run=job.run, **facts, **more, argv=list(job.argv))
        began = time.perf_counter()
        try:
            outcome = await self.inner.run(job)
        except BaseException as error:
            self._ended(job, before, inside, type(error).__name__, time.perf_counter() - began)
            raise
        how = "timeout" if outcome.timed_out else outcome.exceeded or f"exit code {outcome.exit_code}"
        wrote, disarmed = self._ended(job, before, inside, how, outcome.elapsed)
        return replace(outcome, wrote=tuple(file["path"] for file in wrote), disarmed=disarmed)

    def _ended(
        self, job: Job, before: Listing, inside: str, how: str, seconds: float
    ) -> tuple[list[dict[str, str]], tuple[tuple[str, str], ...]]:
        """Disarms what the job left, records its end, and returns the new and changed files, `[{path, sha256}]` with
        control characters escaped, and those disarmed. A file that is large, already gone, or not among the first MOST
        has no digest."""
        disarmed = tuple(
            (f"{inside}{entry.before}", entry.after and f"{inside}{entry.after}") for entry in disarm(job.cwd)
        )
        after = listed(job.cwd)
        changed = sorted(set(after.files.items()) - set(before.files.items()))
        wrote = []
        for at, (path, (_, size, _)) in enumerate(changed):
            digest = _digest(job.cwd / path, size) if at < MOST else ""
            wrote.append({"path": escape_controls(f"{inside}{path}"), "sha256": digest})
        more: dict[str, Any] = {"cut": True} if before.cut or after.cut else {}  # not everything was looked at
        more |= {"disarmed": [list(entry) for entry in disarmed[:MOST]]} if disarmed else {}
        facts = {"how": how, "seconds": round(seconds, 3), "wrote": wrote[:MOST], **more}
        self.audit.record("ended", run=job.run, subject=job.subject, **facts)
        return wrote, disarmed

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
        wishes = [GIVEN[want] for want in ASKED if want in job.wants]
        if wishes or not job.shipped:
            by_name = job.actor == TOOL  # a model proposed the command, so `--yes` does not cover it
            argv = shown_command(job.argv)
            shown = argv if by_name or job.actor == "mcp_server" else _shown(job.argv, argv, SHOWN)
            subject = "a shell command" if job.actor == "shell" else cut_text(escape_controls(job.subject), SHOWN)
            what = f"run {subject}: {shown}"
            if job.actor == "mcp_server" and job.reads:
                what += f" (it reads {', '.join(escape_controls(str(path)) for path in job.reads)})"
            question = "; let it ".join([what, *wishes]) + _packages(job.packages)
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

    def _refuse_closed(self, job: Job) -> None:
        """Refuses a file of secrets by its name, as for `@` (PRE-8), and what is closed to the viewer; a link has two
        names."""
        root = project_of(job) or Path(os.path.realpath(job.cwd))
        for path in job.reads:
            real = Path(os.path.realpath(path))
            names = [place.relative_to(root).parts for place in (path, real) if place.is_relative_to(root)]
            if real.is_file() or _owner(job):
                for parts in names:
                    try:
                        refuse_named(parts, escape_controls(path.name), _owner(job))
                    except Refused as error:
                        self.audit.record(
                            "refused", run=job.run, subject=job.consent, why=escape_controls(error.message)
                        )
                        raise


def _owner(job: Job) -> str:
    """The token whose turn the job belongs to, or ""; a server that a tool calls has no run of its own."""
    return owner_of_run(job.run) or viewer()


def _packages(packages: Sequence[str]) -> str:
    """Which packages the question is about, and from which index."""
    python = ", ".join(package for package in packages if not package.startswith(NPM))
    node = ", ".join(package.removeprefix(NPM).removesuffix("@*") for package in packages if package.startswith(NPM))
    named = [f"PyPI: {python}" if python else "", f"npm: {node}" if node else ""]
    return f" ({'; '.join(filter(None, named))})" if packages else ""


def _shown(argv: Sequence[str], whole: str, limit: int) -> str:
    """The command for a question. If it is long: both ends of its program and of its arguments, with the length and the
    SHA-256 of `whole`, so that no padding hides what runs."""
    if len(whole) <= limit:
        return whole
    words = (argv[0], " ".join(argv[1:]))
    return f"{' '.join(ends(escape_controls(word), limit) for word in words)} ({size_of(whole)})"


MOST = 100  # files that get a digest
SIZE_LIMIT = 16 * 1024 * 1024  # bytes; a larger file gets no digest


def _digest(path: Path, size: int) -> str:
    try:
        return seal_file(path).sha256 if size <= SIZE_LIMIT else ""
    except (KernelError, OSError, ValueError):
        return ""


# Decides what a run may do: its actor's row of the authority table, its request, and the person's policy.
#
# A run may do only what all three allow. The gate refuses by these decisions, and `navigator policy explain`
# prints them.

Verdict = Literal["allow", "ask", "deny"]
WORDS: Mapping[Actor, str] = {
    "type_a": "skills",
    "shell": "shell",
    "script": "script",
    "mcp_server": "mcp",
    "tool": "tools",
}
GIVEN: Mapping[Want, str] = {
    "network": "reach the network",
    "packages": "use packages in an environment of its own",
    "project": "read the project",
}
OF_RUN: Mapping[bool, str] = {False: "run commands in the workspace", True: "run its own scripts"}  # by `is_script`
SAID: Mapping[Want, str] = {"network": "network: true", "packages": "dependencies", "project": "reads: project"}


class Decision(NamedTuple):
    """`rule` is the reason for the verdict, `detail` adds to it."""

    what: str
    verdict: Verdict
    rule: str
    detail: str = ""

    def to_dict(self) -> dict[str, str]:
        return self._asdict()


class Standing(NamedTuple):
    """The facts about a skill's bytes and this machine: `trusted` to run, and `granted` everything that it wants;
    `rung` is the sandbox."""

    shipped: bool
    trusted: bool
    granted: bool
    rung: str


def refusal(
    policy: Policy, actor: Actor, name: str, wants: Collection[Want], *, is_script: bool = False
) -> Decision | None:
    """The first request of a run that the person denies, or None; `is_script` says that a tool runs a script of its
    skill."""
    if rule := denial(policy, name, (WORDS[actor],)):
        return Decision("run", "deny", rule)
    if actor == "tool" and (rule := run_denial(policy, name, is_script=is_script)):
        return Decision(OF_RUN[is_script], "deny", rule)
    rules = ((want, denial(policy, name, (want,))) for want in wants)
    return next((Decision(GIVEN[want], "deny", rule) for want, rule in rules if rule), None)


def explained(
    executor: Executor, standing: Standing, policy: Policy, tool: str = "", rights: Sequence[str] = ()
) -> tuple[Decision, ...]:
    """The decisions in the order in which they are made; the first that denies what the skill wants ends a run. `tool`
    may have any name that models use for it; without it, a prompt skill's decisions are those of each built-in tool.
    `rights` are those that the person's settings give to the skill in this project."""
    skill = executor.skill
    own = () if skill.command else tuple(name for name in EVERY if name not in (skill.tools or ()))
    if not tool and not skill.command:
        return _PROMPT, *(of_built_in(name, executor, policy, rights) for name in own)
    if (built_in := built_in_named(tool)) in own:
        return of_built_in(built_in, executor, policy, rights), *_within(built_in, skill.name, policy)
    decisions = tuple(_of_command(executor, standing, policy)) if skill.command else ()
    return (*decisions, of_tool(tool, skill.name, skill.tools, policy)) if tool else decisions


# What a call of a built-in tool needs, beside a yes
_NEEDS: Mapping[str, str] = {
    RUN: "each command is shown; a yes for the session or --allow run covers them",
    **dict.fromkeys(
        (WRITE, EDIT, DELIVER),
        "in the project: each change is shown; a yes for the session or --allow edit:FOLDER/ covers ordinary files",
    ),
}


def of_built_in(tool: str, executor: Executor, policy: Policy, rights: Sequence[str] = ()) -> Decision:
    """Whether a model that works on a prompt skill may call the built-in tool."""
    what, skill = f"call {tool}", executor.skill
    if rule := tool_denial(policy, skill.name, tool):
        return Decision(what, "deny", rule)
    if tool == FETCH and not policy.fetch:
        return Decision(what, "deny", "your settings: [policy] names no hosts in fetch")
    if not skill.allowed_tools and skill.tools is not None:
        return Decision(what, "deny", "its manifest names other tools, and has no allowed-tools")
    if not skill.allowed_tools and executor.standing == "unknown":
        return Decision(what, "deny", "you neither installed nor trust it")
    if tool not in allowed_tools(skill.allowed_tools).tools:
        return Decision(what, "deny", "its allowed-tools does not name it")
    needs = f"only from {', '.join(policy.fetch)}" if tool == FETCH else _NEEDS.get(tool, "")
    given = [word for word in rights if word == tool or (tool in _NEEDS and tool != RUN and word.startswith(EDITS))]
    if given:
        verdict: Verdict = "allow" if RUN in given or EVERYWHERE in given else "ask"
        return Decision(what, verdict, f"your settings: allow {', '.join(given)}")
    return Decision(what, "allow" if tool in LOOKING else "ask", "built-in tool of prompt skills", needs)


def _within(tool: str, name: str, policy: Policy) -> Iterator[Decision]:
    """What a built-in tool may do, as far as the person denies some of it."""
    if tool == RUN:
        for is_script, what in OF_RUN.items():
            rule = run_denial(policy, name, is_script=is_script)
            yield Decision(what, "deny" if rule else "ask", rule or "in the sandbox, without network")
        rule = denial(policy, name, ("packages",))
        yield Decision(GIVEN["packages"], "deny" if rule else "ask", rule or "asked with their names")
    elif tool != FETCH:
        rule = project_denial(policy, name)
        named = "a file that your message names needs no yes to be read"
        yield Decision("use files of the project", "deny" if rule else "ask", rule or named)


def of_tool(tool: str, name: str, listed: tuple[str, ...] | None, policy: Policy) -> Decision:
    """Whether the skill `name`, whose manifest lists the tools `listed`, may call `tool`."""
    what = f"call {tool}"
    if rule := tool_denial(policy, name, tool, by_server="__" in tool):
        return Decision(what, "deny", rule)
    if listed is None:
        return Decision(what, "deny", "its manifest names no tools")
    if tool in listed:
        return Decision(what, "allow", "its manifest lists it in tools")
    return Decision(what, "deny", "its manifest does not list it in tools")


_PROMPT = Decision("start a process", "deny", "it has no command", "its text is given to a model")


def _of_command(executor: Executor, standing: Standing, policy: Policy) -> Iterator[Decision]:
    row = next(right for right in TABLE if right.actor == "type_a")
    name = executor.skill.name
    yield refusal(policy, "type_a", name, ()) or _of_run(executor, standing)
    if standing.rung:
        yield Decision("be contained", "allow", f"{standing.rung} works here")
    else:
        yield Decision("be contained", "deny", "nothing here can contain it", "exit code 8; see navigator doctor")
    yield Decision("read its own folder and the files that it is given", "allow", "authority table: type_a")
    yield _of_want("project", executor, policy) or Decision(
        GIVEN["project"], "allow", "its manifest: reads: project", "but for mybox"
    )
    yield Decision(f"write to {row.writes[0]}", "allow", "authority table: type_a", "its HOME and TMPDIR")
    yield Decision("write anywhere else", "deny", "authority table: type_a")
    for want in ASKED:
        denied = _of_want(want, executor, policy)
        if denied is None and standing.granted:
            yield Decision(GIVEN[want], "allow", "you agreed to that for these bytes")
        else:
            asked = Decision(GIVEN[want], "ask", f"its manifest: {SAID[want]}", "exit code 9 without a yes")
            yield denied or asked
    yield Decision("see the environment", "deny", "allow-list", f"but for {', '.join(PASSED_ON)}")
    limits = f"{MEMORY // MIB} MiB for a process, {FILE // MIB} MiB for a file, {DISK // MIB} MiB of disk"
    limits += f", {PROCESSES} processes, {OUTPUT_LIMIT // MIB} MiB of output"
    yield Decision("use the machine", "allow", "limits of the sandbox", limits)


def _of_run(executor: Executor, standing: Standing) -> Decision:
    if standing.shipped:
        return Decision("run", "allow", "its bytes are the released ones")
    if standing.trusted:
        return Decision("run", "allow", "you agreed to these bytes from there", "one that changes ends it")
    if executor.is_changed:
        return Decision("run", "deny", "its bytes differ from the installed ones", "exit code 6")
    return Decision("run", "ask", "nobody has agreed to these bytes", "exit code 9 without a yes")


def _of_want(want: Want, executor: Executor, policy: Policy) -> Decision | None:
    """The denial by the manifest, if it does not ask, or by the person; None if nothing denies it."""
    if want not in executor.wants:
        return Decision(GIVEN[want], "deny", f"its manifest does not say {SAID[want]}")
    rule = denial(policy, executor.skill.name, (want,))
    return Decision(GIVEN[want], "deny", rule, "so it does not run") if rule else None
