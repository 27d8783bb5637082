"""One turn, from the message to the reply: read this first."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.errors import Interrupted, KernelError
from navigator_kernel.events import (
    ApprovalRequested,
    Body,
    Emit,
    Event,
    RunCancelled,
    RunCompleted,
    RunContent,
    RunError,
    RunStarted,
    Usage,
)
from navigator_kernel.guard import as_error
from navigator_kernel.text import language_of
from navigator_kernel.turn.answers import Resumed, expiry_of, resume
from navigator_kernel.turn.deliver import carry_out
from navigator_kernel.turn.message import preprocess
from navigator_kernel.turn.plan import make_plan
from navigator_kernel.turn.reply import TurnSummary, compose
from navigator_kernel.turn.understand import matter, precheck
from navigator_kernel.turn.workflow import attach_answer
from navigator_kernel.values.approval import waiting_approval
from navigator_kernel.values.chat import Spent, spent_by
from navigator_kernel.values.context import TurnContext
from navigator_kernel.values.job import is_permanent
from navigator_kernel.values.owner import one_look
from navigator_kernel.values.resource import STATED
from navigator_kernel.values.rights import by_option
from navigator_kernel.values.work import is_unfinished

if TYPE_CHECKING:
    from navigator_kernel.ports import Kernel
    from navigator_kernel.values.reply import Reply
    from navigator_kernel.values.request import Message, PreprocessingResult, Session

STOPPED = "stopped by the person"


async def run_turn(
    message: Message, session: Session, kernel: Kernel, emit: Emit, resumed: Resumed | None = None
) -> Reply:
    """Takes one turn and returns the reply, with the session for the next turn. Each stage is a module of this package.
    `resumed` is what the message means in the session, if that was read before.

    Every outcome is an event: RunCompleted, RunCancelled if the task is cancelled, RunError for an unexpected error. A
    cancelled task returns a reply if a model had worked (`Reply.is_stopped`).
    """
    if resumed is None:  # an answer to what is open, something about the last run, or a new message
        resumed = resume(message, session, kernel.clock.now(), kernel.catalogue)
    began = kernel.clock.monotonic()
    text = f"/{message.skill} {message.text}" if message.skill else message.text
    text = text if resumed.message.text == text else message.text  # not where it answers what is open
    message = replace(message, text=text.encode("utf-8", "replace").decode("utf-8"))
    language = resumed.message.language or message.language or language_of(message.text)
    emit = counted = _Counted(emit)
    approved = resumed.approved
    before = (approved.workflow, *(packet.context.run for packet in approved.packets), "") if approved else ("",)
    continues = next(filter(None, before), "")
    run = emit(RunStarted(session=session.id, message=message.text, language=language, continues=continues)).run
    try:
        notice = precheck(kernel.catalogue, session, kernel.precheck_hook)  # checked every turn, shown once a session
        _grant(resumed, run, kernel)  # consents: from this message, or for the whole session
        with one_look():
            request = preprocess(resumed.message, kernel.files, kernel.clock.now())  # /skill !cmd @file #workflow
            context = context_of(resumed, request, kernel, run)  # the same for all packets of this turn
            plan = await make_plan(resumed, request, context, kernel, emit)
        if resumed.outcome in {"yes", "pick"}:
            _learn(request, kernel)  # the skill that the person chose gets the message as an example
        outcome = await carry_out(plan, message, context, kernel, emit)  # in order, up to the first failure
        elapsed = kernel.clock.monotonic() - began
        request_text = approved.packets[0].task_spec.intent if approved and approved.packets else request.original
        request_text = outcome.view.plan.description if approved and outcome.view else request_text
        packets = (packet for step in outcome.orders.steps for packet in step.packets if packet.agent == "skills")
        skills = map(kernel.catalogue.find, {packet.task_spec.target.partition(":")[2] for packet in packets})
        specs = [spec for skill in skills if skill for spec in skill.required_params]
        summary = TurnSummary(
            run=run,
            request=request,
            asked=request_text,  # for the history
            session=resumed.session,
            notice=notice if message.attended else None,
            elapsed=elapsed,
            rounds=resumed.rounds,
            workflow=outcome.view,
            waits_for=outcome.waits_for,
            question=outcome.question,
            stated=frozenset(spec.name for spec in specs if spec.validation in STATED),
            agreed=kernel.consents.left(plan.workflow.view.token if plan.workflow else run, _consents_of(resumed)),
            outcome=resumed.outcome,
            answer=resumed.value,
            withdrawn=resumed.withdrawn,
            own=plan.answer,
            offer=plan.offer,
        )
        reply = compose(plan.decision, outcome.orders, outcome.reports, summary, kernel.clock)
        reply = attach_answer(reply, request)  # /master-orchestrator has its own form of answer
        is_stopped = bool(reply.report.progress) and reply.report.data.get("code") == Interrupted.code
        reply = replace(reply, usage=counted.spent, models=tuple(counted.models), is_stopped=is_stopped)
    except BaseException as error:
        if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt)):
            emit(RunCancelled(reason=STOPPED))
            raise
        emit(RunError(error={"type": type(error).__name__, "msg": str(error)}))
        raise as_error(error) from error  # an exit ends the turn, never the program
    finally:
        if kernel.models is not None:
            await kernel.models.close()
    _finish(reply, kernel, emit, has_step=bool(outcome.reports))
    return reply


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


class _Counted(Struct):
    """Emits events, and adds up the usage of models."""

    emit: Emit
    spent: Spent = Spent()
    models: dict[str, None] = field(default_factory=dict)

    def __call__(self, body: Body, *, step: int | None = None, parent: int | None = None) -> Event:
        if isinstance(body, Usage):
            self.spent += spent_by(body)
            self.models[body.model] = None
        return self.emit(body, step=step, parent=parent)


def _finish(reply: Reply, kernel: Kernel, emit: Emit, *, has_step: bool) -> None:
    if (waits := reply.session.approval) is not None:
        waiting, question = waiting_approval(reply.session), waits.question or reply.question or reply.report.summary
        name, ends = waiting.id if waiting else "", expiry_of(waits.asked_at)
        emit(ApprovalRequested(subject=waits.subject, detail=question, id=name, expires=ends))
    if not reply.report.by_model:  # a model's text was streamed already
        ways = [f"- {way}" for way in reply.report.data.get("ways", ())]
        emit(RunContent(text="\n".join([reply.report.summary, *ways])))
    sections = {name: lines for name, lines in reply.sections.to_dict().items() if lines}
    report, outcome = reply.report, (reply.answer or {}).get("outcome", "")
    data = {} if has_step else kernel.redact(dict(report.data))
    if has_step and is_unfinished(reply.session):
        data = kernel.redact({name: report.data[name] for name in ("files", "hint") if name in report.data})
    answer = "" if outcome == "other" else outcome
    if reply.is_stopped:
        emit(RunCancelled(reason=STOPPED, data=data))
        return
    emit(RunCompleted(state=report.state, summary=report.summary, sections=sections, data=data, answer=answer))
    kernel.finish_hook(reply)
