"""Stage 4: carries out a plan step by step, with fallback candidates, and stops at a failure (WFL-7, CAN-1..6)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.errors import KernelError
from navigator_kernel.events import (
    RESULT,
    Emit,
    SkillActivated,
    SkillLoaded,
    SkillUsed,
    StepCompleted,
    StepStarted,
    ToolCallCompleted,
    ToolCallStarted,
)
from navigator_kernel.language.wording import COLON, say
from navigator_kernel.text import Language, clean, shorten
from navigator_kernel.turn.workflow_run import JournalledRun, WorkflowOutcome, held_run
from navigator_kernel.values.packet import Meta, Packet, Report
from navigator_kernel.values.redact import Redact, same
from navigator_kernel.values.work import PROGRESS
from navigator_kernel.values.workflow import PLAN

if TYPE_CHECKING:
    from navigator_kernel.model_ports import Specialist
    from navigator_kernel.ports import Clock, Dispatcher, Kernel
    from navigator_kernel.turn.plan import TurnPlan
    from navigator_kernel.values.context import TurnContext
    from navigator_kernel.values.plan import DispatchPlan, DispatchStep
    from navigator_kernel.values.request import Message

KERNEL = "kernel"  # the agent of orders without a subagent: for messages without a skill
OFFLOAD_AT = 32 * 1024  # characters of data or raw output that a report can carry
REASON = 200  # characters of what a failed program wrote that its summary shows


class DispatchDeps(Struct, frozen=True, kw_only=True):
    """The dependencies of `deliver`. `offload` stores text that is too large for a report and returns its path;
    `describe` gives the kind (A or B) and the digest of a skill by `type:name`, both empty if it is missing; `redact`
    removes secrets from reports; `specialist` works on prepared prompts, if there is a model; with `shows_prompts` they
    are the result."""

    dispatcher: Dispatcher
    clock: Clock
    offload: Callable[[Packet, str], str]
    describe: Callable[[str], tuple[str, str]]
    redact: Redact = same
    specialist: Specialist | None = None
    shows_prompts: bool = False


async def carry_out(
    plan: TurnPlan, message: Message, context: TurnContext, kernel: Kernel, emit: Emit
) -> WorkflowOutcome:
    """Carries out the plan of a turn; a workflow that the person has not agreed to is only proposed."""
    delivery, workflow = dispatch_deps(kernel, kernel.specialist(plan.before, plan.spent)), plan.workflow
    delivery = replace(delivery, specialist=None, shows_prompts=True) if message.shows_prompt else delivery
    if kernel.underway is not None and workflow is not None:
        kernel.underway.leave(context.run)  # workflows have a journal
    elif kernel.underway is not None and len(plan.orders.steps) > 1:
        kernel.underway.drop_orders(context.run)  # several packets are not resumed
    if workflow is None:
        if message.consent:
            kernel.consents.allow_orders(context.run)
        return WorkflowOutcome(view=None, orders=plan.orders, reports=await deliver(plan.orders, delivery, emit))
    view, agreed = workflow.view, PLAN if workflow.agreed is None else workflow.agreed
    if workflow.agreed is None and not message.consent:
        return WorkflowOutcome(view=view, orders=plan.orders, reports=(), waits_for=PLAN)
    if message.consent:
        kernel.consents.allow_orders(view.token)
    with held_run(view.token, agreed, view.plan, kernel, context) as run:
        return run.outcome(await deliver(run.orders, delivery, emit, run), view)


async def deliver(
    plan: DispatchPlan, delivery: DispatchDeps, emit: Emit, run: JournalledRun | None = None
) -> tuple[Report, ...]:
    """Carries out the steps in order, and returns one report for each that was started. It stops at the first that
    failed; in a workflow, whose steps build on each other, at the first without full success. `run` makes a workflow's
    packets and keeps its journal."""
    reports: list[Report] = []
    for number, step in enumerate(plan.steps, 1):
        ready = step if run is None else run.begin(number)
        report = ready if isinstance(ready, Report) else await _step(ready, delivery, emit)
        if run is not None:
            run.end(number, report, ran=not isinstance(ready, Report))
        reports.append(report)
        goes_on = report.state == "success" or (report.state == "partial" and run is None)
        if not goes_on or report.progress:  # a model that stopped can go on
            break
    return tuple(reports)


async def _step(step: DispatchStep, delivery: DispatchDeps, emit: Emit) -> Report:
    """Tries the candidates in order; goes on only after a recoverable error that changed nothing (X-6)."""
    if not step.packets:
        return nothing_ready(delivery)
    tried: list[tuple[Packet, Report]] = []
    for packet in step.packets:
        begun = await begin(packet, delivery, emit)
        answer = begun.report
        if delivery.specialist is not None and wants_model(begun):
            answer = await _worked_on(begun, delivery.specialist, emit)
        language = packet.context.language
        report = nothing_ready(delivery, language) if answer is None else end(begun, answer, delivery, emit)
        tried.append((packet, report))
        if report.state != "error" or not report.recoverable or report.effects:
            return report
    return tried[0][1] if len(tried) == 1 else _all_failed(tried)


class StartedStep(Struct, frozen=True, kw_only=True):
    """A step whose agent has answered: `report` is its answer, None for an order of the kernel's own; `seq` is the
    number of the step's first event, `kind` that of its skill."""

    packet: Packet
    seq: int
    report: Report | None
    kind: str = ""


