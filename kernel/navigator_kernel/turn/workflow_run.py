"""Runs a plan step by step: journalled, serial, and stopped at a failure (WFL-6..9)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.adapters.secrets.redaction import REDACTED
from navigator_kernel.errors import KernelError, Refused
from navigator_kernel.language.parameters import is_file
from navigator_kernel.language.rendering import render_report
from navigator_kernel.language.wording import say
from navigator_kernel.text import escape_controls
from navigator_kernel.turn.deliver import DispatchDeps, deliver
from navigator_kernel.turn.message import preprocess
from navigator_kernel.turn.packets import plan as planned
from navigator_kernel.turn.understand import understand_locally
from navigator_kernel.turn.workflow_file import store
from navigator_kernel.values.plan import DispatchPlan, DispatchStep
from navigator_kernel.values.report import Meta, Report, State
from navigator_kernel.values.request import FileReference, Handoff, Message, PreprocessingResult, Session
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from navigator_kernel.events import Emit
    from navigator_kernel.ports import Kernel
    from navigator_kernel.values.context import TurnContext
    from navigator_kernel.values.packet import Packet
    from navigator_kernel.values.request import PreprocessingResult
    from navigator_kernel.values.workflow import Sandboxed, WorkflowPlan, WorkflowRun


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


# The data that a step passes to the next one, and the output of a workflow for the person (WFL-7, part 3 item 5).

TEXT_LIMIT = 256 * 1024  # bytes of a file whose text is passed on
WHOLE_LIMIT = 16 * 1024 * 1024  # bytes of an output stored in a file
_SUFFIXES = {"markdown": "md", "json": "json", "text": "txt"}


def hand_off(kernel: Kernel, token: str, number: int, report: Report) -> Handoff:
    """Stores the whole report of step `number` as a JSON file, and returns it with the output and the files."""
    folder = workspace(kernel, token)
    data, raw = _whole(kernel, report)
    path = folder / f"handover-{number}.json"
    body = {"step": number, "state": report.state, "summary": report.summary, "data": data, "raw": raw}
    whole = json.dumps(body, ensure_ascii=False, indent=1, default=str)
    kernel.keep(token, path.name, whole.encode("utf-8", "replace"))
    text = data.get("text")  # what a skill writes for readers, beside its data
    if not isinstance(text, str) or not text:
        text = raw if raw is not None else json.dumps(data, ensure_ascii=False, default=str)
    files = tuple(_files(kernel.root, folder, replace(report, data=data)))
    return Handoff(step=number, text=text, files=files, report=path)


def final_output(kernel: Kernel, run: WorkflowRun, report: Report) -> str:
    """Writes the last report to the workflow's `output`, and returns its path, or an empty text if it is inline."""
    out = run.plan.output
    if out.location == "inline":
        return ""
    name = out.file_path or f"result.{_SUFFIXES[out.format]}"
    data, raw = _whole(kernel, report)
    match out.format:
        case "json":
            text = json.dumps({**report.to_dict(), "data": data, "raw": raw}, ensure_ascii=False, indent=1, default=str)
        case "text":
            text = raw if raw is not None else report.summary
        case _:
            text = (
                f"# {run.plan.description}\n\n```text\n{render_report(report, 'detail', 'ascii')}\n```\n\n{raw or ''}"
            )
    return kernel.keep(run.token, name, text.rstrip("\n").encode("utf-8", "replace") + b"\n")


def workspace(kernel: Kernel, token: str) -> Path:
    """The folder that all steps of a run share."""
    return kernel.box / "workspace" / token


def _whole(kernel: Kernel, report: Report) -> tuple[dict[str, Any], str | None]:
    """The data and the raw output, read from the file if they were too long for the report."""
    if report.offloaded:
        try:
            held = json.loads(read_bounded(kernel.root / report.offloaded, WHOLE_LIMIT))
            return dict(held["data"]), held["raw"]
        except (OSError, ValueError, KeyError, TypeError, KernelError):
            pass  # the file has been removed; the report's own data is left
    return dict(report.data), report.raw


def _files(root: Path, folder: Path, report: Report) -> Iterator[FileReference]:
    """The files in the run's folder that the step names, with their text if it is short enough and UTF-8."""
    for name in report.files:
        path = root / name
        if not is_file(path) or not path.resolve().is_relative_to(folder.resolve()):
            continue
        try:
            text = read_bounded(path, TEXT_LIMIT).decode("utf-8")
        except (OSError, UnicodeDecodeError, KernelError):
            text = ""
        yield FileReference(written=escape_controls(name), path=path, content=text)


