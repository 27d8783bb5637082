"""A turn as a LangGraph `StateGraph`, for applications built on LangGraph (extra `langgraph`; JIT-6, 7, 11).

The nodes call the same parts as `run_turn`: phase 1, the agents, the loop's `specialist` and `continue_check`. The
graph interrupts when the turn waits for the person. Workflows of several steps exist only in `run_turn`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt
from msgspec import Struct, field

from navigator_kernel.agent_loop.loop import AgentLoop, ApprovalRequired
from navigator_kernel.agent_loop.specialist import Specialist
from navigator_kernel.dispatch import EventStream
from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.events import ApprovalRequested, ApprovalResolved, Event, RunCompleted, RunContent, RunStarted
from navigator_kernel.language.answers import is_yes
from navigator_kernel.language.wording import say
from navigator_kernel.stages.answers import resume
from navigator_kernel.stages.compose import TurnSummary, own_report
from navigator_kernel.stages.deliver import KERNEL, DispatchDeps, StartedStep, begin, end, nothing_ready, wants_model
from navigator_kernel.stages.preprocess import preprocess
from navigator_kernel.text import language_of
from navigator_kernel.turn import context_of, dispatch_deps, route_request
from navigator_kernel.values.chat import Spent
from navigator_kernel.values.packet import Report, packet_from, report_of, report_to_dict
from navigator_kernel.values.request import Message, Said, Session
from navigator_kernel.values.route import NeedClarification
from navigator_kernel.values.work import AgentState, progress_of, redacted

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

    from navigator_kernel.ports import Kernel

HOPS = 20_000  # graph steps of one run; the limits of a turn end the work long before


class State(TypedDict, total=False):
    """The state of JIT-6 as JSON values, so that any checkpointer can store it. `steps` are the remaining orders, each
    with its fallbacks; `prepared` is the report with the current prompt, `seq` the event that it began with; `waits` is
    the question to the person, `answers` are their answers so far; `report` is the last report."""

    messages: Annotated[list[AnyMessage], add_messages]
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


class _Run(Struct, kw_only=True):
    """The data of one run in memory; rebuilt from the state if another process continues the run."""

    emit: EventStream
    delivery: DispatchDeps
    specialist: Specialist | None
    began: float
    loop: AgentLoop | None = None


class Nodes(Struct):
    """The nodes of the graph over `kernel`. Each returns its changes to the state."""

    kernel: Kernel
    _runs: dict[str, _Run] = field(default_factory=dict)

    async def router(self, state: State, config: RunnableConfig) -> State:
        """Phase 1: finds the skills that are meant, if any (JIT-8)."""
        kernel, text = self.kernel, _said(state)
        answers = [] if state.get("waits") else state.get("answers", [])  # a waiting question has no answer yet
        held = self._run(state, state["run"] if answers else kernel.ids.new())
        session = Session(id=str(config.get("configurable", {}).get("thread_id", "graph")), history=_history(state))
        if not answers:
            held.emit(RunStarted(session=session.id, message=text, language=language_of(text)))
        message = Message(text=" ".join([text, *answers]), answers=tuple(answers))
        resumed = resume(message, session, kernel.clock.now())
        request = preprocess(resumed.message, kernel.files)
        context = context_of(resumed, request, kernel, held.emit.run)
        routed = await route_request(request, resumed.session, context, kernel, held.emit)
        if held.specialist is not None:
            held.specialist.spent += routed.spent
        new = State(run=held.emit.run, steps=[[one.to_dict() for one in step.packets] for step in routed.orders.steps])
        new |= State(
            current_skill="", skill_sop="", available_tools=[], progress="", waits={}, report={}, answers=answers
        )
        if new["steps"]:
            return new
        told = TurnSummary(run=held.emit.run, request=request, asked=text, session=session, notice=None, elapsed=0)
        report = own_report(routed.decision, told, kernel.clock)
        asked = {"question": report.summary} if isinstance(routed.decision.result, NeedClarification) else {}
        return new | State(report=report_to_dict(report), waits=asked)

    async def loader(self, state: State) -> State:
        """Loads the next order, or the first of its fallbacks that can be done: a skill's text and tools (JIT-9)."""
        held = self._run(state)
        report = nothing_ready(held.delivery)
        for packet in map(packet_from, state["steps"][0]):
            begun = await begin(packet, held.delivery, held.emit)
            if held.specialist is not None and begun.report is not None and wants_model(begun, held.delivery):
                return _loaded(state, begun, begun.report, held.specialist)
            report = end(begun, begun.report or report, held.delivery, held.emit)
            if report.state != "error" or not report.recoverable or report.effects:
                break
        return await self._told(state, report)

    async def specialist(self, state: State) -> State:
        """Runs one round: the model's answer and all actions that it asks for (JIT-10)."""
        specialist, loop, began = self._working(state)
        try:
            progress = await loop.specialist(progress_of(state["progress"]))
        except ApprovalRequired as waiting:
            return await self._told(state, specialist.waiting(waiting, loop.work, began))
        except KernelError as error:
            return await self._done(state, specialist.failed(error, loop.work, loop.progress, began))
        return State(progress=redacted(progress, self.kernel.redact).kept())

    async def continue_check(self, state: State) -> State:
        """Checks whether the work continues (X-27); if not, returns its result."""
        specialist, loop, began = self._working(state)
        loop.progress, why = await loop.continue_check(progress_of(state["progress"]))
        if why is not None:
            return await self._done(state, specialist.told(loop, loop.progress, why, began))
        return State(progress=redacted(loop.progress, self.kernel.redact).kept())

    async def person(self, state: State) -> State:
        """Asks the person with an interrupt, which is resumed with True, False or words."""
        waits, answer = state["waits"], interrupt(state["waits"])
        if "subject" not in waits:
            return State(answers=[*state.get("answers", []), str(answer)], waits={})
        held, agreed = self._run(state), answer is True or (isinstance(answer, str) and is_yes(answer))
        held.emit(ApprovalResolved(subject=waits["subject"], granted=agreed))
        if not agreed:
            declined = say("declined", language_of(_said(state)))
            return await self._over(state, AIMessage(declined), "success") | State(waits={}, progress="")
        for subject in (waits["subject"], *waits.get("also", ())):
            self.kernel.consents.allow(state["run"], subject, once=True)
        again = [_again(packet) for packet in state["steps"][0]]
        return State(waits={}, steps=[again, *state["steps"][1:]])

    async def idle_response(self, state: State) -> State:
        """Answers a message that needs no skill."""
        if not state["steps"]:
            report = report_of(state["report"])
            return await self._over(state, AIMessage(report.raw or report.summary), report.state)
        held = self._run(state)
        begun = await begin(packet_from(state["steps"][0][0]), held.delivery, held.emit)
        report = nothing_ready(held.delivery)
        if held.specialist is not None:
            report = await held.specialist.work(begun.packet, None, held.emit)
        return await self._told(state, end(begun, report, held.delivery, held.emit))

    async def _done(self, state: State, report: Report) -> State:
        """Ends an order that a model worked on."""
        specialist, loop, _ = self._working(state)
        held = self._run(state)
        report, held.loop = specialist.closed(loop, report, held.emit), None
        packet, prepared = packet_from(state["steps"][0][0]), report_of(state["prepared"])
        begun = StartedStep(packet=packet, seq=state["seq"], report=prepared)
        return await self._told(state, end(begun, report, held.delivery, held.emit))

    async def _told(self, state: State, report: Report) -> State:
        """Ends a step, or waits for consent within it; after a successful step the next one follows."""
        held, told = self._run(state), State(report=report_to_dict(report), progress=report.progress)
        if report.state == "pending" and report.subject:
            held.emit(ApprovalRequested(subject=report.subject, detail=report.summary))
            asked = {key: report.data[key] for key in ("tool", "arguments") if key in report.data}
            await self._close()
            also = {"also": list(report.also)} if report.also else {}
            return told | State(waits={"question": report.summary, "subject": report.subject, **also, **asked})
        message = AIMessage(report.raw or report.summary, additional_kwargs={"state": report.state})
        if report.state in {"success", "partial"} and not report.progress and len(state["steps"]) > 1:
            return told | State(messages=[message], steps=state["steps"][1:], progress="")
        if not report.by_model:  # a model's text is streamed
            held.emit(RunContent(text=report.summary))
        return told | await self._over(state, message, report.state)

    async def _over(self, state: State, message: AIMessage, how: str) -> State:
        self._run(state).emit(RunCompleted(state=how, summary=message.text))
        self._runs.pop(state["run"], None)
        await self._close()
        return State(messages=[message], steps=[], progress="", answers=[])

    async def _close(self) -> None:
        if self.kernel.models is not None:
            await self.kernel.models.close()

    def _run(self, state: State, run: str = "") -> _Run:
        run, kernel = run or state["run"], self.kernel
        if run not in self._runs:
            try:
                seq = len(kernel.run_log.read(run))
            except NotFound:
                seq = 0
            before = Session(id=run, history=_history(state), private=True)  # the graph does not record what was read
            working = kernel.specialist(before, Spent())
            emit = EventStream(run, 0, kernel.run_log, kernel.clock, [_hear], seq, kernel.redact)
            self._runs[run] = _Run(
                emit=emit,
                delivery=dispatch_deps(kernel, working),
                specialist=working if isinstance(working, Specialist) else None,
                began=kernel.clock.monotonic(),
            )
        return self._runs[run]

    def _working(self, state: State) -> tuple[Specialist, AgentLoop, float]:
        held = self._run(state)
        if held.specialist is None:
            raise NotFound("no model is set", hint="navigator model use <provider>:<model>")
        if held.loop is None:
            packet = packet_from(state["steps"][0][0])
            work = held.specialist.assigned(packet, report_of(state["prepared"]))
            held.loop = held.specialist.loop(work, held.emit, packet)
        return held.specialist, held.loop, held.began


