"""A turn in steps, for applications that run it in a graph engine of their own (JIT-6, 7).

The steps call the same parts as `run_turn`: phase 1, the agents, the loop's `specialist` and `continue_check`. Between
two of them everything is in a state of JSON values, so that an engine can store it, and another process can continue.
Workflows of several steps exist only in `run_turn`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

from msgspec import Struct, field

from navigator_kernel.agent_loop.loop import AgentLoop, ApprovalRequired
from navigator_kernel.agent_loop.specialist import Specialist
from navigator_kernel.dispatch import EventStream
from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.events import ApprovalRequested, ApprovalResolved, RunCompleted, RunContent, RunStarted
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
    from collections.abc import Sequence

    from navigator_kernel.events import Listener
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
    """The steps over `kernel`; each returns its changes to the state. `said` is the conversation, whose last entry of
    the person is the message. `hear` gets the events."""

    kernel: Kernel
    hear: Listener
    _runs: dict[str, _Run] = field(default_factory=dict)

    async def router(self, state: TurnState, said: Sequence[Said], session_id: str) -> TurnState:
        """Phase 1: finds the skills that are meant, if any (JIT-8)."""
        kernel, text = self.kernel, _text(said)
        answers = [] if state.get("waits") else state.get("answers", [])  # a waiting question has no answer yet
        held = self._run(state, said, state["run"] if answers else kernel.ids.new())
        session = Session(id=session_id, history=_before(said))
        if not answers:
            held.emit(RunStarted(session=session.id, message=text, language=language_of(text)))
        message = Message(text=" ".join([text, *answers]), answers=tuple(answers))
        resumed = resume(message, session, kernel.clock.now())
        request = preprocess(resumed.message, kernel.files)
        context = context_of(resumed, request, kernel, held.emit.run)
        routed = await route_request(request, resumed.session, context, kernel, held.emit)
        if held.specialist is not None:
            held.specialist.spent += routed.spent
        new = TurnState(
            run=held.emit.run, steps=[[one.to_dict() for one in step.packets] for step in routed.orders.steps]
        )
        new |= TurnState(
            current_skill="", skill_sop="", available_tools=[], progress="", waits={}, report={}, answers=answers
        )
        if new["steps"]:
            return new
        told = TurnSummary(run=held.emit.run, request=request, asked=text, session=session, notice=None, elapsed=0)
        report = own_report(routed.decision, told, kernel.clock)
        asked = {"question": report.summary} if isinstance(routed.decision.result, NeedClarification) else {}
        return new | TurnState(report=report_to_dict(report), waits=asked)

    async def loader(self, state: TurnState, said: Sequence[Said]) -> TurnState:
        """Loads the next order, or the first of its fallbacks that can be done: a skill's text and tools (JIT-9)."""
        held = self._run(state, said)
        report = nothing_ready(held.delivery)
        for packet in map(packet_from, state["steps"][0]):
            begun = await begin(packet, held.delivery, held.emit)
            if held.specialist is not None and begun.report is not None and wants_model(begun, held.delivery):
                return _loaded(state, begun, begun.report, held.specialist)
            report = end(begun, begun.report or report, held.delivery, held.emit)
            if report.state != "error" or not report.recoverable or report.effects:
                break
        return await self._told(state, held, report)

    async def specialist(self, state: TurnState, said: Sequence[Said]) -> TurnState:
        """Runs one round: the model's answer and all actions that it asks for (JIT-10)."""
        held = self._run(state, said)
        specialist, loop = _working(held, state)
        try:
            progress = await loop.specialist(progress_of(state["progress"]))
        except ApprovalRequired as waiting:
            return await self._told(state, held, specialist.waiting(waiting, loop.work, held.began))
        except KernelError as error:
            return await self._done(state, held, specialist.failed(error, loop.work, loop.progress, held.began))
        return TurnState(progress=redacted(progress, self.kernel.redact).kept())

    async def continue_check(self, state: TurnState, said: Sequence[Said]) -> TurnState:
        """Checks whether the work continues (X-27); if not, returns its result."""
        held = self._run(state, said)
        specialist, loop = _working(held, state)
        loop.progress, why = await loop.continue_check(progress_of(state["progress"]))
        if why is not None:
            return await self._done(state, held, specialist.told(loop, loop.progress, why, held.began))
        return TurnState(progress=redacted(loop.progress, self.kernel.redact).kept())

    async def person(self, state: TurnState, said: Sequence[Said], answer: object) -> TurnState:
        """Takes the person's answer to `waits`: True, False or words."""
        waits = state["waits"]
        if "subject" not in waits:
            return TurnState(answers=[*state.get("answers", []), str(answer)], waits={})
        held, agreed = self._run(state, said), answer is True or (isinstance(answer, str) and is_yes(answer))
        held.emit(ApprovalResolved(subject=waits["subject"], granted=agreed))
        if not agreed:
            declined = say("declined", language_of(_text(said)))
            return await self._over(held, declined, "success") | TurnState(waits={}, progress="")
        for subject in (waits["subject"], *waits.get("also", ())):
            self.kernel.consents.allow(state["run"], subject, once=True)
        again = [_again(packet) for packet in state["steps"][0]]
        return TurnState(waits={}, steps=[again, *state["steps"][1:]])

    async def idle_response(self, state: TurnState, said: Sequence[Said]) -> TurnState:
        """Answers a message that needs no skill."""
        held = self._run(state, said)
        if not state["steps"]:
            report = report_of(state["report"])
            return await self._over(held, report.raw or report.summary, report.state)
        begun = await begin(packet_from(state["steps"][0][0]), held.delivery, held.emit)
        report = nothing_ready(held.delivery)
        if held.specialist is not None:
            report = await held.specialist.work(begun.packet, None, held.emit)
        return await self._told(state, held, end(begun, report, held.delivery, held.emit))

    async def _done(self, state: TurnState, held: _Run, report: Report) -> TurnState:
        """Ends an order that a model worked on."""
        specialist, loop = _working(held, state)
        report, held.loop = specialist.closed(loop, report, held.emit), None
        packet, prepared = packet_from(state["steps"][0][0]), report_of(state["prepared"])
        begun = StartedStep(packet=packet, seq=state["seq"], report=prepared)
        return await self._told(state, held, end(begun, report, held.delivery, held.emit))

    async def _told(self, state: TurnState, held: _Run, report: Report) -> TurnState:
        """Ends a step, or waits for consent within it; after a successful step the next one follows."""
        told = TurnState(report=report_to_dict(report), progress=report.progress)
        if report.state == "pending" and report.subject:
            held.emit(ApprovalRequested(subject=report.subject, detail=report.summary))
            asked = {key: report.data[key] for key in ("tool", "arguments") if key in report.data}
            await self._close()
            also = {"also": list(report.also)} if report.also else {}
            return told | TurnState(waits={"question": report.summary, "subject": report.subject, **also, **asked})
        text = report.raw or report.summary
        if report.state in {"success", "partial"} and not report.progress and len(state["steps"]) > 1:
            return told | TurnState(says={"text": text, "state": report.state}, steps=state["steps"][1:], progress="")
        if not report.by_model:  # a model's text is streamed
            held.emit(RunContent(text=report.summary))
        return told | await self._over(held, text, report.state)

    async def _over(self, held: _Run, text: str, how: str) -> TurnState:
        held.emit(RunCompleted(state=how, summary=text))
        self._runs.pop(held.emit.run, None)
        await self._close()
        return TurnState(says={"text": text, "state": how}, steps=[], progress="", answers=[])

    async def _close(self) -> None:
        if self.kernel.models is not None:
            await self.kernel.models.close()

    def _run(self, state: TurnState, said: Sequence[Said], run: str = "") -> _Run:
        run, kernel = run or state["run"], self.kernel
        if run not in self._runs:
            try:
                seq = len(kernel.run_log.read(run))
            except NotFound:
                seq = 0
            before = Session(id=run, history=_before(said), private=True)  # the state does not record what was read
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


