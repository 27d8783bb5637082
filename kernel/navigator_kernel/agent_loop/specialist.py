"""Phase 2 for one turn: turns a prompt, or a message without a skill, into a report."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.adapters.files.autoload import disarmed_last
from navigator_kernel.adapters.files.tree import walk_inside
from navigator_kernel.adapters.stores.underway import ENDED
from navigator_kernel.agent_loop.loop import AgentLoop, ApprovalRequired, Budget, End
from navigator_kernel.agent_loop.skill_tool import NAME as SKILL_TOOL
from navigator_kernel.agent_loop.skill_tool import likely_skills
from navigator_kernel.errors import Damaged, IntegrityMismatch, Interrupted, KernelError, TimedOut
from navigator_kernel.language.chinese import approval_in, in_language
from navigator_kernel.language.model_failure import failure_text
from navigator_kernel.language.wording import right_in, say
from navigator_kernel.text import clean, escape_controls, lazy_compile
from navigator_kernel.values.chat import ChatMessage, Spent
from navigator_kernel.values.packet import Meta, Packet, Report, State, shown_path
from navigator_kernel.values.redact import Redact, same
from navigator_kernel.values.rights import right_of
from navigator_kernel.values.work import PROGRESS, RESULTS, AgentState, AgentTask, gap, progress_of, redacted

if TYPE_CHECKING:
    from navigator_kernel.events import Emit
    from navigator_kernel.model_ports import ModelRegistry, Tools, Underway
    from navigator_kernel.ports import Catalogue, Clock, Executor, Writer
    from navigator_kernel.values.request import Said

MOST_FILES, SEEN = 100, 5_000  # files of a workspace listed in a report, and looked at


class Specialist(Struct, kw_only=True):
    """Implements `model_ports.Specialist` for one turn. `root` is the project, `box` contains the workspaces of runs,
    `named` returns the files that a message names, `history` is the conversation so far, `written` the files that
    earlier turns wrote, `writer` writes below a folder, `delivered` says what was delivered in a run's work
    (`ChangeStore.delivered`), `private` whether the history may contain the person's data,
    `spent` the usage of choosing the skill."""

    models: ModelRegistry
    catalogue: Catalogue
    tools: Tools
    clock: Clock
    root: Path = Path()
    box: Path = Path()
    named: Callable[[str], Sequence[Path]] = lambda _text: ()
    history: Sequence[Said] = ()
    written: Sequence[str] = ()
    writer: Callable[[Path], Writer] | None = None
    private: bool = True
    budget: Budget = field(default_factory=Budget)
    spent: Spent = field(default_factory=Spent)
    redact: Redact = same
    usual: float = 60.0  # seconds of a step if nothing else is set
    began: float | None = None
    underway: Underway | None = None
    delivered: Callable[[str], Mapping[str, tuple[str, str, int]]] = lambda _run: {}

    async def work(self, packet: Packet, prepared: Report | None, emit: Emit, wrong: str = "") -> Report:
        """Runs phase 2; `prepared` is the report with a skill's prompt, or None for a message without a skill."""
        began, loop = self.clock.monotonic(), None
        work = self.assigned(packet, None)
        try:
            work = self.assigned(packet, prepared)
            if wrong:
                fix = say("specialist.fix", work.language, wrong=wrong)
                work = replace(work, request=f"{work.request}\n\n{fix}")
            loop = self.loop(work, emit, packet)
            before = _before(packet)
            if self.underway is not None:  # from here on each call is recorded
                self.underway.start(packet, len(before.messages) if before else 0)
                loop.keep = partial(self.underway.note, packet.context.run)
            progress, end = await loop.run(before or AgentState(workspace=work.workspace, began=self.clock.now()))
            report = self.told(loop, progress, end, began)
        except ApprovalRequired as waits:
            report = self.waiting(waits, loop.work if loop else work, began)
        except KernelError as error:
            report = self.failed(error, loop.work if loop else work, loop.progress if loop else AgentState(), began)
            report = report if loop else replace(report, unanswered=False)
        except asyncio.CancelledError as error:
            if loop is None or not loop.progress.has_worked or ENDED in error.args:
                raise
            report = self.failed(Interrupted("stopped"), loop.work, loop.progress, began)  # the turn ends with it
        private = work.private or (loop is not None and has_read(loop.progress))
        report = replace(report, private=private)
        return report if loop is None else self.closed(loop, report, emit)

    def assigned(self, packet: Packet, prepared: Report | None) -> AgentTask:
        """The task; KernelError if the skill no longer exists. Work that continues gets the time and the conversation
        of its beginning, so that a provider can read them from its cache."""
        try:
            before = _before(packet)
            began, has_answers = (before.began, has_read(before)) if before else ("", False)
        except Damaged:  # continuing the packet reports the damage
            began, has_answers = "", True
        now = datetime.fromisoformat(began or self.clock.now()).astimezone()
        earlier = (one for one in self.history if not began or one.ts < began)
        task = AgentTask(
            run=packet.context.run,
            step=packet.context.step,
            request=str(packet.params.value("request", packet.task_spec.intent)),
            language=packet.context.language,
            now=f"{now.isoformat(timespec='minutes')} {now:%A}",  # the day is needed for "tomorrow"
            memories=tuple(str(one) for one in packet.params.value("memory", ())),
            private=any(packet.params.value(name, ()) for name in ("memory", "files", "previous")) or has_answers,
            history=tuple(ChatMessage(role=one.role, text=one.text) for one in earlier),
            likely=likely_skills(map(str, packet.params.value("skills", ())), self.catalogue),
        )
        if prepared is None:
            return replace(task, private=task.private or self._recalls(task.history))
        executor = self.catalogue.create_executor(packet.task_spec.target)
        skill, (guide, request), limit = executor.skill, parts(prepared), packet.constraints.timeout
        backend, tools, note = str(prepared.data.get("backend", "")), self._tools(executor, packet), ""
        if executor.standing == "unknown" and not tools and not skill.tools:
            key = "skill.changed_since" if executor.was_accepted else "skill.untrusted"
            note = say(key, task.language, skill=escape_controls(skill.name))
        history = task.history if skill.inherit_history else ()
        return replace(
            task,
            request=request or task.request,
            skill=skill.name,
            digest=executor.digest,
            standing=executor.standing,
            guide=guide,
            tools=skill.tools or (),
            history=history,
            private=task.private or self._recalls(history),
            model=backend,
            **tools,
            note=note,
            unknown=skill.backend if skill.backend and not self.models.knows(skill.backend) else "",
            limit=limit if limit < (skill.timeout or self.usual) else skill.timeout or 0.0,
        )

    def _recalls(self, history: Sequence[ChatMessage]) -> bool:
        """Whether the history contains answers from after private data was read."""
        return self.private and any(one.role == "assistant" for one in history)

    def loop(self, work: AgentTask, emit: Emit, packet: Packet) -> AgentLoop:
        """The agent loop with the rest of the turn's budget; NotFound without a model."""
        model, left = self.models.chain(work.model), self.budget
        if left.seconds:
            self.began = self.clock.monotonic() if self.began is None else self.began
            left = replace(left, seconds=max(left.seconds - (self.clock.monotonic() - self.began), 0.001))
        if work.limit:
            left = replace(left, seconds=min(left.seconds or work.limit, work.limit))

        def loads(skill: str) -> AgentTask:
            """The task of the skill that the model loaded (`AgentState.skill`), with its tools, folder and rights.
            IntegrityMismatch if it was changed meanwhile, or is not accepted any more."""
            namespace, _, digest = skill.partition("@")
            executor = self.catalogue.create_executor(namespace)
            name, standing = executor.skill.name, executor.standing
            if executor.digest != digest or standing == "unknown":
                raise IntegrityMismatch(f"skill {name!r} was changed meanwhile", hint="start again")
            own = {"skill": name, "digest": digest, "standing": standing, "tools": executor.skill.tools or ()}
            loaded = replace(work, **own, **self._tools(executor, packet))
            loop.folder = self._results(loaded)
            return loaded

        loop = AgentLoop(
            work=work,
            model=model,
            tools=self.tools,
            clock=self.clock,
            emit=emit,
            budget=left,
            spent=self.spent,
            loads=loads,
            made=lambda: len(_made(loop.work)),
            store=lambda name, text: self._store(loop.work, name, text),
            folder=self._results(work),
        )
        return loop

    def _results(self, work: AgentTask) -> str:
        """The folder for whole results of tools; empty without a workspace."""
        return f"{work.workspace}/{RESULTS}" if work.workspace and self.writer else ""

    def _store(self, work: AgentTask, name: str, text: str) -> None:
        """Keeps the whole result of a tool in the workspace, where the model can read it."""
        if self.writer is not None:
            folder = Path(work.workspace) / RESULTS
            writer = self.writer(Path(work.workspace))
            writer.make_folder(folder)
            writer.write(folder / name, text.encode("utf-8", "replace"))

    def closed(self, loop: AgentLoop, report: Report, emit: Emit) -> Report:
        """Adds the loop's usage and emits its user interface commands; returns the report with its changes."""
        self.spent += loop.progress.spent
        for command in (one for commands in loop.commands.values() for one in commands):
            emit(command, step=loop.work.step)
        return replace(report, effects=tuple(loop.effects))

    def _tools(self, executor: Executor, packet: Packet) -> dict[str, Any]:
        """The data of the built-in tools. Each step has a folder of its own; a packet that continues keeps its folder.
        `earlier` are the existing files of earlier turns that lie elsewhere."""
        before, context = _before(packet), packet.context
        own = self.box / context.run / (f"step-{context.step}" if context.step else "")
        folder = Path(before.workspace) if before and before.workspace else own
        folder = folder if self._is_inside(folder) else own
        named = (*packet.params.value("files", ()), *self.named(packet.task_spec.intent))
        data = work_of(executor, folder, self.root, named)
        if not data:
            return {}
        written = (path for path in map(Path, self.written) if self._is_inside(path))
        earlier = tuple(str(path) for path in written if not path.is_relative_to(folder) and path.is_file())
        return {**data, "earlier": earlier}

    def _is_inside(self, path: Path) -> bool:
        return path.is_relative_to(self.box) and ".." not in path.parts

    def told(self, loop: AgentLoop, progress: AgentState, end: End, began: float) -> Report:
        """The report; `partial` or `timeout` if a limit ended the loop, with the state from which it can go on."""
        work = loop.work
        data: dict[str, Any] = {**({"skill": work.skill} if work.skill else {}), **progress.to_dict()}
        if work.unknown:
            said = say("backend.unknown", work.language, backend=escape_controls(work.unknown), model=progress.model)
            data["diagnostics"] = [{"code": "backend-unknown", "msg": said}]
        if work.note or loop.notes or progress.notes:
            untrusted = [{"code": "untrusted", "msg": note} for note in (work.note, *loop.notes) if note]
            stood_in = [{"code": "fallback", "msg": note} for note in progress.notes]
            data["diagnostics"] = [*data.get("diagnostics", ()), *untrusted, *stood_in]
        data |= self._files(work)
        text, meta = without_commands(clean(progress.text)).strip(), self._meta(work, began)
        if end == "done":
            first = text.partition("\n")[0].strip() or text
            if not all(one.get("delivered") for one in data.get("written", ())):
                data["hint"] = say("reply.undelivered", work.language, run=work.run)
            return Report(state="success", summary=first, meta=meta, data=data, raw=text, by_model=True)
        why, hint = loop.reason(progress, end)
        state: State = "timeout" if end == "time" else "partial" if text else "error"
        data |= {"reason": end, "msg": why, "hint": _go_on(work, hint)}
        data |= {} if text else {"type": "Unfinished"}
        report = Report(state=state, summary=why, meta=meta, data=data, raw=text or None, by_model=bool(text))
        return replace(report, progress=redacted(progress, self.redact).kept(), unanswered=True)

    def waiting(self, waits: ApprovalRequired, work: AgentTask, began: float) -> Report:
        """Asks for approval of a call with its arguments (JIT-12)."""
        asked = waits.asked
        facts = {name: held for name, held in asked.data.items() if name not in {"wider", "also"}}
        data: dict[str, Any] = {"required": ["consent"], "optional": [], "reason": "consent", **facts}
        data |= {"skill": work.skill} if work.skill else {}
        question = say("ask.approve", work.language, what=approval_in(asked.message, work.language))
        meta, subject, wider = self._meta(work, began), str(asked.data["subject"]), str(asked.data.get("wider", ""))
        if (right := right_of(wider or subject)) is not None:
            question += f"\n{say('ask.right', work.language, right=right_in(right, work.language))}"
            data |= {"right": right.word, **({"allow": right.by_option} if right.by_option else {})}
        kept = redacted(waits.progress, self.redact).kept()
        held = Report(state="pending", summary=question, meta=meta, data=data, subject=subject, progress=kept)
        return replace(held, also=tuple(asked.data.get("also", ())), wider=wider)

    def failed(self, error: KernelError, work: AgentTask, progress: AgentState, began: float) -> Report:
        """The report of a failed loop, with its state and partial answer, so that a retry repeats nothing."""
        state: State = "timeout" if isinstance(error, TimedOut) else "error"
        told = {key: value for key, value in error.to_dict().items() if value is not None and key != "begun"}
        if len(told.get("tried", ())) < 2:  # the message already names the only model
            told.pop("tried", None)
        message, hint = failure_text(told, work.language)
        told |= {"msg": message, "hint": hint} if message else {}
        if progress.has_worked:
            told["hint"] = _go_on(work, str(told.get("hint", "")))
        data: dict[str, Any] = {**({"skill": work.skill} if work.skill else {}), **told}
        data |= {"usage": progress.spent.to_dict()} if progress.spent.requests else {}
        begun = str(error.data.get("begun", ""))
        text = without_commands(clean(f"{progress.text}{gap(progress.text) if begun else ''}{begun}")).strip()
        data |= {"incomplete": True} if text else {}
        data |= self._files(work)
        kept = redacted(progress, self.redact).kept() if progress.messages else ""
        summary = message or in_language(error.message, work.language)
        held = Report(state=state, summary=summary, meta=self._meta(work, began), data=data)
        return replace(held, raw=text or None, by_model=bool(text), progress=kept, unanswered=True)

    def _files(self, work: AgentTask) -> dict[str, Any]:
        """The files in the workspace: their paths as in a command's report, and each absolute path with its size, and
        the path in the project if it was delivered as it is."""
        made, written = _made(work), list[dict[str, Any]]()
        known = self.delivered(work.run) if made else {}
        for path, size in made.items():
            source = path.relative_to(self.box).as_posix() if path.is_relative_to(self.box) else ""
            place, _, delivered_size = known.get(source, ("", "", 0))
            is_same = bool(place) and size == delivered_size
            written.append({"path": str(path), "size": size, **({"delivered": place} if is_same else {})})
        return {"files": [shown_path(path, Path(work.project)) for path in made], "written": written} if made else {}

    def _meta(self, work: AgentTask, began: float) -> Meta:
        elapsed = round(self.clock.monotonic() - began, 3)
        return Meta(agent="skills" if work.skill else "kernel", time=elapsed, ts=self.clock.now())


