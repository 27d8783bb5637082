"""A workflow's run in the journal: what each step gets, what becomes of it, and what is asked after it; what the
approval of a plan covers, and which files a step may name (WFL-6..9)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.adapters.secrets.redaction import REDACTED
from navigator_kernel.errors import KernelError, Refused
from navigator_kernel.language.parameters import is_file
from navigator_kernel.language.rendering import render_report
from navigator_kernel.language.wording import say
from navigator_kernel.text import escape_controls
from navigator_kernel.turn.message import preprocess
from navigator_kernel.turn.packets import plan as planned
from navigator_kernel.turn.understand import understand_locally
from navigator_kernel.turn.workflow_file import call_of, store
from navigator_kernel.values.packet import Meta, Packet, Report, State
from navigator_kernel.values.plan import DispatchPlan, DispatchStep
from navigator_kernel.values.request import FileReference, Handoff, Message, PreprocessingResult, Session
from navigator_kernel.values.route import (
    Lifecycle,
    Mcp,
    NeedClarification,
    RouteDecision,
    Script,
    Skills,
    Unknown,
)
from navigator_kernel.values.work import with_progress, with_words
from navigator_kernel.values.workflow import (
    PLAN,
    REPEAT,
    Sandboxed,
    WorkflowPlan,
    WorkflowRun,
    WorkflowStep,
    WorkflowView,
)

if TYPE_CHECKING:
    from navigator_kernel.ports import Kernel
    from navigator_kernel.values.context import TurnContext


TEXT_LIMIT = 256 * 1024  # bytes of a file whose text is passed on
WHOLE_LIMIT = 16 * 1024 * 1024  # bytes of an output stored in a file
RETRIES = 2  # SAF-5: after this many failures in a row, a step is not offered again
_SUFFIXES = {"markdown": "md", "json": "json", "text": "txt"}
_ONCE = frozenset({"uninstall"})  # not idempotent; all other skill commands are
ENDED = frozenset({"done", "aborted"})
_FITTING = {"skills": Skills, "mcp": Mcp, "worker": Lifecycle | Script}  # the actions that each agent carries out


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


@contextmanager
def held_run(
    token: str, agreed: str, plan: WorkflowPlan, kernel: Kernel, context: TurnContext
) -> Iterator[JournalledRun]:
    """Continues the run while it is locked. `agreed` is the subject that the person agreed to: the approval of the plan
    stores it (WFL-9). `plan` is the run's, with the secrets of this turn's message, which the journal does not store.

    NotFound for an unknown token, Busy while another process has the run, Refused for a run that has ended.
    """
    journal = kernel.journal
    journal.load(token)
    with journal.hold(token):
        run = journal.load(token)
        if run.state in ENDED:
            raise Refused(f"workflow run {token!r} has ended: {run.state}", hint="ask for it again or call it by #name")
        is_new = agreed == PLAN and run.state == "proposed"
        journal.mark(token, "running", (), store(run.plan, kernel) if is_new else None)
        run = journal.load(token)
        both = zip(run.plan.steps, plan.steps, strict=True)
        steps = tuple(replace(stored, input=given.input) for stored, given in both)
        run = replace(run, plan=replace(run.plan, steps=steps))
        journalled = JournalledRun(kernel=kernel, context=context, run=run, agreed=agreed)
        journalled.allow((*run.granted, *context.grants))
        try:
            yield journalled
        except BaseException:
            journal.mark(token, "stopped")
            raise


class JournalledRun(Struct, kw_only=True):
    """The steps of a workflow's run: each is planned when its turn comes, and entered in the journal before and after.
    `packets` are those of the steps so far, `handed` is the result of the last one."""

    kernel: Kernel
    context: TurnContext
    run: WorkflowRun
    agreed: str
    packets: list[Packet] = field(default_factory=list)
    handed: Handoff | None = None
    attempt: int = 1

    def allow(self, subjects: Sequence[str]) -> None:
        for subject in subjects:
            if not is_by_name(subject):
                self.kernel.consents.allow(self.run.token, subject)

    @property
    def orders(self) -> DispatchPlan:
        """As many steps as the run has; `begin` fills them."""
        return DispatchPlan(steps=tuple(DispatchStep(packets=()) for _ in self.run.plan.steps))

    def begin(self, number: int) -> DispatchStep | Report:
        """The packet of a step, or its report: the stored one of a step that has succeeded, or the reason why the step
        cannot be started."""
        journal, token, last = self.kernel.journal, self.run.token, self.run.last(number)
        if last is not None and last.report is not None and last.report.state == "success":
            return replace(last.report, meta=replace(last.report.meta, cached=True))
        step = self.run.plan.steps[number - 1]
        self.attempt = attempt = 1 if last is None else last.attempt + 1  # each has its own idempotency key
        packet = self._packet(number, step)
        if isinstance(packet, Report):
            journal.begin(token, number, attempt, "")
            journal.end(token, number, attempt, packet)
            return packet
        if last is not None and last.report is not None and last.report.progress:
            packet = with_progress(packet, last.report)
            if last.report.state != "pending":  # the model stopped at a limit or a failure, and goes on
                more = say("prompt.continue", self.context.language)
                packet = with_words(packet, more, only_again=True) or packet
        self.packets.append(packet)
        if (
            last is not None
            and last.report is None
            and self.agreed != REPEAT
            and not is_idempotent(packet, self.kernel)
        ):
            text = say("workflow.doubt", self.context.language, step=number, text=step.text)
            return replace(self._own("pending", text, "in_doubt"), subject=REPEAT)
        body = {key: value for key, value in packet.to_dict().items() if key != "context"}  # the same in each attempt
        data = json.dumps(body, sort_keys=True, ensure_ascii=False, default=str).encode()
        journal.begin(token, number, attempt, f"sha256:{hashlib.sha256(data).hexdigest()}")
        return DispatchStep(packets=(packet,))

    def end(self, number: int, report: Report, *, ran: bool) -> None:
        """Enters the report of a step that ran, and hands the result of a successful one to the next."""
        token = self.run.token
        if ran:
            packet = self.packets[-1]
            if report.state == "success" and (fresh := installed(packet, self.run.granted, self.kernel)):
                self.kernel.journal.mark(token, "running", fresh)
                self.allow(fresh)
            self.kernel.journal.end(token, number, self.attempt, report)
        if report.state == "success":
            self.handed = hand_off(self.kernel, token, number, report)

    def outcome(self, reports: Sequence[Report], view: WorkflowView) -> WorkflowOutcome:
        """What became of the run, after the last step that was started; `view` is that of its beginning."""
        kernel, token, language = self.kernel, self.run.token, self.context.language
        total, number, report = len(self.run.plan.steps), len(reports), reports[-1]
        waits_for = question = result = ""
        if number == total and report.state == "success":
            try:
                result = final_output(kernel, self.run, report)
            except (KernelError, OSError) as error:
                text = say("workflow.unwritten", language, reason=str(error))
                data = {**report.data, "msg": text}
                report = replace(report, state="partial", summary=f"{report.summary}; {text}", data=data)
            kernel.journal.mark(token, "done")
        else:
            kernel.journal.mark(token, "waiting" if report.state == "pending" else "stopped")
            records = kernel.journal.load(token).records
            tried = [one.report for one in records if one.step == number and one.report is not None]
            # An outage of a model is not the step's fault
            failures = sum(one.state in {"error", "timeout", "partial"} and not one.unanswered for one in tried)
            if report.subject:  # a step that needs consent has its own question
                waits_for, question = report.subject, report.summary if report.subject == REPEAT else ""
            elif failures < RETRIES:
                waits_for = f"retry:{number}"
                key = "workflow.stopped" if report.progress else "workflow.retry"
                question = say(key, language, step=number, total=total, token=token)  # WFL-8
            else:
                question = say("workflow.twice", language, step=number, total=total, token=token)
        run = kernel.journal.load(token)
        again = view.again or call_of(run.plan, kernel)
        view = replace(view, state=run.state, plan=run.plan, done=run.done, idle=(), result=result, again=again)
        return WorkflowOutcome(
            view=view,
            orders=DispatchPlan(steps=tuple(DispatchStep(packets=(packet,)) for packet in self.packets)),
            reports=(*reports[:-1], report),
            waits_for=waits_for,
            question=question,
        )

    def _packet(self, number: int, step: WorkflowStep) -> Packet | Report:
        """The packet of a step, planned like any message, or a report if that fails."""
        kernel, plan, language = self.kernel, self.run.plan, self.context.language
        if REDACTED in step.input:
            return self._own("error", say("workflow.secret", language, step=number), "secret")
        request = preprocess(Message(text=step.input, language=language), kernel.root_files, self.context.now)
        request = replace(request, handed=self.handed, base=kernel.root)
        if problem := file_problem(request, plan.sandbox, kernel.root):
            return self._own("error", problem, "refused", exit_code=Refused.exit_code)
        action = understand_locally(request, Session(id=""), kernel.router).action
        if step.agent == "skills":  # the plan gives the name of the skill
            same = isinstance(action, Skills) and action.names[0] == step.skill
            arguments = action.arguments if same and isinstance(action, Skills) else ()
            action = Skills(names=(step.skill,), arguments=arguments, direct_call=True)
        if action is None or not isinstance(action, _FITTING[step.agent]):
            text = say("workflow.unfit", language, step=number, agent=step.agent, text=repr(step.input))
            return self._own("error", text, "unfit")
        exact = not isinstance(action, Skills) or bool(action.arguments)
        decision = RouteDecision(result=action, entity=step.skill, tier="exact" if exact else "retrieval")
        context = replace(self.context, run=self.run.token, step=number, attempt=self.attempt)
        order = planned(decision, request, kernel.catalogue, context)
        if isinstance(order, NeedClarification):
            return self._own("error", order.question, "missing", required=list(order.missing))
        if isinstance(order, Unknown):
            return self._own("error", order.name, "file")
        packet = order.steps[0].packets[0]
        if plan.timeout_seconds:
            limits = packet.constraints
            limits = replace(limits, timeout=min(limits.timeout, plan.timeout_seconds))
            packet = replace(packet, constraints=limits)
        if problem := order_problem(packet, plan.sandbox, (kernel.root, workspace(kernel, self.run.token))):
            return self._own("error", problem, "refused", exit_code=Refused.exit_code)
        return packet

    def _own(self, state: State, text: str, reason: str, **data: object) -> Report:
        meta = Meta(agent="kernel", time=0.0, ts=self.kernel.clock.now())
        return Report(state=state, summary=text, meta=meta, data={"reason": reason, "msg": text, **data})


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
            whole = json.loads(read_bounded(kernel.root / report.offloaded, WHOLE_LIMIT))
            return dict(whole["data"]), whole["raw"]
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


def grants(plan: WorkflowPlan, kernel: Kernel) -> tuple[str, ...]:
    """The subjects that a yes to `plan` covers: each skill command, script and skill that it shows (SAF-1).

    An existing skill is covered by its digest; one that the plan itself installs, by its name until it is installed
    (`installed`). Anything covered by neither is asked about when its turn comes. Consent to an MCP server is given to
    its whole command, when it is started.
    """
    subjects: list[str] = []
    coming: set[str] = set()
    for step in plan.steps:
        action = kernel.router.recognise(step.input)
        match step.agent, action:
            case "worker", Lifecycle(operation=operation, source=source, skills=skills):
                subjects.append(f"skill.{' '.join(word for word in (operation, source, *skills) if word)}")
                coming |= set(skills) if operation == "install" else set()
            case "worker", Script(name=name) if name in kernel.scripts:
                digest = hashlib.sha256(kernel.scripts[name].read_bytes()).hexdigest()
                subjects.append(f"script:{name}@sha256:{digest}")
            case "skills", _:
                subjects += _skill(step.skill, kernel) or ([f"type_a:{step.skill}"] if step.skill in coming else [])
    return tuple(dict.fromkeys(subjects))


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
