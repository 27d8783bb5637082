"""One message, from the moment it comes in to the reply: read this first."""

from __future__ import annotations

from dataclasses import replace

from navigator_kernel.errors import KernelError
from navigator_kernel.events import (
    ApprovalRequested,
    ApprovalResolved,
    Emit,
    RunCancelled,
    RunCompleted,
    RunContent,
    RunError,
    RunStarted,
)
from navigator_kernel.ports import Kernel
from navigator_kernel.stages.compose import Told, compose
from navigator_kernel.stages.decide import decide
from navigator_kernel.stages.deliver import Delivery, deliver
from navigator_kernel.stages.narrate import narrate
from navigator_kernel.stages.plan import Order, plan
from navigator_kernel.stages.precheck import precheck
from navigator_kernel.stages.preprocess import preprocess
from navigator_kernel.stages.resume import Resumed, resume
from navigator_kernel.stages.understand import understand
from navigator_kernel.text import language_of
from navigator_kernel.values.packet import Packet
from navigator_kernel.values.plan import Plan, Step
from navigator_kernel.values.reply import Reply
from navigator_kernel.values.request import Message, PreprocessingResult, Session
from navigator_kernel.values.route import Direct, NeedClarification, RouteDecision


async def run_turn(message: Message, session: Session, kernel: Kernel, emit: Emit) -> Reply:
    """The reply, which carries the session that follows. Each stage is one module of `stages/`.

    Every way out is an event: RunCompleted, RunCancelled when the task is cancelled, RunError for a surprise.
    """
    began = kernel.clock.monotonic()
    language = message.language or language_of(message.text)
    run = emit(RunStarted(session=session.id, message=message.text, language=language)).run
    try:
        notice = precheck(kernel.catalogue, session, kernel.precheck_hook)  # every turn, shown once a session
        resumed = resume(message, session, kernel.clock.now())  # a yes, an answer, or something new
        request = preprocess(resumed.message, kernel.files)  # /skill !cmd @file @@skill #workflow
        decision, orders = await _routed(resumed, request, kernel, emit, run)
        if message.consent:
            kernel.consents.allow(run, "*")
        reports = await deliver(orders, _delivery(kernel), emit)  # serial, stops at a failure
        elapsed = kernel.clock.monotonic() - began
        told = Told(
            run=run, request=request, session=resumed.session, notice=notice, elapsed=elapsed, rounds=resumed.rounds
        )
        reply = compose(decision, orders, reports, told, kernel.clock)
    except BaseException as error:
        emit(_ending(error))
        raise
    _finish(reply, kernel, emit)
    return reply


async def _routed(
    resumed: Resumed, request: PreprocessingResult, kernel: Kernel, emit: Emit, run: str
) -> tuple[RouteDecision, Plan]:
    """What to do: what was just agreed to, or what the message is understood to want."""
    if resumed.declined:
        emit(ApprovalResolved(subject=resumed.subject, granted=False))
        return RouteDecision(result=Direct(topic="declined"), tier="session", confidence=1.0, reason="declined"), Plan(
            steps=()
        )
    if resumed.approved is not None:
        approval = resumed.approved
        emit(ApprovalResolved(subject=approval.subject, granted=True))
        kernel.consents.allow(run, approval.subject)
        steps = tuple(Step(packets=(_again(packet, run),)) for packet in approval.packets)
        return RouteDecision(result=Direct(), tier="session", confidence=1.0, reason="approved"), Plan(steps=steps)
    intent = await understand(request, resumed.session, kernel.router)  # syntax, exact name, retrieval, model
    decision = decide(intent, request, kernel.catalogue)
    orders = plan(decision, request, kernel.catalogue, _order(resumed.message, request, kernel, run))
    if isinstance(orders, NeedClarification):
        decision, orders = replace(decision, result=orders), Plan(steps=())
    for body in narrate(intent, decision, kernel.catalogue.count()):
        emit(body)
    return decision, orders


def _order(message: Message, request: PreprocessingResult, kernel: Kernel, run: str) -> Order:
    return Order(
        run=run,
        timeout=kernel.settings.timeout,
        language=request.language,
        format=message.format,
        servers=tuple(kernel.settings.servers),
    )


def _again(packet: Packet, run: str) -> Packet:
    """The same order under the run that the agreement belongs to."""
    key = f"{run}/{packet.context.step}/{packet.agent}/{packet.task_spec.target}"
    return replace(packet, context=replace(packet.context, run=run, idempotency_key=key))


def _delivery(kernel: Kernel) -> Delivery:
    def offload(packet: Packet, text: str) -> str:
        """Where the whole output of a step is kept, relative to the project."""
        path = kernel.root / "mybox" / "workspace" / packet.context.run / f"step-{packet.context.step}.json"
        kernel.writer.write(path, text.encode("utf-8", "replace"))
        return str(path.relative_to(kernel.root))

    def describe(namespace: str) -> tuple[str, str]:
        """Kind and digest of what is about to be used; the agent says what is wrong with one that is not there."""
        try:
            executor = kernel.catalogue.create_executor(namespace)
            return executor.skill.kind, executor.digest
        except KernelError:
            return "", ""

    return Delivery(dispatcher=kernel.dispatcher, clock=kernel.clock, offload=offload, describe=describe)


def _finish(reply: Reply, kernel: Kernel, emit: Emit) -> None:
    if reply.session.approval is not None:
        emit(ApprovalRequested(subject=reply.session.approval.subject, detail=reply.report.summary))
    emit(RunContent(text=reply.report.summary))
    emit(RunCompleted(state=reply.report.state, summary=reply.report.summary))
    kernel.finish_hook(reply)


def _ending(error: BaseException) -> RunCancelled | RunError:
    import asyncio

    if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt)):
        return RunCancelled(reason="stopped by the person")
    return RunError(error={"type": type(error).__name__, "msg": str(error)})