async def _worked_on(begun: StartedStep, specialist: Specialist, emit: Emit) -> Report:
    """Lets the model work; with `on_error: fix`, repeats a rejected result once, unless it changed something (X-37)."""
    report = await specialist.work(begun.packet, begun.report, emit)
    result = checked(begun.packet, report)
    if begun.packet.return_spec.on_error != "fix" or result.state != "error" or report.effects or report.unanswered:
        return report
    return await specialist.work(begun.packet, begun.report, emit, wrong=result.summary)


async def begin(packet: Packet, delivery: DispatchDeps, emit: Emit) -> StartedStep:
    """Sends the packet to its agent, if it has one, and waits for the answer."""
    shown, report = packet.to_dict(), None
    shown["params"]["optional"].pop(PROGRESS, None)  # the log has it already
    started = emit(StepStarted(agent=packet.agent, packet=shown), step=packet.context.step)
    name, kind = _skill_name(packet), ""
    if name:  # the last stages of the funnel: loaded and active
        kind, digest = delivery.describe(packet.task_spec.target)
        emit(SkillLoaded(skill=name, kind=kind, digest=digest), step=packet.context.step, parent=started.seq)
        activated = SkillActivated(skill=name, agent=packet.agent, digest=digest)
        emit(activated, step=packet.context.step, parent=started.seq)
    elif packet.agent != KERNEL:
        call = packet.context.idempotency_key
        called = ToolCallStarted(call=call, tool=_tool(packet), args=dict(packet.params.required))
        emit(called, step=packet.context.step, parent=started.seq)
    if kind == "B" and delivery.specialist is None and not delivery.shows_prompts:  # only a model can carry it out
        # The report on a prompt skill without a model: nothing was done, and what can be done about it
        language = packet.context.language
        ways = [say(way, language) for way in ("prompt.way_model", "prompt.way_host", "prompt.way_show")]
        data = {"skill": name, "kind": "B", "required": ["model"], "optional": [], "reason": "no_model", "ways": ways}
        summary = say("prompt.unworked", language, skill=name)
        meta = Meta(agent="skills", time=0, ts=delivery.clock.now())
        report = Report(state="pending", summary=summary, meta=meta, data=data, private=False)
    elif packet.agent != KERNEL:
        task = await delivery.dispatcher.submit(packet)
        try:
            report = await delivery.dispatcher.result(task)
        except BaseException:
            await delivery.dispatcher.cancel(task)
            raise
    return StartedStep(packet=packet, seq=started.seq, report=report, kind=kind)