def state_graph(kernel: Kernel, checkpointer: BaseCheckpointSaver[Any] | None = None) -> CompiledStateGraph[Any]:
    """Compiles the graph (JIT-11). Invoke it with `durability="sync"`, so that each step is stored before the next one
    begins."""
    nodes, graph = Nodes(kernel), StateGraph(State)
    graph.add_node("router", nodes.router)
    graph.add_node("loader", nodes.loader)
    graph.add_node("specialist", nodes.specialist)
    graph.add_node("continue_check", nodes.continue_check)
    graph.add_node("person", nodes.person)
    graph.add_node("idle_response", nodes.idle_response)
    graph.add_edge(START, "router")
    graph.add_conditional_edges("router", _after_router, ["loader", "idle_response", "person"])
    graph.add_conditional_edges("loader", _next, ["loader", "specialist", "person", END])
    graph.add_conditional_edges("specialist", _after_round, ["loader", "continue_check", "person", END])
    graph.add_conditional_edges("continue_check", _next, ["loader", "specialist", END])
    graph.add_conditional_edges("person", _next, ["router", "loader", "specialist", END])
    graph.add_edge("idle_response", END)
    return graph.compile(checkpointer=checkpointer, name="navigator").with_config(recursion_limit=HOPS)


def _after_router(state: State) -> str:
    if state["waits"]:
        return "person"
    steps = state["steps"]
    return "loader" if steps and steps[0][0]["subagent_type"] != KERNEL else "idle_response"


