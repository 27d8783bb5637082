"""Stage 3: makes the plan of a turn: the packets of one to three steps, a workflow, or the kernel's own answer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.events import ApprovalResolved, Emit, RouteDecided, SkillChosen
from navigator_kernel.language.wording import between, say
from navigator_kernel.text import shorten
from navigator_kernel.turn.answers import UNDO, Resumed
from navigator_kernel.turn.packets import plan
from navigator_kernel.turn.understand import about_the_same, decide, narrate, understand
from navigator_kernel.turn.workflow import WorkflowRequest, decline_run, resolve_workflow, without_flag
from navigator_kernel.values.chat import Spent
from navigator_kernel.values.plan import DispatchPlan, DispatchStep
from navigator_kernel.values.request import CONTINUES, PendingApproval, PreprocessingResult, Session
from navigator_kernel.values.route import Direct, NeedClarification, RouteDecision, Skills, Unknown

if TYPE_CHECKING:
    from navigator_kernel.ports import Kernel
    from navigator_kernel.text import Language
    from navigator_kernel.values.context import TurnContext
    from navigator_kernel.values.packet import Packet

SHOWN = 160  # characters of a message in an answer
LIKELY = 8  # skills that a model without a skill is told of


class TurnPlan(Struct, frozen=True, kw_only=True):
    """The work of a turn: `orders` are its steps, unless `workflow` has them in the journal. Models may see the history
    of the session `before`; `spent` is the cost of routing, `answer` the kernel's own answer, `offer` what that answer
    offers to do."""

    decision: RouteDecision
    orders: DispatchPlan = field(default_factory=lambda: DispatchPlan(steps=()))
    workflow: WorkflowRequest | None = None
    before: Session = field(default_factory=partial(Session, id=""))
    spent: Spent = field(default_factory=Spent)
    answer: str = ""
    offer: PendingApproval | None = None


async def make_plan(
    resumed: Resumed, request: PreprocessingResult, context: TurnContext, kernel: Kernel, emit: Emit
) -> TurnPlan:
    """The plan for what the person approved, for a workflow, or for what the message asks for."""
    approved, session = resumed.approved, resumed.session
    if resumed.declined:
        emit(ApprovalResolved(subject=resumed.subject, granted=False))
        if resumed.workflow:
            decline_run(resumed.workflow, resumed.subject, kernel)
        if approved is None and not resumed.withdrawn:
            return TurnPlan(decision=_of_session(Direct(topic="declined"), "declined"))
    elif resumed.topic and not (resumed.topic == "last" and context.has_model):
        return _own_answer(resumed, request, kernel, emit)
    elif approved is not None:
        emit(ApprovalResolved(subject=approved.subject, granted=True))
    workflow = resolve_workflow(resumed, request, kernel, context)  # several steps, #name, or a yes to a plan
    if isinstance(workflow, WorkflowRequest):
        _announce(workflow.decision, emit)
        for name in dict.fromkeys(step.skill for step in workflow.view.plan.steps if step.agent == "skills"):
            emit(SkillChosen(skill=name, tier=workflow.decision.tier, confidence=workflow.decision.confidence))
        return TurnPlan(decision=workflow.decision, workflow=workflow)
    if approved is None:
        return await route_request(without_flag(request), session, context, kernel, emit, workflow)
    if approved.subject.startswith(UNDO):  # puts back what a run changed, and says for each file how that went
        states = kernel.undo(approved.subject.removeprefix(UNDO))
        lines = [say(f"undo.{state.replace(' ', '_')}", request.language, path=path) for path, state in states]
        return TurnPlan(decision=_of_session(Direct(topic="undone"), "undone"), answer="\n".join(lines))
    steps = tuple(DispatchStep(packets=(_in_run(packet, context.run),)) for packet in approved.packets)
    decision = _of_session(Direct(), "declined" if resumed.declined else "approved")
    return TurnPlan(decision=decision, orders=DispatchPlan(steps=steps), before=session)


def _own_answer(resumed: Resumed, request: PreprocessingResult, kernel: Kernel, emit: Emit) -> TurnPlan:
    """The kernel's own answer to a message that asks for no work: what is open is asked again, what a run changed can
    be put back, and nothing runs by itself."""
    topic, language, offer, last = resumed.topic, request.language, None, resumed.session.sticky
    result: Direct | NeedClarification = Direct(topic=topic)
    own = resumed.note or (topic if topic in {"thanks", "nothing", "edit"} else "")
    answer = say(f"own.{own}", language) if own else ""
    changed = kernel.changed(last.run) if last is not None and topic in {"undo", "complaint"} else ()
    if topic == "undo" and last is not None and changed:
        answer = say("own.undo", language, files=between(changed, language))
        offer = PendingApproval(packets=(), subject=f"{UNDO}{last.run}", asked_at=kernel.clock.now(), question=answer)
    elif topic == "undo":
        answer = say("own.undo_nothing", language)
    elif topic == "complaint":
        answer = say("own.complaint_undo" if changed else "own.complaint", language)
    elif topic == "last":
        answer = last_run(resumed.session, language)
    elif topic == "failed_twice":
        result = NeedClarification(question=say("ask.failed_twice", language))
    decision = _of_session(result, topic)
    _announce(decision, emit)
    return TurnPlan(decision=decision, answer=answer, offer=offer)


def last_run(session: Session, language: Language) -> str:
    """What ran last, for what, and how that ended if it failed."""
    if session.retry:
        return say("own.last_failed", language, error=session.retry[0].params.optional.get("error", ""))
    last = session.sticky
    if last is None:
        return say("own.last_none", language)
    return say("own.last", language, skill=last.target, text=repr(shorten(last.text, SHOWN)))


async def route_request(
    request: PreprocessingResult,
    session: Session,
    context: TurnContext,
    kernel: Kernel,
    emit: Emit,
    decision: RouteDecision | None = None,
) -> TurnPlan:
    """Finds out what the message asks for, and makes the packets; none if a question comes first. `decision` was made
    before, if it is given."""
    if kernel.models is None:
        request = about_the_same(request, session, kernel.router, kernel.catalogue)
    intent = await understand(request, session, kernel.router, kernel.judge)  # syntax, name, retrieval, model
    decision = decision or decide(intent, request, kernel.catalogue)
    last = session.sticky if request.way in CONTINUES else None
    if last is not None and isinstance(decision.result, Skills) and decision.result.names == (last.target,):
        request = replace(request, before=last.values)
    likely = tuple(skill.name for skill in intent.retrieval.candidates[:LIKELY]) if intent.retrieval else ()
    orders = plan(decision, replace(request, likely=likely), kernel.catalogue, context)
    if isinstance(orders, NeedClarification | Unknown):
        decision, orders = replace(decision, result=orders), DispatchPlan(steps=())
    for body in narrate(intent, decision, kernel.catalogue.count()):
        emit(body)
    spent = intent.judged.spent if intent.judged else Spent()
    return TurnPlan(decision=decision, orders=orders, before=session, spent=spent)


def _of_session(result: Direct | NeedClarification, reason: str) -> RouteDecision:
    return RouteDecision(result=result, tier="session", confidence=1.0, reason=reason)


def _announce(decision: RouteDecision, emit: Emit) -> None:
    emit(RouteDecided(decision=decision.to_dict(), trace=(decision.tier, decision.reason)))


def _in_run(packet: Packet, run: str) -> Packet:
    """The same packet in the run that the consent is for."""
    key = f"{run}/{packet.context.step}/{packet.agent}/{packet.task_spec.target}"
    return replace(packet, context=replace(packet.context, run=run, idempotency_key=key))
