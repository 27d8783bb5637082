"""One turn, from the message to the reply: read this first."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.errors import KernelError
from navigator_kernel.events import (
    ApprovalRequested,
    ApprovalResolved,
    Body,
    Emit,
    Event,
    RouteDecided,
    RunCancelled,
    RunCompleted,
    RunContent,
    RunError,
    RunStarted,
    Usage,
)
from navigator_kernel.guard import as_error
from navigator_kernel.language.wording import between, say
from navigator_kernel.text import language_of
from navigator_kernel.turn.answers import UNDO, Resumed, expiry_of, resume
from navigator_kernel.turn.deliver import DispatchDeps, deliver
from navigator_kernel.turn.message import preprocess
from navigator_kernel.turn.packets import plan
from navigator_kernel.turn.reply import TurnSummary, compose
from navigator_kernel.turn.understand import decide, matter, narrate, precheck, understand
from navigator_kernel.turn.workflow import WorkflowRequest, attach_answer, decline_run, resolve_workflow, without_flag
from navigator_kernel.turn.workflow_run import WorkflowOutcome, WorkflowRunner
from navigator_kernel.values.approval import waiting_approval
from navigator_kernel.values.chat import Spent, spent_by
from navigator_kernel.values.context import TurnContext
from navigator_kernel.values.job import is_permanent
from navigator_kernel.values.plan import DispatchPlan, DispatchStep
from navigator_kernel.values.request import PendingApproval, Session
from navigator_kernel.values.rights import by_option
from navigator_kernel.values.route import Direct, NeedClarification, RouteDecision, Skills, Unknown
from navigator_kernel.values.workflow import PLAN

if TYPE_CHECKING:
    from navigator_kernel.model_ports import Specialist
    from navigator_kernel.ports import Kernel
    from navigator_kernel.text import Language
    from navigator_kernel.values.packet import Packet
    from navigator_kernel.values.reply import Reply
    from navigator_kernel.values.request import Message, PreprocessingResult

LIKELY = 8  # skills that a model without a skill is told of


class TurnPlan(Struct, frozen=True, kw_only=True):
    """The work of a turn: dispatch steps, or a workflow. `before` is the session whose history models may see, `spent`
    the cost of routing, `told` what the kernel answers itself, `offer` what it offers to do."""

    decision: RouteDecision
    orders: DispatchPlan = field(default_factory=lambda: DispatchPlan(steps=()))
    work: WorkflowRequest | None = None
    before: Session = field(default_factory=partial(Session, id=""))
    spent: Spent = field(default_factory=Spent)
    told: str = ""
    offer: PendingApproval | None = None


async def run_turn(
    message: Message, session: Session, kernel: Kernel, emit: Emit, resumed: Resumed | None = None
) -> Reply:
    """Takes one turn and returns the reply, with the session for the next turn. Each stage is one module of `stages/`.
    `resumed` is what the message means in the session, if that was read before.

    Every outcome is an event: RunCompleted, RunCancelled if the task is cancelled, RunError for an unexpected error.
    """
    if resumed is None:  # an answer to what is open, something about the last run, or a new message
        resumed = resume(message, session, kernel.clock.now())
    began = kernel.clock.monotonic()
    text = f"/{message.skill} {message.text}" if message.skill else message.text
    text = text if resumed.message.text == text else message.text  # not where it answers what is open
    message = replace(message, text=text.encode("utf-8", "replace").decode("utf-8"))
    language = message.language or language_of(message.text)
    emit = counted = _Counted(emit)
    run = emit(RunStarted(session=session.id, message=message.text, language=language)).run
    try:
        notice = precheck(kernel.catalogue, session, kernel.precheck_hook)  # checked every turn, shown once a session
        _grant(resumed, run, kernel)  # consents: from this message, or for the whole session
        request = preprocess(resumed.message, kernel.files, kernel.clock.now())  # /skill !cmd @file @@skill #workflow
        context = context_of(resumed, request, kernel, run)  # the same for all packets of this turn
        turn_plan = await _route(resumed, request, context, kernel, emit)
        if resumed.outcome in {"yes", "pick"}:
            _learn(request, kernel)  # the skill that the person chose gets the message as an example
        outcome = await _execute(turn_plan, message, context, kernel, emit)  # in order, up to the first failure
        elapsed = kernel.clock.monotonic() - began
        summary = TurnSummary(
            run=run,
            request=request,
            asked=_asked(resumed, request, outcome),
            session=resumed.session,
            notice=notice if message.attended else None,
            elapsed=elapsed,
            rounds=resumed.rounds,
            workflow=outcome.view,
            waits_for=outcome.waits_for,
            question=outcome.question,
            agreed=kernel.consents.left(turn_plan.work.view.token if turn_plan.work else run, _consents_of(resumed)),
            outcome=resumed.outcome,
            answer=resumed.value,
            told=turn_plan.told,
            offer=turn_plan.offer,
        )
        reply = compose(turn_plan.decision, outcome.orders, outcome.reports, summary, kernel.clock)
        reply = attach_answer(reply, request)  # /master-orchestrator has its own form of answer
        reply = replace(reply, usage=counted.spent, models=tuple(counted.models))
    except BaseException as error:
        emit(_ending(error))
        if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt)):
            raise
        raise as_error(error) from error  # an exit ends the turn, never the program
    finally:
        if kernel.models is not None:
            await kernel.models.close()
    _finish(reply, kernel, emit, has_step=bool(outcome.reports))
    return reply


async def _route(
    resumed: Resumed, request: PreprocessingResult, context: TurnContext, kernel: Kernel, emit: Emit
) -> TurnPlan:
    """Decides what to do: the approved packets, a workflow, or what the message asks for."""
    if resumed.declined:
        emit(ApprovalResolved(subject=resumed.subject, granted=False))
        if resumed.workflow:
            decline_run(resumed.workflow, resumed.subject, kernel)
        if resumed.approved is None:
            return TurnPlan(decision=_session_decision(Direct(topic="declined"), "declined"))
    elif resumed.topic:
        return _own_answer(resumed, request, kernel, emit)
    elif resumed.approved is not None:
        emit(ApprovalResolved(subject=resumed.approved.subject, granted=True))
    work = resolve_workflow(resumed, request, kernel, context)  # several steps, #name, or a yes to a plan
    if isinstance(work, WorkflowRequest):
        emit(RouteDecided(decision=work.decision.to_dict(), trace=(work.decision.tier, work.decision.reason)))
        return TurnPlan(decision=work.decision, work=work)
    if resumed.approved is not None and resumed.approved.subject.startswith(UNDO):
        return _undone(resumed.approved.subject.removeprefix(UNDO), request.language, kernel)
    if resumed.approved is not None:
        steps = tuple(DispatchStep(packets=(_in_run(packet, context.run),)) for packet in resumed.approved.packets)
        decision = _session_decision(Direct(), "declined" if resumed.declined else "approved")
        return TurnPlan(decision=decision, orders=DispatchPlan(steps=steps), before=resumed.session)
    return await route_request(without_flag(request), resumed.session, context, kernel, emit, work)


def _own_answer(resumed: Resumed, request: PreprocessingResult, kernel: Kernel, emit: Emit) -> TurnPlan:
    """The kernel's own answer to a message that asks for no work: what is open is asked again, what a run changed can
    be put back, and nothing runs by itself."""
    topic, language, offer, last = resumed.topic, request.language, None, resumed.session.sticky
    result: Direct | NeedClarification = Direct(topic=topic)
    told = say(f"own.{topic}", language) if topic in {"thanks", "nothing", "edit"} else ""
    changed = kernel.changed(last.run) if last is not None and topic in {"undo", "complaint"} else ()
    if topic == "undo" and last is not None and changed:
        told = say("own.undo", language, files=between(changed, language))
        offer = PendingApproval(packets=(), subject=f"{UNDO}{last.run}", asked_at=kernel.clock.now(), question=told)
    elif topic == "undo":
        told = say("own.undo_nothing", language)
    elif topic == "complaint":
        told = say("own.complaint_undo" if changed else "own.complaint", language)
    elif topic == "failed_twice":
        result = NeedClarification(question=say("ask.failed_twice", language))
    decision = _session_decision(result, topic)
    emit(RouteDecided(decision=decision.to_dict(), trace=(decision.tier, decision.reason)))
    return TurnPlan(decision=decision, told=told, offer=offer)


def _undone(run: str, language: Language, kernel: Kernel) -> TurnPlan:
    """Puts back what the run changed, and says for each file how that went."""
    states = [say(f"undo.{state.replace(' ', '_')}", language, path=path) for path, state in kernel.undo(run)]
    return TurnPlan(decision=_session_decision(Direct(topic="undone"), "undone"), told="\n".join(states))


async def route_request(
    request: PreprocessingResult,
    session: Session,
    context: TurnContext,
    kernel: Kernel,
    emit: Emit,
    decision: RouteDecision | None = None,
) -> TurnPlan:
    """Phase 1: finds out what the message asks for, and plans the packets; none if a question comes first."""
    intent = await understand(request, session, kernel.router, kernel.judge)  # syntax, name, retrieval, model
    decision = decision or decide(intent, request, kernel.catalogue)
    last = session.sticky if request.way == "follow_up" else None
    if last is not None and isinstance(decision.result, Skills) and decision.result.names == (last.target,):
        request = replace(request, before=last.values)
    likely = tuple(one.name for one in intent.retrieval.candidates[:LIKELY]) if intent.retrieval else ()
    orders = plan(decision, replace(request, likely=likely), kernel.catalogue, context)
    if isinstance(orders, NeedClarification | Unknown):
        decision, orders = replace(decision, result=orders), DispatchPlan(steps=())
    for body in narrate(intent, decision, kernel.catalogue.count()):
        emit(body)
    spent = intent.judged.spent if intent.judged else Spent()
    return TurnPlan(decision=decision, orders=orders, before=session, spent=spent)


async def _execute(
    turn_plan: TurnPlan, message: Message, context: TurnContext, kernel: Kernel, emit: Emit
) -> WorkflowOutcome:
    """Carries out the plan and returns its reports; a workflow that is not approved yet is only proposed."""
    deps, work = dispatch_deps(kernel, kernel.specialist(turn_plan.before, turn_plan.spent)), turn_plan.work
    deps = replace(deps, specialist=None, shows_prompts=True) if message.shows_prompt else deps
    if kernel.underway is not None and work is not None:
        kernel.underway.leave(context.run)  # workflows have a journal
    elif kernel.underway is not None and len(turn_plan.orders.steps) > 1:
        kernel.underway.drop_orders(context.run)  # several packets are not resumed
    if work is None:
        if message.consent:
            kernel.consents.allow_orders(context.run)
        return WorkflowOutcome(view=None, orders=turn_plan.orders, reports=await deliver(turn_plan.orders, deps, emit))
    if work.agreed is None and not message.consent:
        return WorkflowOutcome(view=work.view, orders=DispatchPlan(steps=()), reports=(), waits_for=PLAN)
    if message.consent:
        kernel.consents.allow_orders(work.view.token)
    runner = WorkflowRunner(kernel=kernel, delivery=deps, context=context, emit=emit)
    agreed = PLAN if work.agreed is None else work.agreed
    return await runner.follow(work.view.token, agreed, left=work.view.left, plan=work.view.plan)


def _granted(resumed: Resumed) -> tuple[str, ...]:
    """What the person allowed for the session, and with this message beforehand."""
    return (*resumed.session.grants, *map(by_option, resumed.message.allow))


def _grant(resumed: Resumed, run: str, kernel: Kernel) -> None:
    """Allows what was granted, and each consent of the orders that continue for one execution."""
    approved = resumed.approved
    run = (approved.workflow if approved else "") or run
    for subject in _granted(resumed):
        kernel.consents.allow(run, subject)
    for subject in _consents_of(resumed):
        kernel.consents.allow(run, subject, once=True)
    lasting = filter(is_permanent, (approved.subject, *approved.also) if approved else ())
    if resumed.lasting == "always" and (subjects := tuple(lasting)):
        kernel.consents.trust(*subjects, note=f"always, answered in session {resumed.session.id}")


def _consents_of(resumed: Resumed) -> tuple[str, ...]:
    """The consents of the packets that continue now."""
    approved = resumed.approved
    if approved is None:
        return ()
    return approved.agreed if resumed.declined else approved.covered


def _learn(request: PreprocessingResult, kernel: Kernel) -> None:
    """Stores the message as an example of the chosen skill; a failure does not stop the turn."""
    if request.way != "chosen" or not kernel.catalogue.exists(f"skill:{request.target}"):
        return
    try:
        kernel.lessons.learn(request.target, matter(request))
    except KernelError as error:
        logging.getLogger("navigator").warning("the choice was not stored as an example: %s", error.message)


def _asked(resumed: Resumed, request: PreprocessingResult, outcome: WorkflowOutcome) -> str:
    """The person's message for the history (X-11)."""
    if resumed.approved is None:
        return request.original
    if outcome.view is not None:
        return outcome.view.plan.description
    return resumed.approved.packets[0].task_spec.intent if resumed.approved.packets else request.original


