"""The built-in tools of a prompt skill: read, list, glob, grep, write, edit and run, within limits."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from navigator_kernel.adapters.files.autoload import refuse_autoloaded
from navigator_kernel.adapters.models.calls import PATCH
from navigator_kernel.adapters.processes.line_diff import same_start
from navigator_kernel.config.denials import project_denial, run_denial
from navigator_kernel.config.settings import Policy
from navigator_kernel.errors import (
    ConsentNeeded,
    IntegrityMismatch,
    KernelError,
    NoSandbox,
    NotFound,
    Refused,
    UsageProblem,
)
from navigator_kernel.language.chinese import approval_in
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, clean, cut_text, escape_controls
from navigator_kernel.tools import delivering, reading, running, writing
from navigator_kernel.tools.guarded import needs_again
from navigator_kernel.tools.places import (
    Place,
    Places,
    is_closed,
    is_obeyed,
    is_program,
    meant_place,
    plain_path,
    refuse_closed,
    with_near,
)
from navigator_kernel.values.allowed import (
    DELIVER,
    EDIT,
    FETCH,
    GLOB,
    GREP,
    LIST,
    READ,
    RUN,
    WRITE,
    Allowed,
    allowed_tools,
)
from navigator_kernel.values.chat import GuardedTool, ToolCall, ToolSpec
from navigator_kernel.values.rights import READ as READS
from navigator_kernel.values.rights import by_settings, covering, edits_of
from navigator_kernel.values.standing import Need
from navigator_kernel.values.work import AgentTask, ToolAnswer

if TYPE_CHECKING:
    from navigator_kernel.ports import Audit, Catalogue, Consents, Executor, Sandbox, Writer
    from navigator_kernel.tools.writing import Change


DIFF = 400_000  # characters of a diff, which the person sees whole or is not asked
ANSWER = 24_000  # characters of a diff in an answer to the model
_PATHS = {READ: "file_path", WRITE: "file_path", EDIT: "file_path"}
_LOOKS: Mapping[str, Callable[[Place, Mapping[str, Any]], reading.Found]] = {
    READ: reading.read,
    LIST: reading.listed,
    GLOB: reading.globbed,
    GREP: reading.searched,
}
_PLANS: Mapping[str, Callable[[Place, Mapping[str, Any]], Any]] = {WRITE: writing.written, EDIT: writing.edited}


class BuiltInTools(Struct, frozen=True, kw_only=True):
    """Implements `model_ports.BuiltIn` for assignments with a workspace, which lies below `box`. `writer` writes to it;
    `change` writes a file of the project and keeps its earlier content for the run, `copy` does so from the workspace;
    `needed` says which packages a command needs; `hosts` are those that `fetch` may ask, and without any there is no
    `fetch`. `policy` is what the person denies, `allow` the rights that they give to skills beforehand. `intend` gets
    the digests of a file, before and after, just before it is changed."""

    root: Path
    box: Path
    catalogue: Catalogue
    sandbox: Sandbox
    consents: Consents
    audit: Audit
    writer: Callable[[Path], Writer]
    change: Callable[[str, Change], None]
    copy: Callable[[str, delivering.Delivery], None]
    needed: running.Needed
    hosts: tuple[str, ...] = ()
    policy: Policy = field(default_factory=Policy)
    allow: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    intend: Callable[[str, str, str], None] = lambda _run, _before, _after: None

    def admit(self, _work: AgentTask) -> None:
        """Does nothing: consent is asked for each call."""

    def offered(self, work: AgentTask) -> tuple[ToolSpec, ...]:
        if not work.workspace:
            return ()
        names = _allowed(work).tools
        return tuple(spec for spec in specs(work.language, self.hosts) if spec.name in names)

    def reaching(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> GuardedTool | None:
        """The tool for a call of `fetch`; Refused for a page that it may not get, before the person is asked."""
        return self._fetching(work, call, arguments) if call.name == FETCH else None

    def _fetching(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> GuardedTool:
        from navigator_kernel.adapters.web import target_of
        from navigator_kernel.tools.outward import fetching

        _check(call.name, arguments)
        self._executor(work)
        target = target_of(str(arguments["url"]), self.hosts)
        host = f"{target.host}:{target.port}"
        question = say("ask.fetch", work.language, skill=escape_controls(work.skill), host=host)

        def keep(suffix: str, data: bytes) -> str:
            return self._kept(self._places(work), f"page-{_short(call.id)}{suffix}", data)

        spec = next(spec for spec in specs("en", self.hosts) if spec.name == FETCH)
        return fetching(spec, target, self.hosts, keep, question)

    async def call(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Carries out a call. ConsentNeeded if the person has to agree first, or NoSandbox; any other error is an
        answer."""
        subject = f"tool:{call.name}"
        try:
            arguments = delivering.renamed(arguments) if call.name == DELIVER else arguments
            _check(call.name, arguments)
            places, executor = self._places(work), self._executor(work)
            for word in self.allow.get(work.skill, ()) if executor.standing != "unknown" else ():
                self.consents.allow(work.run, by_settings(word, work.skill))
            answer = await self._done(work, call, arguments, places, executor)
        except (ConsentNeeded, NoSandbox):
            raise
        except Exception as error:  # noqa: BLE001 - the model gets the error, the turn continues
            hint = f" ({error.hint})" if isinstance(error, KernelError) and error.hint else ""
            text = error.message if isinstance(error, KernelError) else f"{type(error).__name__}: {error}"
            self.audit.record("failed", run=work.run, subject=subject, skill=work.skill, why=clean(text, lines=False))
            return ToolAnswer(text=say("tool.failed", work.language, error=f"{clean(text)}{hint}"), failed=True)
        if call.name != RUN:  # the gate has recorded the command
            self.audit.record("ended", run=work.run, subject=subject, skill=work.skill, how="done")
        return answer

    async def _done(
        self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any], places: Places, executor: Executor
    ) -> ToolAnswer:
        if call.name == RUN:
            return await self._run(work, call, arguments, places, executor)
        if call.name == DELIVER:
            return await self._deliver(work, call, arguments, places, executor)
        written = str(arguments.get(_PATHS.get(call.name, "path")) or places.folder)
        place = places.find(plain_path(written), new=True) if call.name == WRITE else meant_place(places, written)
        if place.zone == "project":
            self._refuse_project(work)
        needs_consent = place.zone == "project" and call.name != WRITE
        needs_consent = needs_consent and not any(map(place.path.is_relative_to, places.folders))
        reading = self._needs_to_read(work, place, executor) if needs_consent else ()
        if call.name in _LOOKS:
            self._ask(work, reading, tool=READ)
            everywhere = call.name in {GLOB, GREP} and not arguments.get("path")
            found = await asyncio.to_thread(_looked, call.name, place, arguments, places if everywhere else None)
            return ToolAnswer(text=clean(found.text), files=found.files)
        if place.zone == "earlier" and call.name == EDIT:
            place = self._copied(place, places, work.intent)
        if work.intent and (done := self._done_before(work, place)) is not None:
            return done
        # A file that is not as it was before the change that a killed process was about to make
        has_changed = bool(work.intent) and _digest(writing.now_in(place)) != work.intent[0]
        again = needs_again(work, call, arguments) if has_changed else ()
        try:
            change: Change = await asyncio.to_thread(_PLANS[call.name], place, arguments)
            return await self._write(work, call, change, executor, (*reading, *again))
        except ConsentNeeded:
            raise
        except KernelError as error:  # the reason says what is in the file
            self._ask(work, reading, tool=READ)
            if isinstance(error, NotFound):
                raise with_near(error, place) from None
            raise

    def _refuse_project(self, work: AgentTask) -> None:
        """Refused if the person denies the files of the project to tools."""
        _refuse(work, project_denial(self.policy, work.skill), "use files of the project")

    def _places(self, work: AgentTask) -> Places:
        self.writer(Path(work.workspace)).make_folder(Path(work.workspace))
        real = Path(work.workspace).resolve()
        folder = Path(work.folder).resolve() if work.folder else real
        closed = project_denial(self.policy, work.skill)
        named = tuple(path for path in map(Path, work.named) if not closed or path.is_relative_to(self.box))
        earlier, root = tuple(Path(path) for path in work.earlier), self.root.resolve()
        folders = tuple(path for path in named if path.is_dir() and path.is_relative_to(root) and path != root)
        return Places(
            workspace=real,
            folder=folder,
            named=tuple(path for path in named if path not in folders),
            project=root,
            earlier=earlier,
            folders=tuple(path for path in folders if not is_closed(path.relative_to(root).parts)),
            box=self.box,
        )

    def _copied(self, place: Place, places: Places, intent: Sequence[str]) -> Place:
        """The same file in the workspace, copied from the one of an earlier turn, unless a killed process has already
        done that, with the digests of `intent`."""
        found, before = places.find(place.path.name, new=True), writing.now_in(place)
        there = writing.now_in(found)
        if found.zone == "workspace" and there is not None and (there == before or _digest(there) in intent):
            return found
        if found.zone != "workspace" or there is not None:
            hint = f"copy it by read and write, under a name of its own in {places.workspace}"
            raise UsageProblem(f"another file is called {place.path.name!r}", hint=hint)
        refuse_autoloaded(found.root, found.parts)
        self.writer(places.workspace).write(found.path, before or b"")
        return found

    def _executor(self, work: AgentTask) -> Executor:
        """The skill's executor; IntegrityMismatch if the skill has changed since the assignment began."""
        executor = self.catalogue.create_executor(work.target)
        if executor.digest != work.digest:
            raise IntegrityMismatch(f"skill {work.skill!r} was changed meanwhile", hint="start again")
        return executor

    def _ask(self, work: AgentTask, needs: Sequence[Need], **facts: Any) -> None:
        """ConsentNeeded unless the person agreed to all of `needs`."""
        for own in needs[-1:]:
            held = {**facts, "for_order": own.for_order, "unless": own.unless, "also": needs[:-1]}
            self.consents.require(work.run, own.subject, own.question, by_name=True, skill=work.skill, **held)

    def _needs_to_read(self, work: AgentTask, place: Place, executor: Executor) -> tuple[Need, ...]:
        """The consent to read files of the project that the person did not name; a yes holds for the order (JIT-12).
        Who may change the files of a folder may read them."""
        folder = place.parts if place.path.is_dir() else place.parts[:-1]
        subject, *wider = covering([READS, *edits_of(folder)], work.skill, executor.digest)
        question = say(
            "ask.read_project", work.language, skill=escape_controls(work.skill), folder=escape_controls(str(self.root))
        )
        return (Need(subject, question, for_order=True, unless=tuple(wider)),)

    def _done_before(self, work: AgentTask, place: Place) -> ToolAnswer | None:
        """The answer to a change that was made just before the process was killed; None for one that may still have to
        be made."""
        self.writer(place.root).sweep(place.path)
        data, after = writing.now_in(place), work.intent[1]
        if _digest(data) != after:
            return None
        text = say("tool.wrote", work.language, path=str(place.path), size=f"{len(data or b''):,}")
        self.audit.record("wrote", run=work.run, path=str(place.path), sha256=after, skill=work.skill)
        return ToolAnswer(text=clean(text), changed=place.zone != "workspace")

    async def _write(
        self, work: AgentTask, call: ToolCall, change: Change, executor: Executor, also: tuple[Need, ...]
    ) -> ToolAnswer:
        """Writes the file, in the project after a yes to its diff; `also` are further consents that the call needs."""
        place, size = change.place, len(change.after)
        if place.zone == "earlier":
            raise UsageProblem("a file of an earlier turn is read-only", hint=f"write to {work.workspace}")
        if place.zone == "skill":
            raise UsageProblem("the skill's own files are read-only", hint=f"write to {work.workspace}")
        refuse_autoloaded(place.root, place.parts, by_name=place.zone == "workspace")
        diff = f"\n{cut_text(await change.diff(), ANSWER)}" if call.name == EDIT else ""  # a stop here writes nothing
        if place.zone == "workspace":
            self._ask(work, also)
            self.intend(work.run, _digest(change.before), _digest(change.after))
            self.writer(place.root).write(place.path, change.after)
        else:
            parts = place.path.relative_to(self.root.resolve()).parts
            refuse_closed(parts, place.path.name)
            change = change._replace(place=Place("project", self.root.resolve(), parts))
            if change.before == change.after:
                return ToolAnswer(text=say("tool.same", work.language, path=str(place.path)))
            await self._ask_to_change(work, call, change, executor, also)
            self.intend(work.run, _digest(change.before), _digest(change.after))
            self.change(work.run, change)
        digest = _digest(change.after)
        self.audit.record("wrote", run=work.run, path=str(place.path), sha256=digest, skill=work.skill)
        text = say("tool.wrote", work.language, path=str(place.path), size=f"{size:,}")
        return ToolAnswer(text=clean(f"{text}{diff}"), changed=place.zone != "workspace")

    async def _ask_to_change(
        self, work: AgentTask, call: ToolCall, change: Change, executor: Executor, also: tuple[Need, ...]
    ) -> None:
        """Asks for approval of a change with its diff, bound to the content before and after. A right to edit below a
        folder covers no file that other programs run or obey."""
        place, parts = change.place, change.place.parts
        held = [call.id, work.skill, executor.digest, str(place.path)]
        body = json.dumps([*held, _digest(change.before), _digest(change.after)])
        subject = f"tool:{call.name}#{hashlib.sha256(body.encode()).hexdigest()}"
        path, diff = "/".join(parts), await _shown(change)
        is_alone = is_obeyed(parts) or is_program(place.path, change.before, change.after)
        key = "ask.change_alone" if is_alone else "ask.change"
        note = "" if change.is_text else say("ask.change_bytes", work.language)
        question = say(
            key, work.language, skill=escape_controls(work.skill), path=escape_controls(path), note=note, diff=diff
        )
        facts: dict[str, Any] = {"tool": call.name, "skill": work.skill, "path": str(place.path), "diff": diff}
        wider = () if is_alone else covering(edits_of(parts[:-1]), work.skill, executor.digest)
        facts |= {"wider": wider[0], "folder": str(place.path.parent)} if wider else {}
        self.consents.require(work.run, subject, question, by_name=True, unless=wider, also=also, **facts)

    async def _deliver(
        self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any], places: Places, executor: Executor
    ) -> ToolAnswer:
        """Copies files of the workspace to the project after one question about all of them."""
        self._refuse_project(work)
        planned = await asyncio.to_thread(delivering.planned, places, arguments)
        found = [one for one in planned if not one.is_same]
        for one in found:
            refuse_autoloaded(one.place.root, one.place.parts, by_name=False)
        if found:
            again = needs_again(work, call, arguments)
            await self._ask_to_deliver(work, call, found, executor, again)
        for one in found:
            refuse_autoloaded(one.place.root, one.place.parts, by_name=False)  # with those copied just before
            await asyncio.to_thread(self.copy, work.run, one)
            path, digest = str(one.place.path), one.source.digest
            self.audit.record("wrote", run=work.run, path=path, sha256=digest, skill=work.skill, source=one.source.name)
        lines = [
            say("tool.same" if one.is_same else "tool.wrote", work.language, path=path, size=f"{one.source.size:,}")
            for one in planned
            for path in [str(one.place.path)]
        ]
        return ToolAnswer(text=clean("\n".join(lines)), changed=bool(found))

    async def _ask_to_deliver(
        self,
        work: AgentTask,
        call: ToolCall,
        found: Sequence[delivering.Delivery],
        executor: Executor,
        also: tuple[Need, ...],
    ) -> None:
        """Asks once for all files, bound to the content of each and to what it replaces. A file that other programs run
        or obey is asked about alone, with its content."""
        alone = [one for one in found if one.is_alone]
        if alone and len(found) > 1:
            names = ", ".join(escape_controls(one.path) for one in alone[:10])
            hint = "deliver each of them in a call of its own"
            raise UsageProblem(
                f"other programs run or obey {names}, so the person is asked about each alone", hint=hint
            )
        files = [[one.path, one.now.digest if one.now else "", one.source.digest] for one in found]
        body = json.dumps([call.id, work.skill, executor.digest, *files])
        subject = f"tool:{call.name}#{hashlib.sha256(body.encode()).hexdigest()}"
        diff = await self._delivered(found[0], whole=bool(alone)) if len(found) == 1 else ""
        shown = "\n".join(filter(None, [delivering.question(found, work.language), diff]))
        skill = escape_controls(work.skill)
        question = say("ask.deliver_alone" if alone else "ask.deliver", work.language, skill=skill, files=shown)
        folders_of = [one.place.parts[:-1] for one in found]
        same = min(same_start(folders_of[0], other) for other in folders_of)
        folder = folders_of[0][:same]
        wider = () if alone else covering(edits_of(folder), work.skill, executor.digest)
        path = str(self.root.resolve().joinpath(*folder))
        facts: dict[str, Any] = {"tool": call.name, "skill": work.skill, "diff": shown}
        facts |= {"path": str(found[0].place.path)} if len(found) == 1 else {"path": path}
        facts |= {"wider": wider[0], "folder": path} if wider else {}
        self.consents.require(work.run, subject, question, by_name=True, unless=wider, also=also, **facts)

    async def _delivered(self, one: delivering.Delivery, *, whole: bool) -> str:
        """The change of a text as a diff, as `write` shows it; "" for other types, and for a long text unless it must
        be shown whole: then UsageProblem if it is too long."""
        sizes = [one.source.size, one.now.size if one.now else 0]
        if not delivering.is_text(one.kind) or (not whole and max(sizes) > delivering.TEXT * 4):
            return ""
        now = None if one.now is None else Place("project", one.now.root, one.now.parts)
        after = await asyncio.to_thread(writing.now_in, Place("workspace", one.source.root, one.source.parts))
        before = await asyncio.to_thread(writing.now_in, now) if now else None
        change = writing.Change(one.place, before, after or b"")
        if [_digest(before), _digest(after)] != [one.now.digest if one.now else "", one.source.digest]:
            raise IntegrityMismatch(f"{one.path!r} was changed meanwhile", hint="try again")
        diff = await _shown(change)
        return diff if whole or len(diff) <= delivering.TEXT else ""

    async def _run(
        self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any], places: Places, executor: Executor
    ) -> ToolAnswer:
        command = running.command_of(arguments, places, _allowed(work))
        rule = run_denial(self.policy, work.skill, is_script=True)
        is_denied = bool(rule) and await asyncio.to_thread(running.may_script, command, places)
        _refuse(work, rule if is_denied else "", "run its own scripts")
        again = needs_again(work, call, arguments)
        job = await asyncio.to_thread(
            running.job_of, command, arguments, places, executor, work.run, call.id, self.needed, again
        )
        running.refuse_missing(command, job.packages)
        try:
            outcome = await self.sandbox.run(job)
        except ConsentNeeded as asked:
            files = await asyncio.to_thread(running.files_shown, command, places, work.language)
            what = approval_in(asked.message, work.language)
            what = say("ask.run_files", work.language, what=what, files=files) if files else what
            raise ConsentNeeded(what, hint=asked.hint, **asked.data) from None

        def keep(text: str) -> str:
            return self._kept(places, f"output-{_short(call.id)}.txt", text.encode("utf-8", "replace"))

        failed = outcome.exit_code is None  # a finished command's exit code is for the model to judge
        return ToolAnswer(text=clean(running.described(outcome, job, keep)), failed=failed)

    def _kept(self, places: Places, name: str, data: bytes) -> str:
        self.writer(places.workspace).write(places.workspace / name, data)
        return str(places.workspace / name)