def wants_model(begun: StartedStep) -> bool:
    """Whether a model must work on the step: a message without a skill, or a prepared prompt."""
    return begun.report is None or _is_ready(begun, begun.report)


def end(begun: StartedStep, report: Report, delivery: DispatchDeps, emit: Emit) -> Report:
    """Returns the final report: validated, redacted, limited in size, and emitted as an event. A prompt that is to be
    shown is left as it is, and no event has it."""
    packet, number, prompt = begun.packet, begun.packet.context.step, ""
    if delivery.shows_prompts and _is_ready(begun, report):
        prompt, data = str(report.data["prompt"]), {key: report.data[key] for key in ("skill", "kind", "backend")}
        report = replace(report, data=data, raw=None)
    report, redact = report if prompt else checked(packet, report), delivery.redact  # before it is stored or shown
    facts = {"summary": redact(report.summary), "data": redact(report.data), "raw": redact(report.raw)}
    report = replace(report, **facts, effects=tuple(redact(list(report.effects))))
    # The summary of a failed program ends with the last line that it wrote, which is often a sentence for people. It
    # is cut after secrets are replaced, so that no half of one is shown
    lines = clean(str(report.data.get("msg", ""))).split("\n") if report.data.get("type") == "ExitCode" else ()
    if reason := next((line for line in reversed(lines) if any(map(str.isalpha, line))), ""):
        summary = f"{report.summary}{COLON[packet.context.language]}{shorten(reason, REASON)}"
        report = replace(report, summary=summary)
    if report.state in {"error", "timeout"} and packet.return_spec.on_error == "summarize":
        # One line and the kind of the failure; the rest goes to a file
        path = _offloaded(packet, report, delivery)
        data = {**{key: value for key, value in report.data.items() if key in _KINDS_OF_ERROR}, "offloaded": path}
        report = replace(report, summary=report.summary.partition("\n")[0], data=data, raw=None, offloaded=path)
    report = replace(_fitted(packet, report, delivery), target=packet.task_spec.target)
    name = _skill_name(packet)
    if packet.agent == KERNEL:
        pass
    elif name:
        emit(SkillUsed(skill=name, state=report.state), step=number, parent=begun.seq)
    else:
        call, elapsed = packet.context.idempotency_key, report.meta.time
        text = (report.raw or report.summary)[:RESULT]
        done = ToolCallCompleted(call=call, tool=_tool(packet), state=report.state, elapsed=elapsed, result=text)
        emit(done, step=number, parent=begun.seq)
    emit(StepCompleted(agent=packet.agent, report=report.to_dict()), step=number, parent=begun.seq)
    return replace(report, raw=prompt) if prompt else report


def _is_ready(begun: StartedStep, report: Report) -> bool:
    """Whether the report is a prepared prompt; the output of a command may look like one but is not."""
    return begun.kind == "B" and report.state == "success" and "prompt" in report.data


def checked(packet: Packet, report: Report) -> Report:
    """Checks the success criterion, then the required fields (X-37)."""
    if report.state not in {"success", "partial"}:
        return report
    rule = packet.constraints.validation
    language = packet.context.language
    if rule and not meets(report, rule):
        text = say("validation.unmet", language, rule=rule if isinstance(rule, str) else json.dumps(rule))
        return replace(
            report, state="error", summary=text, data={**report.data, "type": "ValidationUnmet", "msg": text}
        )
    absent = [name for name in packet.return_spec.fields if name not in report.data]
    if absent:
        text = say("fields.missing", language, names=", ".join(absent))
        return replace(report, state="partial", summary=text, data={**report.data, "missing_fields": absent})
    return report