# Decides what the approval of a plan covers, which files a step may name, and which steps may be repeated.

_ONCE = frozenset({"uninstall"})  # a second run finds nothing there; every other skill command ends the same way


def grants(plan: WorkflowPlan, kernel: Kernel) -> tuple[str, ...]:
    """The subjects that a yes to `plan` covers: each skill command, script and skill that it shows (SAF-1).

    An existing skill is covered by its digest; one that the plan itself installs, by its name until it is installed
    (`installed`). Anything covered by neither is asked about when its turn comes. Consent to an MCP server is given to
    its whole command, when it is started.
    """
    found: list[str] = []
    coming: set[str] = set()
    for step in plan.steps:
        action = kernel.router.recognise(step.input)
        match step.agent, action:
            case "worker", Lifecycle(operation=operation, source=source, skills=skills):
                found.append(f"skill.{' '.join(word for word in (operation, source, *skills) if word)}")
                coming |= set(skills) if operation == "install" else set()
            case "worker", Script(name=name) if name in kernel.scripts:
                digest = hashlib.sha256(kernel.scripts[name].read_bytes()).hexdigest()
                found.append(f"script:{name}@sha256:{digest}")
            case "skills", _:
                found += _skill(step.skill, kernel) or ([f"type_a:{step.skill}"] if step.skill in coming else [])
    return tuple(dict.fromkeys(found))


def installed(packet: Packet, granted: Sequence[str], kernel: Kernel) -> tuple[str, ...]:
    """The consents to skills that a plan covered by name, if the last step was an install."""
    if packet.task_spec.operation != "skill.install":
        return ()
    names = [subject.removeprefix("type_a:") for subject in granted if is_by_name(subject)]
    return tuple(subject for name in names for subject in _skill(name, kernel))


def is_by_name(subject: str) -> bool:
    """Whether a subject names a skill of a plan, without agreement to its bytes."""
    return subject.startswith("type_a:") and "@sha256:" not in subject


def _skill(name: str, kernel: Kernel) -> list[str]:
    skill = kernel.catalogue.find(name)
    try:
        return [kernel.catalogue.create_executor(skill.namespace).consent] if skill else []
    except KernelError:
        return []


def is_idempotent(packet: Packet, kernel: Kernel) -> bool:
    """Whether the packet may be repeated: by the skill's declaration or its kind."""
    match packet.agent:
        case "skills":
            skill = kernel.catalogue.find(packet.task_spec.target.partition(":")[2])
            worked_on = kernel.models is not None and bool(skill and skill.tools)  # by a model, whose tools can act
            return skill is not None and (skill.idempotent or (skill.kind == "B" and not worked_on))
        case "mcp":
            return packet.task_spec.operation != "call"
        case _:
            kind, _, operation = packet.task_spec.operation.partition(".")
            return kind == "skill" and operation not in _ONCE


def file_problem(request: PreprocessingResult, sandbox: Sandboxed, root: Path) -> str:
    """The reason why a file of a step may not be read, or empty."""
    for file in request.files:
        if file.problem:
            return file.problem
        if problem := _problem(file.path, sandbox, root.resolve()):
            return problem
    return ""


def order_problem(packet: Packet, sandbox: Sandboxed, places: tuple[Path, Path]) -> str:
    """As `file_problem`, for files that are given by name alone: any value or word that names a file.

    `places` are the project's root and the run's own folder, whose files belong to the workflow.
    """
    root, own = (place.resolve() for place in places)
    for word in map(str, [*packet.params.required.values(), *packet.params.value("arguments", ())]):
        if not is_file(root / word):
            continue
        path = Path(os.path.realpath(root / word))
        if not path.is_relative_to(own) and (problem := _problem(path, sandbox, root)):
            return problem
    return ""


def _problem(real: Path, sandbox: Sandboxed, root: Path) -> str:
    if not real.is_relative_to(root):
        return f"{str(real)!r} is outside the project"
    shown = repr(real.relative_to(root).as_posix())
    if _among(real, sandbox.forbidden, root):
        return f"{shown} is forbidden by the workflow"
    if not _among(real, sandbox.read, root):
        return f"{shown} is not among the files that the workflow may read (sandbox.file_access.read)"
    return ""


def _among(real: Path, places: tuple[str, ...], root: Path) -> bool:
    return any(real.is_relative_to(os.path.realpath(root / place)) for place in places)