def _working(held: _Run, state: TurnState) -> tuple[Specialist, AgentLoop]:
    if held.specialist is None:
        raise NotFound("no model is set", hint="navigator model use <provider>:<model>")
    if held.loop is None:
        packet = packet_from(state["steps"][0][0])
        work = held.specialist.assigned(packet, report_of(state["prepared"]))
        held.loop = held.specialist.loop(work, held.emit, packet)
    return held.specialist, held.loop


def _loaded(state: TurnState, begun: StartedStep, prepared: Report, specialist: Specialist) -> TurnState:
    work = specialist.assigned(begun.packet, prepared)
    return TurnState(
        steps=[[begun.packet.to_dict()], *state["steps"][1:]],
        prepared=report_to_dict(prepared),
        seq=begun.seq,
        current_skill=work.skill,
        skill_sop=work.guide,
        available_tools=[tool.name for tool in specialist.tools.offered(work)],
        progress=AgentState().kept(),
    )


def _text(said: Sequence[Said]) -> str:
    """The person's last message, or empty."""
    return next((one.text for one in reversed(said) if one.role == "user"), "")


def _before(said: Sequence[Said]) -> tuple[Said, ...]:
    """The conversation before the person's last message."""
    return tuple(said[: max((at for at, one in enumerate(said) if one.role == "user"), default=0)])


def _again(packet: dict[str, Any]) -> dict[str, Any]:
    """The order as a new one, with another idempotency key, after the person agreed to it."""
    key = f"{packet['context']['idempotency_key']}/agreed"
    return {**packet, "context": {**packet["context"], "idempotency_key": key}}