def meets(report: Report, rule: str | Mapping[str, Any]) -> bool:
    """Checks `exit_code:0`, `file_exists:<path in the run's folder>`, `contains:<text>`, or a schema of type, required
    and properties."""
    if isinstance(rule, Mapping):
        return _matches(report.data, rule)
    kind, _, value = rule.partition(":")
    match kind.strip():
        case "exit_code":
            return str(report.data.get("status", 0)) == value.strip()
        case "file_exists":
            name = value.strip()
            # The path from the folder of its run: `out/a.md` for `mybox/workspace/<run>/out/a.md`
            return any(name in {path, path.partition("mybox/workspace/")[2].partition("/")[2]} for path in report.files)
        case "contains":
            return (
                value.strip() in f"{report.summary}\n{report.raw or ''}\n{json.dumps(report.data, ensure_ascii=False)}"
            )
        case _:
            return False


_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list, tuple),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def _matches(value: Any, schema: Mapping[str, Any]) -> bool:
    kind = str(schema.get("type", ""))
    if kind in _JSON_TYPES and not isinstance(value, _JSON_TYPES[kind]):
        return False
    if isinstance(value, bool) and kind in {"integer", "number"}:
        return False
    if not isinstance(value, Mapping):
        return "enum" not in schema or value in schema["enum"]
    inner: Mapping[str, Any] = schema.get("properties", {})
    return all(name in value for name in schema.get("required", ())) and all(
        _matches(value[name], rule) for name, rule in inner.items() if name in value
    )


_KINDS_OF_ERROR = frozenset({"type", "code", "exit_code", "status", "elapsed", "limit"})


def _offloaded(packet: Packet, report: Report, delivery: DispatchDeps) -> str:
    """Stores the whole report in a file and returns its path."""
    whole = json.dumps({"data": dict(report.data), "raw": report.raw}, ensure_ascii=False, indent=1)
    return delivery.offload(packet, whole)


def _fitted(packet: Packet, report: Report, delivery: DispatchDeps) -> Report:
    """Moves output that is too long to a file (RET-8), but nothing that a person is asked to approve."""
    size = len(report.raw or "") + len(json.dumps(report.data, ensure_ascii=False, default=str))
    if size <= OFFLOAD_AT or (report.state == "pending" and report.subject):
        return report
    path = _offloaded(packet, report, delivery)
    data: dict[str, Any] = {}
    room = OFFLOAD_AT // 2
    for key, value in report.data.items():
        size = len(key) + len(json.dumps(value, ensure_ascii=False, default=str))
        if size <= min(room, 1024):
            data[key] = value
            room -= size
    note = say("offloaded", packet.context.language, path=path)
    raw = None if report.raw is None else f"{report.raw[: OFFLOAD_AT // 2]}\n… {note}"
    return replace(report, data={**data, "offloaded": path}, raw=raw, offloaded=path)


def _all_failed(tried: Sequence[tuple[Packet, Report]]) -> Report:
    """The report if every candidate failed: type, tried candidates, reason (CAN-6)."""
    packet, last = tried[-1]
    names = [packet.task_spec.target for packet, _ in tried]
    text = say("candidates.failed", packet.context.language, tried=", ".join(names), reason=last.summary)
    data = {
        **last.data,
        "type": "CandidatesFailed",
        "resource_type": names[0].partition(":")[0],
        "tried": names,
        "reason": last.summary,
    }
    return replace(last, summary=text, data={**data, "msg": text})


def nothing_ready(delivery: DispatchDeps, language: Language = "en") -> Report:
    """The report of a step that no agent can carry out."""
    text = say("candidates.none", language)
    meta = Meta(agent="kernel", time=0, ts=delivery.clock.now())
    return Report(state="error", summary=text, meta=meta, data={"type": "NoCandidate", "msg": text}, private=False)


def _skill_name(packet: Packet) -> str:
    return packet.task_spec.target.partition(":")[2] if packet.agent == "skills" else ""


def _tool(packet: Packet) -> str:
    return f"{packet.agent}.{packet.task_spec.operation}"


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