def work_of(executor: Executor, workspace: Path, project: Path, named: Iterable[Path | str]) -> dict[str, Any]:
    """The data of the built-in tools; empty for a skill that names other tools and none of these (JIT-5), and for one
    that the person does not accept and that asks for none: only the text of that one is used."""
    skill = executor.skill
    if not skill.allowed_tools and (executor.standing == "unknown" or skill.tools is not None):
        return {}
    return {
        "target": skill.namespace,
        "folder": str(skill.folder or ""),
        "workspace": str(workspace),
        "project": str(project),
        "named": tuple(dict.fromkeys(map(str, named))),
        "allowed": skill.allowed_tools,
    }


def _before(packet: Packet) -> AgentState | None:
    """The state of a packet that waited for the person."""
    kept = packet.params.optional.get(PROGRESS)  # a parameter of a skill never has this key
    if not kept:
        return None
    try:
        return progress_of(str(kept))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged("the waiting call cannot be read", hint="ask for it again") from error


def has_read(progress: AgentState) -> bool:
    """Whether a tool answered; the text of another skill that the person accepts is not the person's data."""
    return any(message.role == "tool" and message.name != SKILL_TOOL for message in progress.messages)


def parts(prepared: Report) -> tuple[str, str]:
    """The guide and the request in a finished prompt: `data["request"]` says where the request begins and ends; without
    it the whole prompt is the request."""
    prompt, at = str(prepared.data.get("prompt", "")), prepared.data.get("request")
    if not isinstance(at, list | tuple) or len(at) != 2 or not all(type(one) is int for one in at):
        return "", prompt
    return prompt[: at[0]].strip(), prompt[at[0] : at[1]].strip()


