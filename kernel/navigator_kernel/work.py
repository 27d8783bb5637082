"""Whether a turn is about a workflow: one that a message spells out, calls by name, or agrees to go on with."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches

from navigator_kernel.adapters.files import read_bounded
from navigator_kernel.errors import Damaged, KernelError, UsageProblem
from navigator_kernel.ports import Kernel
from navigator_kernel.proposal import Ground, Proposed, may_spell_out, propose
from navigator_kernel.stages.preprocess import preprocess, without_prefix
from navigator_kernel.stages.resume import Resumed
from navigator_kernel.text import Language
from navigator_kernel.values.reply import Reply
from navigator_kernel.values.request import CommandInstruction, Message, PreprocessingResult
from navigator_kernel.values.route import NeedClarification, RouteDecision, Tier, Unknown, Workflow
from navigator_kernel.values.workflow import FOLDER, WorkflowPlan, WorkflowView
from navigator_kernel.workflows.document import NAME, SIZE_LIMIT, parsed, written
from navigator_kernel.workflows.orchestrator import SKILL, answer, is_orchestrated, is_verbose, need_of
from navigator_kernel.workflows.rights import grants

PLAN = "plan"  # agreement to the whole of a plan

_ARGUMENT = re.compile(r"\\(\$)|\$ARGUMENTS\b|\$([1-9])(?!\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """`agreed` is what the person said yes to, empty for an explicit call; None where the plan is only proposed."""

    decision: RouteDecision
    view: WorkflowView
    agreed: str | None = None


def work_of(resumed: Resumed, request: PreprocessingResult, kernel: Kernel, run: str) -> Work | RouteDecision | None:
    """The workflow that this turn is about, a decision that ends it (a question, an unknown name), or None."""
    approval = resumed.approved
    if approval is not None:
        return taken_up(approval.workflow, approval.subject, kernel, request.language) if approval.workflow else None
    if len(request.commands) > 1:
        return None
    session = resumed.session.id
    if is_orchestrated(request.commands):
        return orchestrated(request.commands[0], request, kernel, run, session)
    if request.commands:
        command = request.commands[0]
        return called(command, kernel, run, session) if command.type == "workflow" else None
    need = without_prefix(request.original)
    if not may_spell_out(need):
        return None
    return _proposed(propose(request, need, _ground(kernel)), kernel, run, session, "steps")


def taken_up(token: str, subject: str, kernel: Kernel, language: Language) -> Work:
    """A run that goes on. A yes to its plan stores the plan and covers what it shows (WFL-9)."""
    run = kernel.journal.load(token)
    if subject == PLAN:
        plan = _stored(run.plan, kernel, language)
        kernel.journal.mark(token, "running", grants(plan, kernel), plan)
    else:
        kernel.journal.mark(token, run.state, (subject,) if ":" in subject and not subject.startswith("retry:") else ())
    run = kernel.journal.load(token)
    view = WorkflowView(token=token, state=run.state, plan=run.plan, done=run.done)
    return Work(decision=_decision(run.plan.name, "session", "approved"), view=view, agreed=subject)


def called(command: CommandInstruction, kernel: Kernel, run: str, session: str) -> Work | RouteDecision:
    """`#name words`: the stored workflow, its `$1` and `$ARGUMENTS` filled once. NotLoadable names the lines of a file
    that cannot be used."""
    known = stored_names(kernel)
    if command.name not in known:
        near = tuple(get_close_matches(command.name, known, 3, 0.5))
        unknown = Unknown(what="workflow", name=command.name, suggestions=near)
        return RouteDecision(result=unknown, tier="syntax", confidence=1.0, reason="instruction")
    rest = command.original_string.partition(command.name)[2].strip()
    plan = _filled(stored(command.name, kernel), rest, command.args)
    kernel.journal.propose(run, session, plan)
    view = WorkflowView(token=run, state="proposed", plan=plan)
    return Work(decision=_decision(plan.name, "syntax", "instruction"), view=view, agreed="")


def orchestrated(
    command: CommandInstruction, request: PreprocessingResult, kernel: Kernel, run: str, session: str
) -> Work | RouteDecision | None:
    """`/master-orchestrator need`: a plan, even of one step. None where no skill fits a part of it, or the command has
    no need or no skill: then it is a call of the skill like any other (CMD-1)."""
    need = "\n".join(part for part in (need_of(command), request.need) if part)
    if not need or not kernel.catalogue.exists(f"skill:{SKILL}"):
        return None
    asked = preprocess(Message(text=need, language=request.language), kernel.files)
    found = propose(asked, need, _ground(kernel), alone=True)
    if isinstance(found, NeedClarification) and found.missing == ("skill",):
        return None
    return _proposed(found, kernel, run, session, "orchestrated")


def with_answer(reply: Reply, request: PreprocessingResult) -> Reply:
    """The reply to `/master-orchestrator`, with CMD-3's answer in its data; any other as it is."""
    if not is_orchestrated(request.commands):
        return reply
    plan = None if reply.workflow is None else reply.workflow.plan
    told = answer(reply.report, plan, request.language, verbose=is_verbose(request.commands[0]))
    report = replace(reply.report, data={**reply.report.data, **told})
    return replace(reply, report=report, reports=(*reply.reports[:-1], report))