def _next(state: State) -> str:
    if state["waits"]:
        return "person"
    if state.get("answers") and not state["steps"]:  # an answer to a question that came before any orders
        return "router"
    if state["progress"]:
        return "specialist"
    return "loader" if state["steps"] else END


def _after_round(state: State) -> str:
    after = _next(state)
    return "continue_check" if after == "specialist" else after


def _loaded(state: State, begun: StartedStep, prepared: Report, specialist: Specialist) -> State:
    work = specialist.assigned(begun.packet, prepared)
    return State(
        steps=[[begun.packet.to_dict()], *state["steps"][1:]],
        prepared=report_to_dict(prepared),
        seq=begun.seq,
        current_skill=work.skill,
        skill_sop=work.guide,
        available_tools=[tool.name for tool in specialist.tools.offered(work)],
        progress=AgentState().kept(),
    )


def _said(state: State) -> str:
    """The person's last message, or empty."""
    return next((one.text for one in reversed(state["messages"]) if isinstance(one, HumanMessage)), "")


def _history(state: State) -> tuple[Said, ...]:
    """The conversation before the person's last message."""
    messages = state["messages"]
    last = max((at for at, one in enumerate(messages) if isinstance(one, HumanMessage)), default=0)
    return tuple(_as_said(one) for one in messages[:last] if isinstance(one, HumanMessage | AIMessage))


def _as_said(message: AnyMessage) -> Said:
    return Said(role="user" if isinstance(message, HumanMessage) else "assistant", text=message.text, run="")


def _again(packet: dict[str, Any]) -> dict[str, Any]:
    """The order as a new one, with another idempotency key, after the person agreed to it."""
    key = f"{packet['context']['idempotency_key']}/agreed"
    return {**packet, "context": {**packet["context"], "idempotency_key": key}}


def _hear(event: Event) -> None:
    """Sends an event to LangGraph's `stream_mode="custom"`."""
    get_stream_writer()(event.to_dict())
