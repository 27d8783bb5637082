"""The agent loop: ask the model, carry out its tool calls, and repeat until an answer or a limit (JIT-10, X-23).

The limits are those of the turn (time, tokens, US dollars), and a call that fails three times in the same way. At a
limit the model is asked once more, without tools, to say what it has done; the state is kept, so that the work can go
on.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.adapters.models.calls import read_arguments
from navigator_kernel.agent_loop.window import (
    environment,
    fitting,
    is_shortened,
    opening,
    result_file,
    room_for_work,
    shown,
    tokens,
)
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
from navigator_kernel.text import Language, lazy_compile, whole_words
from navigator_kernel.values.allowed import LOOKING, RUN, left_out
from navigator_kernel.values.chat import (
    BY_KERNEL,
    CUT_OFF,
    Asked,
    ChatMessage,
    Completion,
    Spent,
    ToolCall,
    tried_of,
    usage_facts,
)
from navigator_kernel.values.packet import shown_path
from navigator_kernel.values.work import AgentState, AgentTask, ToolAnswer, gap

if TYPE_CHECKING:
    from navigator_kernel.model_ports import ChatModel, Tools
    from navigator_kernel.ports import Clock


GATHER = 0.03  # seconds; each piece of an answer costs a line in the log, and a frame for every reader
CALLS = 200  # tool calls in one answer; the others get an answer that says so
LONGEST = 3600.0  # seconds of one request if the turn has no limit
LAST = 60.0  # seconds of the last request, after a limit
CONTINUATIONS = 3
OVERFLOWS = 3  # times that a request is shortened because the provider says that it is too long
SMALLEST = 1_000  # tokens of work that can still be shortened

End = Literal["done", "length", "stuck", "time", "tokens", "cost"]


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
    """Works on one task with `model` and `tools`. `made` returns how many files the work has made so far, `store` keeps
    the whole of a result that is shortened, under a name, in `folder`."""

    work: AgentTask
    model: ChatModel
    tools: Tools
    clock: Clock
    emit: Emit
    budget: Budget = field(default_factory=Budget)
    spent: Spent = field(default_factory=Spent)  # before this task, in the same turn
    commands: dict[str, tuple[UICommand, ...]] = field(default_factory=dict)  # by the id of their call
    effects: dict[str, None] = field(default_factory=dict)  # tools that changed something, with the file, in order
    notes: dict[str, None] = field(default_factory=dict)  # what tools have to say to the person
    progress: AgentState = field(default_factory=AgentState)  # the last state reached
    keep: Callable[[AgentState], None] = lambda _progress: None  # called before and after each tool call
    loads: Callable[[str], AgentTask] | None = None  # the task of a skill that the model loads
    opened: AgentTask | None = None  # the task without a skill, as it began, once the model has loaded one
    made: Callable[[], int] = lambda: 0
    store: Callable[[str, str], None] = lambda _name, _text: None
    folder: str = ""
    _began: float | None = None
    _room: int = 0  # tokens that the provider has taken, once it refused a request as too long
    _end: str = ""  # the last two characters of the text that this loop has emitted

    async def run(self, progress: AgentState | None = None) -> tuple[AgentState, End]:
        """Runs the loop; returns the state and why it stopped. A task that waited continues with its waiting call.

        ApprovalRequired if the person has to agree; KernelErrors of the model are passed on.
        """
        self.progress, end = progress or AgentState(workspace=self.work.workspace), None
        if self.progress.words and not self.progress.open_calls:
            self.progress = self.progress.with_words()
        if self.progress.is_answered:  # the process was killed after the answer was complete
            self.progress, end = await self.continue_check(self.progress)
        while end is None:
            self.progress, end = await self.continue_check(await self.specialist(self.progress))
        return self.progress, end

    async def specialist(self, progress: AgentState) -> AgentState:
        """One round: the waiting call, or a request with all calls of its answer (JIT-7)."""
        self._load(progress.skill)
        if not progress.open_calls:
            if self._over_budget(progress):
                total = self.spent + progress.spent_now
                facts = {"tokens": total.input + total.output, "cost": round(total.cost, 6)}
                raise _over(ModelFailed, kind="over_budget", **facts)
            progress = await self._answer(progress, self._left())
            self.keep(progress)
        if progress.open_calls:
            progress = await self._called(progress, progress.open_calls)
        return progress

    async def continue_check(self, progress: AgentState) -> tuple[AgentState, End | None]:
        """The reason to stop, or None to continue; rules decide first (X-27). At a limit the model gives its last
        answer."""
        if progress.messages[-1].role != "assistant":
            is_late = self._seconds() <= 0
            limit: End | None = "time" if is_late else self._over_budget(progress)
            limit = "stuck" if any(count >= _most(key) for key, count in _counts(progress.messages).items()) else limit
            return (await self._last_answer(progress, limit), limit) if limit else (progress, None)
        before, self.progress = progress, progress
        goes_on_, checked = await goes_on(progress, self.model, self.work.language, self._lost)
        progress = replace(before, spent=self.progress.spent + (self._tell(checked) if checked else Spent()))
        if not goes_on_:
            return progress, "done"
        if progress.continuations >= CONTINUATIONS:
            return progress, "length"
        name = CUT_OFF if progress.finish == "length" else BY_KERNEL
        more = ChatMessage(role="user", text=say("prompt.continue", self.work.language), name=name)
        messages, continuations = (*progress.messages, more), progress.continuations + 1
        return replace(progress, messages=messages, continuations=continuations), None

    def reason(self, progress: AgentState, end: End) -> tuple[str, str]:
        """Why the work stopped, and what helps, as sentences."""
        total, language = self.spent + progress.spent_now, self.work.language
        facts: dict[str, Any] = {"tokens": total.input + total.output, "cost": total.cost}
        if end == "time":
            return failure_text({"kind": "timeout", "limit": "turn_time", "seconds": self.budget.seconds}, language)
        if end in {"tokens", "cost"}:
            return failure_text({"kind": "over_budget", **facts}, language)
        return say(f"specialist.{end}", language), ""

    def _over_budget(self, progress: AgentState) -> Literal["tokens", "cost"] | None:
        total, limit = self.spent + progress.spent_now, self.budget
        if limit.tokens and total.input + total.output >= limit.tokens:
            return "tokens"
        return "cost" if limit.cost and total.cost >= limit.cost else None

    def _seconds(self) -> float:
        """The seconds that are left for the turn."""
        if not self.budget.seconds:
            return LONGEST
        now = self.clock.monotonic()
        self._began = now if self._began is None else self._began
        return self.budget.seconds - (now - self._began)

    def _left(self) -> float:
        """The seconds that are left for the turn; TimedOut if there are none."""
        left = self._seconds()
        if left <= 0:
            raise _over(TimedOut, kind="timeout", limit="turn_time", seconds=self.budget.seconds)
        return left

    async def _answer(self, progress: AgentState, limit: float) -> AgentState:
        """Asks for the next answer. An empty one after some work is asked for once more."""
        if progress.rounds:
            # How far the work is: `round 14 · 41k tokens · $0.12 · 3 files`
            language, spent, files = self.work.language, progress.spent, self.made() + len(self.effects)
            total = spent.input + spent.output
            rounded = f"{total / 1_000:.0f}k" if total < 999_500 else f"{total / 1_000_000:.1f}M"
            parts = [
                say("status.round", language, number=progress.rounds + 1),
                say("status.tokens", language, number=total if total < 1_000 else rounded),
                *([f"${spent.cost:.2f}"] if spent.priced and spent.cost else []),
                *([say("status.files", language, number=files)] if files else []),
            ]
            self.emit(Told(text=" · ".join(parts)), step=self.work.step)
        try:
            return await self._asked(progress, limit)
        except ModelFailed as error:
            has_worked = progress.messages and progress.messages[-1].role == "tool"
            if error.data.get("kind") != "empty" or not has_worked:
                raise
        more = ChatMessage(role="user", text=say("prompt.empty", self.work.language), name=BY_KERNEL)
        progress = replace(self.progress, messages=(*self.progress.messages, more))
        return await self._asked(progress, self._left())

    async def _last_answer(self, progress: AgentState, limit: End) -> AgentState:
        """The state with a last answer, for which the model may call no tool; unchanged if it gives none."""
        why, _hint = self.reason(progress, limit)
        last = ChatMessage(role="user", text=say("prompt.last", self.work.language, why=why), name=BY_KERNEL)
        try:
            asked = replace(progress, messages=(*progress.messages, last))
            answered = await self._asked(asked, LAST, without_calls=True)
        except KernelError:
            return replace(progress, spent=self.progress.spent)
        message = replace(answered.messages[-1], calls=(), wire="")
        if not message.text.strip():
            return replace(progress, spent=answered.spent)
        return replace(answered, messages=(*answered.messages[:-1], message))

    async def _asked(self, progress: AgentState, limit: float, *, without_calls: bool = False) -> AgentState:
        """Sends one request, again with less if it is too long for the provider; returns the state with the answer."""
        try:
            self.tools.admit(self.work)
        except ConsentNeeded as needed:
            raise ApprovalRequired(progress, needed) from needed
        offered = self.tools.offered(self.work)
        if not progress.messages and (missing := left_out(self.work.allowed, {spec.name for spec in offered})):
            self.emit(ToolsLeftOut(skill=self.work.skill, tools=missing), step=self.work.step)
        self.progress = progress
        for attempt in range(OVERFLOWS + 1):
            # The state, cut where its messages take more room than the model has; what is cut is stored first
            cut = fitting(self.progress.messages, self.progress.cut, self._room_left(), self.work.language)
            for message in self.progress.messages[self.progress.cut.shortened : cut.shortened]:
                if self.folder and is_shortened(message):
                    self.store(result_file(message.call), message.text)
            progress, room = (replace(self.progress, cut=cut)), self._room_left()
            sent = shown(progress.messages, progress.cut, room, self.work.language, self.folder)
            spare = not (self.work.workspace or self.work.tools)  # without these, the model needs only the skill's text
            asked = Asked(
                messages=(*opening(self.opened or self.work), *sent),
                tools=offered,
                calls=not without_calls,
                limit=limit,
                spare=spare,
                waits=self._waits,
            )
            before = "" if progress.is_cut_off else gap(self._end)
            pieces, self.progress = _Pieces(self._say, before), progress
            try:
                done = await self.model.complete(asked, pieces)
                break
            except KernelError as error:
                self._lost(error)
                if not self._may_shorten(error, asked) or attempt == OVERFLOWS:
                    raise
            except asyncio.CancelledError:  # the usage stays unknown
                self._use(self.model.name, Spent(requests=1, unknown=1, priced=False))
                raise
            finally:
                pieces.flush()
        progress = self.progress
        failed = (one for one in done.tried if one.why)
        stood_in = (say("model.fallback", self.work.language, model=done.model, why=one.why) for one in failed)
        return replace(
            progress,
            messages=(*progress.messages, done.message),
            spent=progress.spent + self._tell(done),
            model=done.model,
            finish=done.finish,
            notes=tuple(dict.fromkeys((*progress.notes, *stood_in))),
        )

    def _room_left(self) -> int:
        """The tokens that the work may take in a request."""
        return self._room or room_for_work(self.model.context, opening(self.opened or self.work))

    def _may_shorten(self, error: KernelError, asked: Asked) -> bool:
        """Whether the request can be sent again with half of its work, because it was too long."""
        work = sum(map(tokens, asked.messages)) - sum(map(tokens, opening(self.opened or self.work)))
        if error.data.get("kind") != "too_long" or work < SMALLEST or error.data.get("begun"):
            return False
        self._room = work // 2
        return True

    def _say(self, text: str) -> None:
        self.emit(RunContent(text=text), step=self.work.step)
        self._end = f"{self._end}{text}"[-2:]

    def _waits(self, model: str, seconds: float) -> None:
        text = say("model.waits", self.work.language, model=model, seconds=f"{seconds:.0f}")
        self.emit(Told(text=text), step=self.work.step)

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
        self.progress, language = progress, self.work.language  # progress is saved call by call, whatever ends the loop
        for at, call in enumerate(calls):
            if at >= CALLS:
                answer = ToolAnswer(text=say("tool.too_many", language, tool=call.name, most=CALLS), failed=True)
            elif progress.finish == "length" and call is calls[-1]:
                answer = ToolAnswer(text=say("tool.cut", language, tool=call.name), failed=True)
            elif self._seconds() <= 0:
                answer = ToolAnswer(text=say("tool.no_time", language, tool=call.name), failed=True)
            else:
                self.keep(replace(self.progress, begun=call.id))
                try:
                    answer = await self._answered(call)
                except ConsentNeeded as asked:
                    raise ApprovalRequired(self.progress, asked) from asked
                except asyncio.CancelledError:  # whether it acted is not known
                    self.progress = replace(self.progress, begun=call.id)
                    raise
            if answer.skill and self._load(answer.skill):
                answer = replace(answer, text=f"{answer.text}\n\n{environment(replace(self.work, now=''))}".strip())
                self.progress = replace(self.progress, skill=answer.skill, workspace=self.work.workspace)
            result = ChatMessage(
                role="tool", text=answer.text, call=call.id, name=call.name, files=answer.files, failed=answer.failed
            )
            messages = (*self.progress.messages, result)
            if is_nearly_stuck(messages):
                result = replace(result, text=f"{result.text}{NOTICE}{say('tool.same_again', language)}")
                messages = (*self.progress.messages, result)
            self.progress = replace(self.progress, messages=messages, begun="", intent=())
            self.keep(self.progress)
        progress = replace(self.progress, rounds=progress.rounds + 1)
        return progress.with_words() if progress.words else progress

    def _load(self, skill: str) -> bool:
        """Goes on as the task of a skill that the model loaded, unless it is that of a skill already."""
        if not skill or self.work.skill or self.loads is None:
            return False
        self.opened, self.work = self.work, self.loads(skill)
        return True

    def _declined(self, call: ToolCall) -> ToolAnswer | None:
        """The answer to a refused call, with the reason, or None; it is not asked about again in the turn."""
        held, key, language = self.progress, call_key(call), self.work.language
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
        arguments = read_arguments(call.arguments)
        started = self.emit(ToolCallStarted(call=call.id, tool=call.name, args=arguments or {}), step=step)
        declined = self._declined(call)
        if declined is not None:
            answer = declined
        elif arguments is None:
            answer = ToolAnswer(text=say("tool.no_json", self.work.language, tool=call.name), failed=True)
        else:
            work, before = self.work, self.progress
            if before.begun == call.id:  # it was in progress when the process ended
                work = replace(work, begun=call.id, intent=before.intent)
            try:
                async with asyncio.timeout(limit):
                    answer = await self.tools.call(work, call, arguments)
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
        if answer.note:
            self.notes[answer.note] = None
        if answer.changed:
            path, root = (arguments or {}).get("file_path", (arguments or {}).get("to")), Path(self.work.project)
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


class _Pieces:
    """Passes text on in whole words, so that a secret is never split over two pieces: the first ones at once, later
    ones together, every GATHER seconds."""

    def __init__(self, pass_on: Callable[[str], None], before: str) -> None:
        self._pass_on, self._rest, self._before = pass_on, "", before
        self._later: asyncio.TimerHandle | None = None  # set while what comes has to wait

    def __call__(self, text: str) -> None:
        self._rest += self._before + text
        self._before = ""
        if self._later is None and (at := whole_words(self._rest)):
            self._pass_on(self._rest[:at])
            self._rest = self._rest[at:]
            self._later = asyncio.get_running_loop().call_later(GATHER, self._gathered)

    def flush(self) -> None:
        if self._later is not None:
            self._later.cancel()
        if self._rest:
            self._pass_on(self._rest)
            self._rest = ""

    def _gathered(self) -> None:
        self._later = None
        with suppress(KernelError):  # the next piece raises it
            self("")


# A model makes no progress if the same call fails in the same way, or gives the same result, again and again (SAF-5).

# Answers of a model with the same call and the same error, or the same result; it is told after one less
FAILURES, RESULTS = 3, 10
NOTICE = "\n\n⚠ "  # what stands between a result and the notice that it came before


def is_nearly_stuck(messages: tuple[ChatMessage, ...]) -> bool:
    """Whether the last message, the result of a call, may not come once more."""
    calls = next((message.calls for message in reversed(messages) if message.role == "assistant"), ())
    call = next((call for call in calls if call.id == messages[-1].call), None)
    key = _key(call, messages[-1]) if call is not None else ""
    return _counts(messages)[key] == _most(key) - 1


def _counts(messages: Iterable[ChatMessage]) -> Counter[str]:
    """How many answers contain each call with its result. Equal calls of one answer count once, since the model has not
    seen a result in between. What the person says, and a call that did something new, begin the count again; only
    looking at files does not."""
    counts: Counter[str] = Counter()
    calls: dict[str, ToolCall] = {}
    in_this_answer: set[str] = set()
    done: set[str] = set()
    for message in messages:
        if message.role == "user" and not message.name:
            counts.clear()
        elif message.role == "assistant":
            calls, in_this_answer = {call.id: call for call in message.calls}, set()
        elif (call := calls.get(message.call)) is not None:
            key = _key(call, message)
            if not _failed(message) and call.name not in LOOKING and key not in done:
                counts.clear()
                done.add(key)
            counts[key] += key not in in_this_answer
            in_this_answer.add(key)
    return counts


def _key(call: ToolCall, message: ChatMessage) -> str:
    """A key that is equal for equal results of equal calls; the first letter says whether it is an error."""
    return f"{'-' if _failed(message) else '+'}{call_key(call)} {message.text.partition(NOTICE)[0]}"


def _most(key: str) -> int:
    return FAILURES if key.startswith("-") else RESULTS


def _failed(message: ChatMessage) -> bool:
    """Whether a tool failed, or a command that it ran."""
    begin = "exit code "
    ran_badly = message.name == RUN and message.text.startswith(begin) and not message.text.startswith(f"{begin}0")
    return message.failed or ran_badly


def call_key(call: ToolCall) -> str:
    """A key that is equal for equal calls, however their arguments are written."""
    body = json.dumps([call.name, read_arguments(call.arguments) or call.arguments], sort_keys=True)
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()


# Whether an answer is complete is decided by rules, or by the model if no rule decides (X-27, JIT-7).

END = 200  # characters at the end of an answer that are searched for an announcement
LIMIT = 20.0  # seconds
_ANNOUNCES = lazy_compile(
    r"\b(?:next,? i(?:['’]ll| will)|i(?:['’]ll| will) (?:now|then|next)|let me (?:now|next)|now i(?:['’]ll| will))\b"
    r"[^.!?]*[.:…]*\s*$"
    r"|(?:接下来|下一步|然后)[，,]?我?(?:将|会|要)[^。！？]*[。：…]*\s*$|(?:现在|让)我(?:来|将|再)[^。！？]*[。：…]*\s*$",
    re.IGNORECASE,
)
_YES = lazy_compile(r'"continue"\s*:\s*true')


async def goes_on(
    progress: AgentState, model: ChatModel, language: Language, lost: Callable[[KernelError], None]
) -> tuple[bool, Completion | None]:
    """Whether the answer goes on: yes if it was cut off; if it announces work, after some was done, the model is asked;
    otherwise no. The model's reply is returned, too, as it has a cost; `lost` gets a failure, which may also have
    one."""
    if progress.finish == "length":
        return True, None
    text = progress.messages[-1].text[-END:]
    if not progress.rounds or not _ANNOUNCES.search(text):
        return False, None
    asked = Asked(
        messages=(
            ChatMessage(role="system", text=say("prompt.continue_check", language)),
            ChatMessage(role="user", text=text),
        ),
        temperature=0.1,
        tokens=200,
        limit=LIMIT,
    )
    try:
        done = await model.complete(asked)
    except KernelError as error:
        lost(error)
        return False, None
    return _YES.search(done.message.text) is not None, done