def context_of(resumed: Resumed, request: PreprocessingResult, kernel: Kernel, run: str) -> TurnContext:
    """The data that all packets of this turn share."""
    message = resumed.message
    return TurnContext(
        run=run,
        timeout=kernel.settings.timeout,
        language=request.language,
        format=message.format,
        servers=tuple(kernel.settings.servers),
        memories=kernel.memory.recall(message.text),
        grants=_granted(resumed),
        has_model=kernel.models is not None,
        now=kernel.clock.now(),
    )


def _session_decision(result: Direct | NeedClarification, reason: str) -> RouteDecision:
    return RouteDecision(result=result, tier="session", confidence=1.0, reason=reason)


def _in_run(packet: Packet, run: str) -> Packet:
    """The same packet in the run that the consent is for."""
    key = f"{run}/{packet.context.step}/{packet.agent}/{packet.task_spec.target}"
    return replace(packet, context=replace(packet.context, run=run, idempotency_key=key))


def dispatch_deps(kernel: Kernel, specialist: Specialist | None) -> DispatchDeps:
    """The services that dispatching needs."""

    def offload(packet: Packet, text: str) -> str:
        """Stores the whole output of a step and returns its path."""
        name = f"step-{packet.context.step}.json"
        return kernel.keep(packet.context.run, name, text.encode("utf-8", "replace"))

    def describe(namespace: str) -> tuple[str, str]:
        """The kind and the digest of a resource, or empty; the agent reports a missing one."""
        try:
            executor = kernel.catalogue.create_executor(namespace)
            return executor.skill.kind, executor.digest
        except KernelError:
            return "", ""

    return DispatchDeps(
        dispatcher=kernel.dispatcher,
        clock=kernel.clock,
        offload=offload,
        describe=describe,
        redact=kernel.redact,
        specialist=specialist,
    )