def stored_names(kernel: Kernel) -> list[str]:
    """The workflows in `mybox/workflows/`."""
    folder = kernel.root / FOLDER
    found = sorted(path.stem for path in folder.glob("*.md")) if folder.is_dir() else []
    return [name for name in found if NAME.fullmatch(name) and name != "README"]


def stored(name: str, kernel: Kernel) -> WorkflowPlan:
    """NotLoadable with every problem and its line; Damaged where the file cannot be read as text."""
    path = kernel.root / FOLDER / f"{name}.md"
    try:
        text = read_bounded(path, 4 * SIZE_LIMIT).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Damaged(
            f"workflow {name!r} cannot be read: {error}", hint=f"mend or remove {FOLDER}/{name}.md"
        ) from error
    return parsed(text, name, int(kernel.settings.steps))


def _proposed(
    found: Proposed | NeedClarification | Unknown | None, kernel: Kernel, run: str, session: str, reason: str
) -> Work | RouteDecision | None:
    match found:
        case None:
            return None
        case Proposed(plan=plan, left=left):
            plan = _named(plan, kernel)
            kernel.journal.propose(run, session, plan)
            view = WorkflowView(token=run, state="proposed", plan=plan, left=left)
            return Work(decision=_decision(plan.name, "exact", reason), view=view)
        case question:
            return RouteDecision(result=question, tier="exact", confidence=1.0, reason=reason)


def _ground(kernel: Kernel) -> Ground:
    real = kernel.root.resolve()
    return Ground(
        catalogue=kernel.catalogue,
        router=kernel.router,
        files=kernel.files,
        relative=lambda path: path.relative_to(real).as_posix(),
        limit=int(kernel.settings.steps),
    )


def _decision(name: str, tier: Tier, reason: str) -> RouteDecision:
    return RouteDecision(result=Workflow(name=name), entity=name, tier=tier, confidence=1.0, reason=reason)


def _named(plan: WorkflowPlan, kernel: Kernel) -> WorkflowPlan:
    """The plan under a name that is free, or that stands for the same steps already."""
    base, at = plan.name, 1
    while not _is_free(plan, kernel):
        at += 1
        plan = replace(plan, name=f"{base}-{at}")
    return plan


def _is_free(plan: WorkflowPlan, kernel: Kernel) -> bool:
    if not (kernel.root / plan.file).exists():
        return True
    try:
        return stored(plan.name, kernel).steps == plan.steps
    except KernelError:
        return False


def _stored(plan: WorkflowPlan, kernel: Kernel, language: Language) -> WorkflowPlan:
    """Writes the file, unless the same workflow is there already."""
    plan = _named(plan, kernel)
    path = kernel.root / plan.file
    if not path.exists():
        kernel.writer.make_folder(path.parent)
        kernel.writer.write(path, written(plan, language).encode("utf-8", "replace"))
    return plan


def _filled(plan: WorkflowPlan, rest: str, args: tuple[str, ...]) -> WorkflowPlan:
    """X-26: one pass; what is put in is not read again for placeholders."""
    words = rest.split() if len(rest.split()) == len(args) else list(args)

    def value(hit: re.Match[str]) -> str:
        if hit[1]:
            return "$"
        if hit[2] is None:
            return rest
        return words[int(hit[2]) - 1] if int(hit[2]) <= len(words) else hit.group()

    inputs = [_ARGUMENT.sub(value, step.input) for step in plan.steps]
    if rest and inputs == [step.input for step in plan.steps]:
        raise UsageProblem(f"workflow {plan.name!r} takes no words", hint="put $ARGUMENTS or $1 into a step's input")
    steps = tuple(replace(step, input=text) for step, text in zip(plan.steps, inputs, strict=True))
    return replace(plan, steps=steps)
