"""A turn in steps, for applications that run it in a graph engine of their own (JIT-6, 7).

The steps call the same parts as `run_turn`: phase 1, the agents, the loop's `specialist` and `continue_check`. Between
two of them everything is in a state of JSON values, so that an engine can store it, and another process can continue.
Workflows of several steps exist only in `run_turn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from msgspec import Struct, field

from navigator_kernel.agent_loop.loop import AgentLoop, ApprovalRequired
from navigator_kernel.agent_loop.specialist import Specialist
from navigator_kernel.dispatch import EventStream
from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.events import ApprovalRequested, ApprovalResolved, Listener, RunCompleted, RunContent, RunStarted
from navigator_kernel.language.answers import is_yes
from navigator_kernel.language.wording import say
from navigator_kernel.text import language_of
from navigator_kernel.turn.answers import resume
from navigator_kernel.turn.deliver import (
    KERNEL,
    DispatchDeps,
    StartedStep,
    begin,
    dispatch_deps,
    end,
    nothing_ready,
    wants_model,
)
from navigator_kernel.turn.message import preprocess
from navigator_kernel.turn.plan import route_request
from navigator_kernel.turn.reply import TurnSummary, own_report
from navigator_kernel.turn.turn import context_of
from navigator_kernel.values.chat import Spent
from navigator_kernel.values.packet import Report, packet_from, report_of, report_to_dict
from navigator_kernel.values.request import Message, Said, Session
from navigator_kernel.values.route import NeedClarification
from navigator_kernel.values.work import AgentState, progress_of, redacted

if TYPE_CHECKING:
    from navigator_kernel.ports import Kernel

Step = Literal["router", "loader", "specialist", "continue_check", "idle_response", "person", "end"]


class Answered(TypedDict):
    """What the turn says to the person, and the state of its report."""

    text: str
    state: str


class TurnState(TypedDict, total=False):
    """The state of JIT-6 as JSON values. `steps` are the remaining orders, each with its fallbacks; `prepared` is the
    report with the current prompt, `seq` the event that it began with; `waits` is the question to the person, `answers`
    are their answers so far; `report` is the last report. A step that ends something has it in `says`."""

    current_skill: str
    skill_sop: str
    available_tools: list[str]
    run: str
    steps: list[list[dict[str, Any]]]
    prepared: dict[str, Any]
    seq: int
    progress: str
    waits: dict[str, Any]
    answers: list[str]
    report: dict[str, Any]
    says: Answered


class _Run(Struct, kw_only=True):
    """The data of one run in memory; rebuilt from the state if another process continues the run."""

    emit: EventStream
    delivery: DispatchDeps
    specialist: Specialist | None
    began: float
    loop: AgentLoop | None = None


class TurnSteps(Struct):
    """The steps over `kernel`; each returns its changes to the state. `history` is the conversation; its last entry by
    the person is the message. `hear` gets the events."""

    kernel: Kernel
    hear: Listener
    _runs: dict[str, _Run] = field(default_factory=dict)

    async def router(self, state: TurnState, history: Sequence[Said], session_id: str) -> TurnState:
        """Phase 1: finds the skills that are meant, if any (JIT-8)."""
        kernel, text = self.kernel, _text(history)
        answers = [] if state.get("waits") else state.get("answers", [])  # a waiting question has no answer yet
        current = self._run(state, history, state["run"] if answers else kernel.ids.new())
        session = Session(id=session_id, history=_before(history))
        if not answers:
            current.emit(RunStarted(session=session.id, message=text, language=language_of(text)))
        message = Message(text=" ".join([text, *answers]), answers=tuple(answers))
        resumed = resume(message, session, kernel.clock.now())
        request = preprocess(resumed.message, kernel.files)
        context = context_of(resumed, request, kernel, current.emit.run)
        routed = await route_request(request, resumed.session, context, kernel, current.emit)
        if current.specialist is not None:
            current.specialist.spent += routed.spent
        new = TurnState(
            run=current.emit.run,
            steps=[[packet.to_dict() for packet in step.packets] for step in routed.orders.steps],
        )
        new |= TurnState(
            current_skill="", skill_sop="", available_tools=[], progress="", waits={}, report={}, answers=answers
        )
        if new["steps"]:
            return new
        summary = TurnSummary(
            run=current.emit.run, request=request, asked=text, session=session, notice=None, elapsed=0
        )
        report = own_report(routed.decision, summary, kernel.clock)
        question = {"question": report.summary} if isinstance(routed.decision.result, NeedClarification) else {}
        return new | TurnState(report=report_to_dict(report), waits=question)

    async def loader(self, state: TurnState, history: Sequence[Said]) -> TurnState:
        """Loads the next order, or the first of its fallbacks that can be done: a skill's text and tools (JIT-9)."""
        current = self._run(state, history)
        report = nothing_ready(current.delivery)
        for packet in map(packet_from, state["steps"][0]):
            begun = await begin(packet, current.delivery, current.emit)
            if current.specialist is not None and begun.report is not None and wants_model(begun):
                work = current.specialist.assigned(begun.packet, begun.report)
                return TurnState(
                    steps=[[begun.packet.to_dict()], *state["steps"][1:]],
                    prepared=report_to_dict(begun.report),
                    seq=begun.seq,
                    current_skill=work.skill,
                    skill_sop=work.guide,
                    available_tools=[tool.name for tool in current.specialist.tools.offered(work)],
                    progress=AgentState().kept(),
                )
            report = end(begun, begun.report or report, current.delivery, current.emit)
            if report.state != "error" or not report.recoverable or report.effects:
                break
        return await self._told(state, current, report)

    async def specialist(self, state: TurnState, history: Sequence[Said]) -> TurnState:
        """Runs one round: the model's answer and all actions that it asks for (JIT-10)."""
        current = self._run(state, history)
        specialist, loop = _working(current, state)
        try:
            progress = await loop.specialist(progress_of(state["progress"]))
        except ApprovalRequired as waiting:
            return await self._told(state, current, specialist.waiting(waiting, loop.work, current.began))
        except KernelError as error:
            return await self._done(state, current, specialist.failed(error, loop.work, loop.progress, current.began))
        return TurnState(progress=redacted(progress, self.kernel.redact).kept())

    async def continue_check(self, state: TurnState, history: Sequence[Said]) -> TurnState:
        """Checks whether the work continues (X-27); if not, returns its result."""
        current = self._run(state, history)
        specialist, loop = _working(current, state)
        loop.progress, why = await loop.continue_check(progress_of(state["progress"]))
        if why is not None:
            return await self._done(state, current, specialist.told(loop, loop.progress, why, current.began))
        return TurnState(progress=redacted(loop.progress, self.kernel.redact).kept())

    async def person(self, state: TurnState, history: Sequence[Said], answer: object) -> TurnState:
        """Takes the person's answer to `waits`: True, False or words."""
        waits = state["waits"]
        if "subject" not in waits:
            return TurnState(answers=[*state.get("answers", []), str(answer)], waits={})
        current, agreed = self._run(state, history), answer is True or (isinstance(answer, str) and is_yes(answer))
        current.emit(ApprovalResolved(subject=waits["subject"], granted=agreed))
        if not agreed:
            declined = say("declined", language_of(_text(history)))
            return await self._over(current, declined, "success") | TurnState(waits={}, progress="")
        for subject in (waits["subject"], *waits.get("also", ())):
            self.kernel.consents.allow(state["run"], subject, once=True)
        again = [_again(packet) for packet in state["steps"][0]]
        return TurnState(waits={}, steps=[again, *state["steps"][1:]])

    async def idle_response(self, state: TurnState, history: Sequence[Said]) -> TurnState:
        """Answers a message that needs no skill."""
        current = self._run(state, history)
        if not state["steps"]:
            report = report_of(state["report"])
            return await self._over(current, report.raw or report.summary, report.state)
        begun = await begin(packet_from(state["steps"][0][0]), current.delivery, current.emit)
        report = nothing_ready(current.delivery)
        if current.specialist is not None:
            report = await current.specialist.work(begun.packet, None, current.emit)
        return await self._told(state, current, end(begun, report, current.delivery, current.emit))

    async def _done(self, state: TurnState, current: _Run, report: Report) -> TurnState:
        """Ends an order that a model worked on."""
        specialist, loop = _working(current, state)
        report, current.loop = specialist.closed(loop, report, current.emit), None
        packet, prepared = packet_from(state["steps"][0][0]), report_of(state["prepared"])
        begun = StartedStep(packet=packet, seq=state["seq"], report=prepared)
        return await self._told(state, current, end(begun, report, current.delivery, current.emit))

    async def _told(self, state: TurnState, current: _Run, report: Report) -> TurnState:
        """Ends a step, or waits for consent within it; after a successful step the next one follows."""
        changes = TurnState(report=report_to_dict(report), progress=report.progress)
        if report.state == "pending" and report.subject:
            current.emit(ApprovalRequested(subject=report.subject, detail=report.summary))
            call = {key: report.data[key] for key in ("tool", "arguments") if key in report.data}
            await self._close()
            also = {"also": list(report.also)} if report.also else {}
            return changes | TurnState(waits={"question": report.summary, "subject": report.subject, **also, **call})
        text = report.raw or report.summary
        if report.state in {"success", "partial"} and not report.progress and len(state["steps"]) > 1:
            return changes | TurnState(
                says={"text": text, "state": report.state}, steps=state["steps"][1:], progress=""
            )
        if not report.by_model:  # a model's text is streamed
            current.emit(RunContent(text=report.summary))
        return changes | await self._over(current, text, report.state)

    async def _over(self, current: _Run, text: str, how: str) -> TurnState:
        current.emit(RunCompleted(state=how, summary=text))
        self._runs.pop(current.emit.run, None)
        await self._close()
        return TurnState(says={"text": text, "state": how}, steps=[], progress="", answers=[])

    async def _close(self) -> None:
        if self.kernel.models is not None:
            await self.kernel.models.close()

    def _run(self, state: TurnState, history: Sequence[Said], run: str = "") -> _Run:
        run, kernel = run or state["run"], self.kernel
        if run not in self._runs:
            try:
                seq = len(kernel.run_log.read(run))
            except NotFound:
                seq = 0
            before = Session(id=run, history=_before(history), private=True)  # the state does not record what was read
            working = kernel.specialist(before, Spent())
            emit = EventStream(run, 0, kernel.run_log, kernel.clock, [self.hear], seq, kernel.redact)
            self._runs[run] = _Run(
                emit=emit,
                delivery=dispatch_deps(kernel, working),
                specialist=working if isinstance(working, Specialist) else None,
                began=kernel.clock.monotonic(),
            )
        return self._runs[run]