class _Counted:
    """Emits events, and adds up the usage of models."""

    def __init__(self, emit: Emit) -> None:
        self._emit, self.spent, self.models = emit, Spent(), dict[str, None]()

    def __call__(self, body: Body, *, step: int | None = None, parent: int | None = None) -> Event:
        if isinstance(body, Usage):
            self.spent += spent_by(body)
            self.models[body.model] = None
        return self._emit(body, step=step, parent=parent)


def _finish(reply: Reply, kernel: Kernel, emit: Emit, *, has_step: bool) -> None:
    if (waits := reply.session.approval) is not None:
        asked, question = waiting_approval(reply.session), waits.question or reply.question or reply.report.summary
        name, ends = asked.id if asked else "", expiry_of(waits.asked_at)
        emit(ApprovalRequested(subject=waits.subject, detail=question, id=name, expires=ends))
    if not reply.report.by_model:  # a model's text was streamed already
        emit(RunContent(text=reply.report.summary))
    sections = {name: held for name, held in reply.sections.to_dict().items() if held}
    data = {} if has_step else kernel.redact(dict(reply.report.data))
    report, outcome = reply.report, (reply.answer or {}).get("outcome", "")
    answer = "" if outcome == "other" else outcome
    emit(RunCompleted(state=report.state, summary=report.summary, sections=sections, data=data, answer=answer))
    kernel.finish_hook(reply)


def _ending(error: BaseException) -> Body:
    if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt)):
        return RunCancelled(reason="stopped by the person")
    return RunError(error={"type": type(error).__name__, "msg": str(error)})