def _refuse(work: AgentTask, rule: str, what: str) -> None:
    """Raises Refused if there is a rule by which the person denies it."""
    if rule:
        hint = f"{rule}; change your settings to allow it"
        raise Refused(f"{work.skill!r} may not {what}", hint=hint, reason="policy", rule=rule)


def _digest(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _short(call: str) -> str:
    return hashlib.sha256(call.encode()).hexdigest()[:8]


def _allowed(work: AgentTask) -> Allowed:
    return allowed_tools(work.allowed)


def _looked(name: str, place: Place, arguments: Mapping[str, Any], places: Places | None) -> reading.Found:
    """What a tool that reads found, in all `places` if they are given; a folder that is read is listed."""
    if places is not None:
        first, *more = places.searched()
        return (reading.globbed if name == GLOB else reading.searched)(first, arguments, more)
    try:
        return _LOOKS[LIST if name == READ and place.path.is_dir() else name](place, arguments)
    except NotFound as error:
        raise with_near(error, place) from None


def _check(name: str, arguments: Mapping[str, Any]) -> None:
    """UsageProblem for missing, unknown or wrongly typed arguments, with a call in the right form. Only an optional
    argument may be null."""
    fields = understood(name)
    needed: Sequence[str] = schema_of(name)["required"]
    if name == EDIT and "insert_line" in arguments:
        needed = ("file_path", "new_string")
    elif name == EDIT and "edits" in arguments:
        needed = ("file_path",)
    is_patch = "file_path" not in arguments and any(str(one).lstrip().startswith(PATCH) for one in arguments.values())
    if name == EDIT and is_patch:
        hint = f"a patch adds and updates files, and deletes and moves none; or {EDIT} one file: {example_of(name)}"
        raise UsageProblem("the patch cannot be applied", hint=hint)
    absent = [one for one in needed if one not in arguments]
    unknown = [escape_controls(one) for one in arguments if one not in fields]
    given = {one: value for one, value in arguments.items() if one in fields and (value is not None or one in needed)}
    wrong = [f"{one} must be {kind}" for one, value in given.items() if (kind := _wanted(value, fields[one]))]
    problems = {"missing": absent, "unknown": unknown, "of the wrong type": wrong}
    if found := "; ".join(f"{what}: {', '.join(names)}" for what, names in problems.items() if names):
        hint = f"{name} takes {', '.join(schema_of(name)['properties'])}; for example: {example_of(name)}"
        raise UsageProblem(f"the arguments of {name} are not valid: {found}", hint=hint)


def _wanted(value: object, schema: Mapping[str, Any]) -> str:
    """What an argument must be by its schema, in words; empty if the value is that."""
    items = schema.get("items", {}).get("type")
    match schema["type"], value:
        case ("string", str()) | ("boolean", bool()):
            return ""
        case ("integer", int()) if not isinstance(value, bool):
            return ""
        case ("array", list()) if all(isinstance(one, str if items == "string" else dict) for one in value):
            return ""
    kinds = {"string": "text", "integer": "a whole number", "boolean": "true or false", "array": "a list of texts"}
    return "a list of objects" if items == "object" else kinds[schema["type"]]


async def _shown(change: Change) -> str:
    """The change as the person sees it; UsageProblem if it is too long."""
    diff = await change.diff()
    shown = await asyncio.to_thread(writing.shown, diff) if len(diff) <= DIFF else diff
    if len(shown) > DIFF:
        hint = "change it in several steps, or write a new file in the workspace"
        raise UsageProblem(
            f"the change of {'/'.join(change.place.parts)!r} is too long to show to the person", hint=hint
        )
    return shown


TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
WORDS = {"type": "array", "items": {"type": "string"}}
EDITS = {"type": "array", "items": {"type": "object"}}

# The arguments of each tool: the required ones, then the optional ones
_ARGUMENTS: Mapping[str, tuple[Mapping[str, Mapping[str, Any]], Mapping[str, Mapping[str, Any]]]] = {
    "read": ({"file_path": TEXT}, {"offset": NUMBER, "limit": NUMBER}),
    "list": ({}, {"path": TEXT}),
    "glob": ({"pattern": TEXT}, {"path": TEXT}),
    "grep": (
        {"pattern": TEXT},
        {
            "path": TEXT,
            "glob": TEXT,
            "ignore_case": FLAG,
            "output_mode": {**TEXT, "enum": ["content", "files_with_matches"]},
        },
    ),
    "write": ({"file_path": TEXT, "content": TEXT}, {}),
    "edit": ({"file_path": TEXT, "old_string": TEXT, "new_string": TEXT}, {"replace_all": FLAG}),
    "deliver": ({"from": WORDS}, {"to": TEXT}),
    "run": ({}, {"command": TEXT, "argv": WORDS, "timeout": NUMBER, "packages": WORDS}),
    "fetch": ({"url": TEXT}, {}),
}

# Arguments that are understood but not offered: `MultiEdit`, and `insert` of a text editor
_UNDERSTOOD: Mapping[str, Mapping[str, Mapping[str, Any]]] = {"edit": {"edits": EDITS, "insert_line": NUMBER}}
# A call of each tool in the right form, for the answer to a wrong one
_EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "read": {"file_path": "notes.txt", "offset": 1, "limit": 200},
    "list": {"path": "docs"},
    "glob": {"pattern": "**/*.py"},
    "grep": {"pattern": "total", "path": "docs", "glob": "*.md"},
    "write": {"file_path": "notes.txt", "content": "the whole text"},
    "edit": {"file_path": "notes.txt", "old_string": "text in the file", "new_string": "text instead"},
    "deliver": {"from": ["report.pdf"], "to": "reports/"},
    "run": {"command": "python3 script.py data.csv"},
    "fetch": {"url": "https://example.org/page"},
}


@cache
def specs(language: Language, hosts: tuple[str, ...] = ()) -> tuple[ToolSpec, ...]:
    """All built-in tools in a fixed order (X-40); `fetch` only if there are `hosts`."""
    told = {"fetch": {"hosts": ", ".join(hosts)}}
    return tuple(
        ToolSpec(name=name, description=say(f"tool.{name}", language, **told.get(name, {})), schema=schema_of(name))
        for name in _ARGUMENTS
        if hosts or name not in told
    )


def understood(name: str) -> Mapping[str, Any]:
    """The arguments that the tool `name` takes, offered or not: the schema of each."""
    needed, others = _ARGUMENTS[name]
    return {**needed, **others, **_UNDERSTOOD.get(name, {})}


def example_of(name: str) -> str:
    """A call of the tool in the right form."""
    return f"{name} {json.dumps(_EXAMPLES[name])}"


def schema_of(name: str) -> Mapping[str, Any]:
    """The JSON schema of the arguments of the tool `name`."""
    needed, others = _ARGUMENTS[name]
    fields = {one: dict(kind) for one, kind in (*needed.items(), *others.items())}
    return {"type": "object", "properties": fields, "required": list(needed), "additionalProperties": False}