def _go_on(work: AgentTask, hint: str) -> str:
    """How to go on, before another `hint`."""
    return say("hint.go_on_or" if hint else "hint.go_on", work.language, hint=hint)


def _made(work: AgentTask) -> dict[Path, int]:
    """The files in the workspace with their sizes in bytes, but for the results of tools that are kept there."""
    folder = Path(work.workspace) if work.workspace else None
    if folder is None or not folder.is_dir():
        return {}
    found = (one for one in walk_inside(folder, ()) if not one.path.startswith(f"{RESULTS}/"))
    sizes = {one.path: one.size for one in islice(found, SEEN)}
    return {folder / path: sizes[path] for path in islice(disarmed_last(sizes), MOST_FILES)}


# Only tools may give commands to a user interface: what looks like one in a model's answer is removed.

TYPES = frozenset({"toast", "refresh", "navigate", "modal"})
_FENCED = lazy_compile(r"```(?:json)?\s*```\n?")
_BEGINS = lazy_compile(r"\{\s*\"(?:type|payload)\"")


def without_commands(text: str) -> str:
    """`text` without each JSON object that is a command, `{type, payload}`."""
    decoder, at, kept, end = json.JSONDecoder(), 0, list[str](), 0
    while hit := _BEGINS.search(text, at):
        try:
            command, at = decoder.raw_decode(text, hit.start())
        except (ValueError, RecursionError):
            at = hit.end()
            continue
        if isinstance(command, dict) and command.get("type") in TYPES and isinstance(command.get("payload"), dict):
            kept.append(text[end : hit.start()])
            end = at
    return _FENCED.sub("", "".join([*kept, text[end:]])) if kept else text
