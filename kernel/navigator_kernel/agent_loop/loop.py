"""The agent loop: ask the model, carry out its tool calls, and repeat until an answer or a limit (JIT-10, X-23)."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.agent_loop.continuation import goes_on
from navigator_kernel.agent_loop.opening import environment, opening
from navigator_kernel.agent_loop.window import WORK, fitted, newest, units
from navigator_kernel.errors import ConsentNeeded, KernelError, ModelFailed, TimedOut
from navigator_kernel.events import (
    RESULT,
    Emit,
    RunContent,
    ToolCallCompleted,
    ToolCallStarted,
    ToolsLeftOut,
    UICommand,
    Usage,
)
from navigator_kernel.events import Progress as Told
from navigator_kernel.language.model_failure import failure_text
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, whole_words
from navigator_kernel.values.allowed import left_out
from navigator_kernel.values.chat import Asked, ChatMessage, Completion, Spent, ToolCall, tried_of, usage_facts
from navigator_kernel.values.report import shown_path
from navigator_kernel.values.work import AgentState, AgentTask, ToolAnswer

if TYPE_CHECKING:
    from collections.abc import Callable

    from navigator_kernel.model_ports import ChatModel, Tools
    from navigator_kernel.ports import Clock

ROUNDS = 10  # rounds of tool calls
CALLS = 16  # tool calls in one answer
LONGEST = 3600.0  # seconds of one request if the turn has no limit
CONTINUATIONS = 3
FAILURES = 2  # consecutive failures (SAF-5)

End = Literal["done", "rounds", "failures", "length"]


class ApprovalRequired(Exception):
    """The person must approve a call first; `progress` is the state so far, with the call still open."""

    def __init__(self, progress: AgentState, asked: ConsentNeeded) -> None:
        super().__init__(asked.message)
        self.progress, self.asked = progress, asked


class Budget(Struct, frozen=True, kw_only=True):
    """The limits of one turn: tokens, US dollars and seconds; 0 means no limit."""

    tokens: int = 0
    cost: float = 0.0
    seconds: float = 300.0


class AgentLoop(Struct, kw_only=True):
    """Works on one task with `model` and `tools`."""

    work: AgentTask
    model: ChatModel
    tools: Tools
    clock: Clock
    emit: Emit
    budget: Budget = field(default_factory=Budget)
    spent: Spent = field(default_factory=Spent)  # before this task, in the same turn
    commands: dict[str, tuple[UICommand, ...]] = field(default_factory=dict)  # by the id of their call
    effects: dict[str, None] = field(default_factory=dict)  # tools that changed something, with the file, in order
    progress: AgentState = field(default_factory=AgentState)  # the last state reached
    keep: Callable[[AgentState], None] = lambda _progress: None  # called before and after each tool call
    loads: Callable[[str], AgentTask] | None = None  # the task of a skill that the model loads
    opened: AgentTask | None = None  # the task without a skill, as it began, once the model has loaded one
    _began: float | None = None

    async def run(self, progress: AgentState | None = None) -> tuple[AgentState, End]:
        """Runs the loop; returns the state and why it stopped. A task that waited continues with its waiting call.

        ApprovalRequired if the person has to agree; KernelErrors of the model are passed on.
        """
        self.progress, end = progress or AgentState(workspace=self.work.workspace), None
        if self.progress.is_answered:  # the process was killed after the answer was complete
            self.progress, end = await self.continue_check(self.progress)
        while end is None:
            self.progress, end = await self.continue_check(await self.specialist(self.progress))
        return self.progress, end

    async def specialist(self, progress: AgentState) -> AgentState:
        """One round: the waiting call, or a request with all calls of its answer (JIT-7)."""
        self._load(progress.skill)
        if not progress.open_calls:
            progress = await self._asked(progress, self._left())
            self.keep(progress)
        if progress.open_calls and progress.rounds < ROUNDS:
            progress = await self._called(progress, progress.open_calls)
        return progress

    async def continue_check(self, progress: AgentState) -> tuple[AgentState, End | None]:
        """The reason to stop, or None to continue; rules decide first (X-27)."""
        if progress.open_calls:
            return _without(progress, progress.messages[-1]), "rounds"
        if progress.failures >= FAILURES:
            return progress, "failures"
        if progress.messages[-1].role == "tool":
            return progress, None
        before, self.progress = progress, progress
        on, checked = await goes_on(progress, self.model, self.work.language, self._lost)
        progress = replace(before, spent=self.progress.spent + (self._tell(checked) if checked else Spent()))
        if not on:
            return progress, "done"
        if progress.continuations >= CONTINUATIONS:
            return progress, "length"
        more = ChatMessage(role="user", text=say("prompt.continue", self.work.language))
        messages, continuations = (*progress.messages, more), progress.continuations + 1
        return replace(progress, messages=messages, continuations=continuations), None

    def _left(self) -> float:
        """The seconds that are left for the turn; TimedOut if there are none."""
        if not self.budget.seconds:
            return LONGEST
        now = self.clock.monotonic()
        self._began = now if self._began is None else self._began
        left = self.budget.seconds - (now - self._began)
        if left <= 0:
            raise _over(TimedOut, kind="timeout", limit="turn_time", seconds=self.budget.seconds)
        return left

    async def _asked(self, progress: AgentState, limit: float) -> AgentState:
        self._refuse_more(progress.spent)
        try:
            self.tools.admit(self.work)
        except ConsentNeeded as needed:
            raise ApprovalRequired(progress, needed) from needed
        offered = self.tools.offered(self.work)
        if not progress.messages and (missing := left_out(self.work.allowed, {spec.name for spec in offered})):
            self.emit(ToolsLeftOut(skill=self.work.skill, tools=missing), step=self.work.step)
        recent = newest(progress.messages, WORK) or fitted(units(progress.messages)[-1:], WORK)
        messages = (*opening(self.opened or self.work), *recent)
        spare = not (self.work.workspace or self.work.tools)  # without these, the model needs only the skill's text
        asked = Asked(messages=messages, tools=offered, limit=limit, spare=spare, waits=self._waits)
        with_pieces, self.progress = _Pieces(self.emit, self.work.step), progress
        try:
            done = await self.model.complete(asked, with_pieces)
        except KernelError as error:
            self._lost(error)
            raise
        except asyncio.CancelledError:  # the usage stays unknown
            self._use(self.model.name, Spent(requests=1, unknown=1, priced=False))
            raise
        finally:
            with_pieces.flush()
        spent, messages = progress.spent + self._tell(done), (*progress.messages, done.message)
        notes = (*progress.notes, *_stood_in(done, self.work.language))
        held = replace(progress, messages=messages, spent=spent, model=done.model, finish=done.finish)
        return replace(held, notes=tuple(dict.fromkeys(notes)))

    def _waits(self, model: str, seconds: float) -> None:
        text = say("model.waits", self.work.language, model=model, seconds=f"{seconds:.0f}")
        self.emit(Told(text=text), step=self.work.step)

    def _refuse_more(self, spent: Spent) -> None:
        """Stops the turn before a request if its budget is used up."""
        total, limit = self.spent + spent, self.budget
        tokens = total.input + total.output
        if (limit.tokens and tokens >= limit.tokens) or (limit.cost and total.cost >= limit.cost):
            raise _over(ModelFailed, kind="over_budget", tokens=tokens, cost=round(total.cost, 6))

    def _tell(self, done: Completion) -> Spent:
        """Emits the usage of requests that led to an answer."""
        for one in done.tried:
            self._use(one.model, one.spent)
        self._use(done.model, done.spent)
        return done.taken

    def _lost(self, error: KernelError) -> None:
        """Emits the usage of requests that failed."""
        for one in tried_of(error.data):
            self._use(one.model, one.spent)
            self.progress = replace(self.progress, spent=self.progress.spent + one.spent)

    def _use(self, model: str, spent: Spent) -> None:
        if spent.requests:
            self.emit(Usage(model=model, skill=self.work.skill, **usage_facts(spent)), step=self.work.step)

    async def _called(self, progress: AgentState, calls: tuple[ToolCall, ...]) -> AgentState:
        """Carries out the calls in order; every call gets an answer."""
        self.progress = progress  # progress is saved call by call, whatever ends the loop
        for at, call in enumerate(calls):
            try:
                late = self.progress.failures >= FAILURES or at >= CALLS
                if not late:
                    self.keep(replace(self.progress, begun=call.id))
                answer = self._left_out(call) if late else await self._answered(call)
            except ConsentNeeded as asked:
                raise ApprovalRequired(self.progress, asked) from asked
            if answer.skill and self._load(answer.skill):
                answer = replace(answer, text=f"{answer.text}\n\n{environment(replace(self.work, now=''))}".strip())
                self.progress = replace(self.progress, skill=answer.skill, workspace=self.work.workspace)
            told = ChatMessage(role="tool", text=answer.text, call=call.id, name=call.name, files=answer.files)
            failures = self.progress.failures + 1 if answer.failed else 0
            messages = (*self.progress.messages, told)
            self.progress = replace(self.progress, messages=messages, failures=failures, begun="", intent=())
            self.keep(self.progress)
        return replace(self.progress, rounds=progress.rounds + 1)

    def _load(self, skill: str) -> bool:
        """Goes on as the task of a skill that the model loaded, unless it is that of a skill already."""
        if not skill or self.work.skill or self.loads is None:
            return False
        self.opened, self.work = self.work, self.loads(skill)
        return True

    def _work_of(self, call: ToolCall) -> AgentTask:
        """The task, with what is known about a call that was in progress when the process ended."""
        held = self.progress
        return replace(self.work, begun=call.id, intent=held.intent) if held.begun == call.id else self.work

    def _left_out(self, call: ToolCall) -> ToolAnswer:
        """The answer to a call that is left out: after two failures in a row, or over the limit of one answer."""
        return ToolAnswer(text=say("tool.left_out", self.work.language, tool=call.name), failed=True)

    def _declined(self, call: ToolCall) -> ToolAnswer | None:
        """The answer to a refused call, with the reason, or None; it is not asked about again in the turn."""
        held, key, language = self.progress, _key(call), self.work.language
        if held.refusal is None and key not in held.refused:
            return None
        refused = tuple(dict.fromkeys((*held.refused, key)))
        self.progress = replace(held, refusal=None, refused=refused)
        if held.refusal is None:
            return ToolAnswer(text=say("tool.refused_before", language, tool=call.name), failed=True)
        why = f"\n{say('tool.refused_why', language, why=held.refusal)}" if held.refusal else ""
        key = "tool.may_have_acted" if held.begun == call.id else "tool.refused"
        return ToolAnswer(text=say(key, language, tool=call.name) + why, failed=True)

    async def _answered(self, call: ToolCall) -> ToolAnswer:
        began, step, limit = self.clock.monotonic(), self.work.step, self._left()
        arguments = arguments_of(call)
        shown = arguments if isinstance(arguments, dict) else {}
        started = self.emit(ToolCallStarted(call=call.id, tool=call.name, args=shown), step=step)
        declined = self._declined(call)
        if declined is not None:
            answer = declined
        elif arguments is None:
            answer = ToolAnswer(text=say("tool.no_json", self.work.language, tool=call.name), failed=True)
        else:
            try:
                async with asyncio.timeout(limit):
                    answer = await self.tools.call(self._work_of(call), call, arguments)
            except TimeoutError:
                answer = ToolAnswer(text=say("tool.slow", self.work.language, tool=call.name), failed=True)
            except ConsentNeeded:
                waits = ToolCallCompleted(call=call.id, tool=call.name, state="pending", elapsed=0.0)
                self.emit(waits, step=step, parent=started.seq)
                raise
        elapsed = round(self.clock.monotonic() - began, 3)
        state = "refused" if declined else "error" if answer.failed else "success"
        if answer.commands:
            self.commands[call.id] = answer.commands
        if answer.changed:
            path, root = (arguments or {}).get("file_path"), Path(self.work.project)
            named = f" {shown_path(root / path, root)}" if isinstance(path, str) else ""
            self.effects[f"{call.name}{named}"] = None
        shown_text = answer.text[:RESULT]
        done = ToolCallCompleted(call=call.id, tool=call.name, state=state, elapsed=elapsed, result=shown_text)
        self.emit(done, step=step, parent=started.seq)
        return answer


def _over(error: type[KernelError], **facts: Any) -> KernelError:
    """The error for an exceeded limit of the turn."""
    message, hint = failure_text(facts)
    return error(message, hint=hint, **facts)


def _stood_in(done: Completion, language: Language) -> tuple[str, ...]:
    """A sentence for each model that failed before another one answered."""
    failed = (one for one in done.tried if one.why)
    return tuple(say("model.fallback", language, model=done.model, why=one.why) for one in failed)


def _key(call: ToolCall) -> str:
    """A key that is equal for equal calls, however their arguments are written."""
    body = json.dumps([call.name, arguments_of(call) or call.arguments], sort_keys=True)
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()


def _never(_value: str) -> None:
    raise ValueError("no number of JSON")


def arguments_of(call: ToolCall) -> dict[str, object] | None:
    """The arguments, or None if they are not a JSON object."""
    try:
        held = json.loads(call.arguments or "{}", parse_constant=_never)
        json.dumps(held, ensure_ascii=False).encode()  # a lone surrogate is not a character
    except (ValueError, RecursionError):
        return None
    return held if isinstance(held, dict) else None


def _without(progress: AgentState, last: ChatMessage) -> AgentState:
    """The state without calls that got no answer."""
    kept = (*progress.messages[:-1], *([replace(last, calls=(), wire="")] if last.text else []))
    return replace(progress, messages=kept)


class _Pieces:
    """Emits text in whole words, so that a secret is never split over two pieces."""

    def __init__(self, emit: Emit, step: int) -> None:
        self._emit, self._step, self._held = emit, step, ""

    def __call__(self, text: str) -> None:
        self._held += text
        at = whole_words(self._held)
        if at:
            self._say(self._held[:at])
            self._held = self._held[at:]

    def flush(self) -> None:
        if self._held:
            self._say(self._held)
            self._held = ""

    def _say(self, text: str) -> None:
        self._emit(RunContent(text=text), step=self._step)