def first_step(state: TurnState) -> Step:
    """The step after `router`."""
    if state["waits"]:
        return "person"
    steps = state["steps"]
    return "loader" if steps and steps[0][0]["subagent_type"] != KERNEL else "idle_response"


def next_step(state: TurnState) -> Step:
    """The step after any other but `specialist`."""
    if state["waits"]:
        return "person"
    if state.get("answers") and not state["steps"]:  # an answer to a question that came before any orders
        return "router"
    if state["progress"]:
        return "specialist"
    return "loader" if state["steps"] else "end"


def step_after_round(state: TurnState) -> Step:
    """The step after `specialist`."""
    after = next_step(state)
    return "continue_check" if after == "specialist" else after


def _working(current: _Run, state: TurnState) -> tuple[Specialist, AgentLoop]:
    if current.specialist is None:
        raise NotFound("no model is set", hint="navigator model use <provider>:<model>")
    if current.loop is None:
        packet = packet_from(state["steps"][0][0])
        work = current.specialist.assigned(packet, report_of(state["prepared"]))
        current.loop = current.specialist.loop(work, current.emit, packet)
    return current.specialist, current.loop


def _text(history: Sequence[Said]) -> str:
    """The person's last message, or empty."""
    return next((entry.text for entry in reversed(history) if entry.role == "user"), "")


def _before(history: Sequence[Said]) -> tuple[Said, ...]:
    """The conversation before the person's last message."""
    return tuple(history[: max((at for at, entry in enumerate(history) if entry.role == "user"), default=0)])


def _again(packet: dict[str, Any]) -> dict[str, Any]:
    """The order as a new one, with another idempotency key, after the person agreed to it."""
    key = f"{packet['context']['idempotency_key']}/agreed"
    return {**packet, "context": {**packet["context"], "idempotency_key": key}}
