"""Runs a plan step by step: journalled, serial, and stopped at a failure (WFL-6..9)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.secrets.redaction import REDACTED
from navigator_kernel.errors import KernelError, Refused
from navigator_kernel.language.wording import say
from navigator_kernel.stages.deliver import DispatchDeps, deliver
from navigator_kernel.stages.plan import plan as planned
from navigator_kernel.stages.preprocess import preprocess
from navigator_kernel.stages.understand import understand_locally
from navigator_kernel.values.packet import Meta, Report, State
from navigator_kernel.values.plan import DispatchPlan, DispatchStep
from navigator_kernel.values.request import Handoff, Message, PreprocessingResult, Session
from navigator_kernel.values.route import (
    Lifecycle,
    Mcp,
    NeedClarification,
    RouteDecision,
    RouteResult,
    Script,
    Skills,
    Unknown,
)
from navigator_kernel.values.work import with_progress, with_words
from navigator_kernel.values.workflow import (
    PLAN,
    REPEAT,
    RunState,
    StepRecord,
    WorkflowPlan,
    WorkflowRun,
    WorkflowStep,
    WorkflowView,
)
from navigator_kernel.workflows.handoff import final_output, hand_off, workspace
from navigator_kernel.workflows.permissions import file_problem, installed, is_by_name, is_idempotent, order_problem
from navigator_kernel.workflows.store import store

if TYPE_CHECKING:
    from navigator_kernel.events import Emit
    from navigator_kernel.ports import Kernel
    from navigator_kernel.values.context import TurnContext
    from navigator_kernel.values.packet import Packet

RETRIES = 2  # SAF-5: after this many failures in a row, a step is not offered again
ENDED = frozenset({"done", "aborted"})


class WorkflowOutcome(Struct, frozen=True, kw_only=True):
    """The result of a workflow run; `view` is None for orders that are not a workflow.

    `waits_for` is the subject that the person has to agree to before the run goes on, `question` the question for that;
    both are empty if the run is done.
    """

    view: WorkflowView | None
    orders: DispatchPlan
    reports: tuple[Report, ...]
    waits_for: str = ""
    question: str = ""


class WorkflowRunner(Struct, frozen=True, kw_only=True):
    """Runs one workflow run in one process."""

    kernel: Kernel
    delivery: DispatchDeps
    context: TurnContext
    emit: Emit

    async def follow(
        self, token: str, agreed: str, *, plan: WorkflowPlan, left: tuple[str, ...] = ()
    ) -> WorkflowOutcome:
        """Runs the plan from the first step that has not succeeded. `agreed` is the subject that the person agreed to;
        `plan` is the run's, with the secrets of this turn's message, which the journal does not store.

        NotFound for an unknown token, Busy while another process follows the run, Refused for a run that has ended.
        """
        journal = self.kernel.journal
        journal.load(token)
        with journal.hold(token):
            run = _with_secrets(self._begun(token, agreed), plan)
            self._allow(token, (*run.granted, *self.context.grants))
            try:
                course, result = await self._steps(run, agreed)
                return replace(course, view=replace(self._view(token), left=left, result=result))
            except BaseException:
                journal.mark(token, "stopped")
                raise

    def _allow(self, token: str, subjects: Sequence[str]) -> None:
        for subject in subjects:
            if not is_by_name(subject):
                self.kernel.consents.allow(token, subject)

    def _begun(self, token: str, agreed: str) -> WorkflowRun:
        """Approval of the plan stores it (WFL-9)."""
        journal = self.kernel.journal
        run = journal.load(token)
        if run.state in ENDED:
            raise Refused(f"workflow run {token!r} has ended: {run.state}", hint="ask for it again or call it by #name")
        if agreed == PLAN:
            stays = run.state != "proposed"
            journal.mark(token, "running", (), None if stays else store(run.plan, self.kernel))
        else:
            journal.mark(token, "running")
        return journal.load(token)

    async def _steps(self, run: WorkflowRun, agreed: str) -> tuple[WorkflowOutcome, str]:
        packets: list[Packet] = []
        reports: list[Report] = []
        handed: Handoff | None = None
        for number, step in enumerate(run.plan.steps, 1):
            packet, report = await self._step(run, number, step, handed, agreed)
            packets += [packet] if packet else []
            reports.append(report)
            if report.state != "success":
                return self._stopped(run, number, packets, reports), ""
            handed = hand_off(self.kernel, run.token, number, report)
        result = ""
        try:
            result = final_output(self.kernel, run, reports[-1])
        except (KernelError, OSError) as error:
            text = say("workflow.unwritten", self.context.language, reason=str(error))
            data = {**reports[-1].data, "msg": text}
            reports[-1] = replace(reports[-1], state="partial", summary=f"{reports[-1].summary}; {text}", data=data)
        self.kernel.journal.mark(run.token, "done")
        return WorkflowOutcome(view=self._view(run.token), orders=_orders(packets), reports=tuple(reports)), result

    async def _step(
        self, run: WorkflowRun, number: int, step: WorkflowStep, handed: Handoff | None, agreed: str
    ) -> tuple[Packet | None, Report]:
        """The stored report of a successful step, or the result of running it now."""
        last = run.last(number)
        if last is not None and last.report is not None and last.report.state == "success":
            return None, replace(last.report, meta=replace(last.report.meta, cached=True))
        order = self._order(run, number, step, handed, last)
        if isinstance(order, Report):
            self.kernel.journal.begin(run.token, number, _attempt(last), "")
            self.kernel.journal.end(run.token, number, _attempt(last), order)
            return None, order
        packet = order.steps[0].packets[0]
        if last is not None and last.report is not None and last.report.progress:
            packet = with_progress(packet, last.report)
            if last.report.state != "pending":  # the model stopped at a limit or a failure, and goes on
                more = say("prompt.continue", self.context.language)
                packet = with_words(packet, more, only_again=True) or packet
            order = _orders([packet])
        if last is not None and last.report is None and agreed != REPEAT and not is_idempotent(packet, self.kernel):
            text = say("workflow.doubt", self.context.language, step=number, text=step.text)
            return packet, replace(self._own("pending", text, "in_doubt"), subject=REPEAT)
        attempt = _attempt(last)
        digest = f"sha256:{hashlib.sha256(_input(packet)).hexdigest()}"
        self.kernel.journal.begin(run.token, number, attempt, digest)
        report = (await deliver(order, self.delivery, self.emit))[0]
        if report.state == "success" and (fresh := installed(packet, run.granted, self.kernel)):
            self.kernel.journal.mark(run.token, "running", fresh)
            self._allow(run.token, fresh)
        self.kernel.journal.end(run.token, number, attempt, report)
        return packet, report

    def _order(
        self, run: WorkflowRun, number: int, step: WorkflowStep, handed: Handoff | None, last: StepRecord | None
    ) -> DispatchPlan | Report:
        """The packet of a step, planned like any message, or a report if that fails."""
        language = self.context.language
        if REDACTED in step.input:
            return self._own("error", say("workflow.secret", language, step=number), "secret")
        request = replace(
            preprocess(Message(text=step.input, language=language), self.kernel.root_files, self.context.now),
            handed=handed,
            base=self.kernel.root,
        )
        if problem := file_problem(request, run.plan.sandbox, self.kernel.root):
            return self._own("error", problem, "refused", exit_code=Refused.exit_code)
        result = self._bound(request, step)
        if result is None:
            text = say("workflow.unfit", language, step=number, agent=step.agent, text=repr(step.input))
            return self._own("error", text, "unfit")
        decision = RouteDecision(result=result, entity=step.skill, tier="exact" if _named(result) else "retrieval")
        context = replace(self.context, run=run.token, step=number, attempt=_attempt(last))
        order = planned(decision, request, self.kernel.catalogue, context)
        if isinstance(order, NeedClarification):
            return self._own("error", order.question, "missing", required=list(order.missing))
        if isinstance(order, Unknown):
            return self._own("error", order.name, "file")
        packet = _in_time(order.steps[0].packets[0], run.plan.timeout_seconds)
        places = (self.kernel.root, workspace(self.kernel, run.token))
        if problem := order_problem(packet, run.plan.sandbox, places):
            return self._own("error", problem, "refused", exit_code=Refused.exit_code)
        return _orders([packet])

    def _bound(self, request: PreprocessingResult, step: WorkflowStep) -> RouteResult | None:
        """The action for the step's input; the plan gives the name of its skill. None if the input does not fit the
        agent."""
        action = understand_locally(request, Session(id=""), self.kernel.router).action
        if step.agent == "skills":
            same = isinstance(action, Skills) and action.names[0] == step.skill
            arguments = action.arguments if same and isinstance(action, Skills) else ()
            return Skills(names=(step.skill,), arguments=arguments, direct_call=True)
        wanted = Mcp if step.agent == "mcp" else Lifecycle | Script
        return action if isinstance(action, wanted) else None

    def _stopped(self, run: WorkflowRun, number: int, packets: list[Packet], reports: list[Report]) -> WorkflowOutcome:
        """The question to the person after the last step (WFL-8)."""
        report, language = reports[-1], self.context.language
        state: RunState = "waiting" if report.state == "pending" else "stopped"
        self.kernel.journal.mark(run.token, state)
        waits = question = ""
        if report.subject:
            waits = report.subject
            question = report.summary if waits == REPEAT else ""  # a step that needs consent has its own question
        else:
            tries = _failures(self.kernel.journal.load(run.token), number)
            total = len(run.plan.steps)
            key = "workflow.retry" if tries < RETRIES else "workflow.twice"
            question = say(key, language, step=number, total=total, token=run.token)
            waits = f"retry:{number}" if tries < RETRIES else ""
        view = self._view(run.token)
        return WorkflowOutcome(
            view=view, orders=_orders(packets), reports=tuple(reports), waits_for=waits, question=question
        )

    def _view(self, token: str) -> WorkflowView:
        run = self.kernel.journal.load(token)
        return WorkflowView(token=token, state=run.state, plan=run.plan, done=run.done)

    def _own(self, state: State, text: str, reason: str, **data: object) -> Report:
        meta = Meta(agent="kernel", time=0.0, ts=self.kernel.clock.now())
        return Report(state=state, summary=text, meta=meta, data={"reason": reason, "msg": text, **data})


def _with_secrets(run: WorkflowRun, plan: WorkflowPlan) -> WorkflowRun:
    """The run with the inputs of `plan`, which may contain values that were not stored."""
    steps = tuple(replace(kept, input=said.input) for kept, said in zip(run.plan.steps, plan.steps, strict=True))
    return replace(run, plan=replace(run.plan, steps=steps))


def _in_time(packet: Packet, limit: float) -> Packet:
    """The packet with the workflow's time limit."""
    held = packet.constraints
    return replace(packet, constraints=replace(held, timeout=min(held.timeout, limit))) if limit else packet


def _attempt(last: StepRecord | None) -> int:
    """The number of the next attempt. Each attempt has its own idempotency key."""
    return 1 if last is None else last.attempt + 1


def _failures(run: WorkflowRun, number: int) -> int:
    """How often the step has failed in this run; an outage of a model is not the step's fault."""
    reports = [record.report for record in run.records if record.step == number and record.report is not None]
    return sum(report.state in {"error", "timeout", "partial"} and not report.unanswered for report in reports)


def _named(result: RouteResult) -> bool:
    return not isinstance(result, Skills) or bool(result.arguments)


def _orders(packets: Sequence[Packet]) -> DispatchPlan:
    return DispatchPlan(steps=tuple(DispatchStep(packets=(packet,)) for packet in packets))


def _input(packet: Packet) -> bytes:
    """The packet without values that differ between attempts."""
    body = {key: value for key, value in packet.to_dict().items() if key != "context"}
    return json.dumps(body, sort_keys=True, ensure_ascii=False, default=str).encode()
