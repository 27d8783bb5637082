"""The loop of phase 2: ask, do what is asked for, ask again, until there is an answer or a limit (JIT-10, X-23)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from navigator_kernel.errors import ConsentNeeded, ModelFailed, TimedOut
from navigator_kernel.events import Emit, RunContent, ToolCallCompleted, ToolCallStarted, UICommand, Usage
from navigator_kernel.specialist.continuation import goes_on
from navigator_kernel.specialist.opening import opening
from navigator_kernel.specialist.window import WORK, newest
from navigator_kernel.values.chat import Asked, ChatMessage, Completion, Spent, ToolCall
from navigator_kernel.values.wording import say
from navigator_kernel.values.work import Assignment, Progress, ToolAnswer

if TYPE_CHECKING:
    from navigator_kernel.model_ports import ChatModel, Tools
    from navigator_kernel.ports import Clock

ROUNDS = 10  # of tools
CONTINUATIONS = 3
FAILURES = 2  # in a row (SAF-5)

End = Literal["done", "rounds", "failures", "length"]


class Waiting(Exception):
    """The person has to agree to a call first; `progress` is how far it came, with the call still open."""

    def __init__(self, progress: Progress, asked: ConsentNeeded) -> None:
        super().__init__(asked.message)
        self.progress, self.asked = progress, asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one turn may take: tokens, US dollars and seconds; 0 for any."""

    tokens: int = 0
    cost: float = 0.0
    seconds: float = 300.0


@dataclass(slots=True, kw_only=True)
class Loop:
    """One assignment that is worked on with `model` and `tools`."""

    work: Assignment
    model: ChatModel
    tools: Tools
    clock: Clock
    emit: Emit
    budget: Budget = field(default_factory=Budget)
    spent: Spent = field(default_factory=Spent)  # by what came before it in the same turn
    commands: dict[str, tuple[UICommand, ...]] = field(default_factory=dict)  # by the call that they came of

    async def run(self, progress: Progress | None = None) -> tuple[Progress, End]:
        """How far it came and why it stopped there; one that waited goes on with the call that it waited for.

        Waiting where the person has to agree, KernelErrors of the model as they are.
        """
        began, progress = self.clock.monotonic(), progress or Progress()
        if progress.open_calls:
            progress = await self._called(progress, progress.open_calls)
        while True:
            left = self.budget.seconds - (self.clock.monotonic() - began)
            if left <= 0:
                hint = "raise turn_seconds in [models]"
                raise TimedOut(f"this turn took over {self.budget.seconds:g} s", hint=hint)
            progress = await self._asked(progress, left)
            last = progress.messages[-1]
            if last.calls:
                if progress.rounds >= ROUNDS:
                    return _without(progress, last), "rounds"
                progress = await self._called(progress, last.calls)
                if progress.failures >= FAILURES:
                    return progress, "failures"
            elif not await goes_on(progress, self.model, self.work.language):
                return progress, "done"
            elif progress.continuations >= CONTINUATIONS:
                return progress, "length"
            else:
                more = ChatMessage(role="user", text=say("prompt.continue", self.work.language))
                messages = (*progress.messages, more)
                progress = replace(progress, messages=messages, continuations=progress.continuations + 1)

    async def _asked(self, progress: Progress, limit: float) -> Progress:
        self._refuse_more(progress.spent)
        messages = (*opening(self.work), *newest(progress.messages, WORK))
        asked = Asked(messages=messages, tools=self.tools.offered(self.work), limit=limit)
        with_pieces = _Pieces(self.emit, self.work.step)
        done = await self.model.complete(asked, with_pieces)
        with_pieces.flush()
        self._tell(done)
        spent = progress.spent + done.spent
        messages = (*progress.messages, done.message)
        return replace(progress, messages=messages, spent=spent, model=done.model, finish=done.finish)

    def _refuse_more(self, spent: Spent) -> None:
        """A budget stops a turn before the next request, not in the middle of one."""
        total, limit = self.spent + spent, self.budget
        tokens = total.input + total.output
        if (limit.tokens and tokens >= limit.tokens) or (limit.cost and total.cost >= limit.cost):
            message = f"this turn has used up what it may: {tokens} tokens, ${total.cost:.4f}"
            raise ModelFailed(message, hint="raise turn_tokens or turn_cost in [models]", kind="over_budget")

    def _tell(self, done: Completion) -> None:
        told = done.spent.to_dict()
        usage = Usage(
            model=done.model,
            input_tokens=told["input_tokens"],
            output_tokens=told["output_tokens"],
            cached_tokens=told["cached_tokens"],
            cost=told["cost"],
            skill=self.work.skill,
        )
        self.emit(usage, step=self.work.step)

    async def _called(self, progress: Progress, calls: tuple[ToolCall, ...]) -> Progress:
        """Each call is answered, in order, so that none is left open."""
        messages, failures = list(progress.messages), progress.failures
        for call in calls:
            try:
                answer = await self._answered(call)
            except ConsentNeeded as asked:
                raise Waiting(replace(progress, messages=tuple(messages), failures=failures), asked) from asked
            failures = failures + 1 if answer.failed else 0
            messages.append(ChatMessage(role="tool", text=answer.text, call=call.id, name=call.name))
        return replace(progress, messages=tuple(messages), rounds=progress.rounds + 1, failures=failures)

    async def _answered(self, call: ToolCall) -> ToolAnswer:
        began, step = self.clock.monotonic(), self.work.step
        arguments = arguments_of(call)
        shown = arguments if isinstance(arguments, dict) else {}
        started = self.emit(ToolCallStarted(call=call.id, tool=call.name, args=shown), step=step)
        if arguments is None:
            answer = ToolAnswer(text=say("tool.no_json", self.work.language, tool=call.name), failed=True)
        else:
            try:
                answer = await self.tools.call(self.work, call.name, arguments)
            except ConsentNeeded:
                waits = ToolCallCompleted(call=call.id, tool=call.name, state="pending", elapsed=0.0)
                self.emit(waits, step=step, parent=started.seq)
                raise
        elapsed = round(self.clock.monotonic() - began, 3)
        state = "error" if answer.failed else "success"
        if answer.commands:
            self.commands[call.id] = answer.commands
        done = ToolCallCompleted(call=call.id, tool=call.name, state=state, elapsed=elapsed)
        self.emit(done, step=step, parent=started.seq)
        return answer


def arguments_of(call: ToolCall) -> dict[str, object] | None:
    """None where they are no JSON object."""
    try:
        held = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return held if isinstance(held, dict) else None


def _without(progress: Progress, last: ChatMessage) -> Progress:
    """A call that nobody answers is none."""
    kept = (*progress.messages[:-1], *([replace(last, calls=(), wire="")] if last.text else []))
    return replace(progress, messages=kept)


class _Pieces:
    """Tells pieces of text at the blanks between them, so that what must not be shown can be seen whole."""

    def __init__(self, emit: Emit, step: int) -> None:
        self._emit, self._step, self._held = emit, step, ""

    def __call__(self, text: str) -> None:
        self._held += text
        at = max(self._held.rfind(" "), self._held.rfind("\n"), self._held.rfind("。"), self._held.rfind("，")) + 1
        if at:
            self._say(self._held[:at])
            self._held = self._held[at:]

    def flush(self) -> None:
        if self._held:
            self._say(self._held)
            self._held = ""

    def _say(self, text: str) -> None:
        self._emit(RunContent(text=text), step=self._step)
