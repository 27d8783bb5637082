"""Decides whether a turn is about a workflow: listed in the message, called by name, or resumed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.errors import UsageProblem
from navigator_kernel.language.clauses import may_spell_out
from navigator_kernel.language.parameters import is_file
from navigator_kernel.stages.preprocess import preprocess, without_prefix, words_of
from navigator_kernel.text import clean, lazy_compile
from navigator_kernel.values.request import FileReference, Message, PreprocessingResult
from navigator_kernel.values.route import NeedClarification, RouteDecision, Tier, Unknown, Workflow
from navigator_kernel.values.workflow import PLAN, WorkflowPlan, WorkflowView
from navigator_kernel.workflows.orchestrator import SKILL, answer, behind, is_orchestrated, is_verbose, need_of
from navigator_kernel.workflows.permissions import grants
from navigator_kernel.workflows.planning import PlanProposal, plan_workflow
from navigator_kernel.workflows.step_binding import PlanningContext, relative_to_root
from navigator_kernel.workflows.store import load_stored, stored_names, with_free_name

if TYPE_CHECKING:
    from navigator_kernel.ports import Kernel
    from navigator_kernel.stages.answers import Resumed
    from navigator_kernel.values.context import TurnContext
    from navigator_kernel.values.reply import Reply

_ARGUMENT = lazy_compile(r"\\(\$)|\$ARGUMENTS\b|\$([1-9])(?!\d)")
# `run #name for words`, as people say it in a sentence
_CALL = lazy_compile(
    r"(?:please\s+|请)?(?:run|start|execute|use|运行|执行|启动|使用|用)\s*(?:(?:the\s+)?workflow\s+|工作流\s*)?#([\w-]+)\s*"
    r"(?:(?:for|with|on|over)\s+|(?:来)?处理\s*)?(.*)",
    re.IGNORECASE,
)
_ESCAPED = lazy_compile(r"\\.")
_QUOTE = lazy_compile(r'(["\\])')


class WorkflowRequest(Struct, frozen=True, kw_only=True):
    """`agreed` is the subject that the person approved, empty for an explicit call; None for a mere proposal."""

    decision: RouteDecision
    view: WorkflowView
    agreed: str | None = None


def resolve_workflow(
    resumed: Resumed, request: PreprocessingResult, kernel: Kernel, context: TurnContext
) -> WorkflowRequest | RouteDecision | None:
    """The workflow that this turn is about, a decision that ends it (a question, an unknown name), or None."""
    approval = resumed.approved
    if approval is not None:
        return resume_run(approval.workflow, approval.subject, kernel) if approval.workflow else None
    if len(request.commands) > 1:
        return None
    session = resumed.session.id
    if is_orchestrated(request.commands):
        return orchestrate(request, kernel, context, session)
    if request.commands:
        name, rest = request.commands[0].name, behind(request)
        called = request.commands[0].type == "workflow"
        return invoke_stored(name, rest, request, kernel, context.run, session) if called else None
    need = without_prefix(request.original)
    if not may_spell_out(need):
        hit = _CALL.fullmatch(need)
        if hit is None or hit[1] not in stored_names(kernel):
            return None
        return invoke_stored(hit[1], hit[2], request, kernel, context.run, session)
    return _proposed(plan_workflow(request, need, _ground(kernel, context)), kernel, context.run, session, "steps")


def resume_run(token: str, subject: str, kernel: Kernel) -> WorkflowRequest:
    """Continues a run with consent to `subject`. NotFound for an unknown token."""
    run = kernel.journal.load(token)
    view = WorkflowView(token=token, state=run.state, plan=run.plan, done=run.done)
    return WorkflowRequest(decision=_decision(run.plan.name, "session", "approved"), view=view, agreed=subject)


def decline_run(token: str, subject: str, kernel: Kernel) -> None:
    """Ends a plan that was declined; a run that has started stays as it is."""
    if subject == PLAN:
        with kernel.journal.hold(token):
            if kernel.journal.load(token).state == "proposed":
                kernel.journal.mark(token, "aborted")


def invoke_stored(
    name: str, rest: str, request: PreprocessingResult, kernel: Kernel, run: str, session: str
) -> WorkflowRequest | RouteDecision:
    """`#name rest`: the stored workflow with its `$1` and `$ARGUMENTS` filled once. NotLoadable names the lines of a
    file that cannot be used."""
    known = stored_names(kernel)
    if name not in known:
        near = tuple(get_close_matches(name, known, 3, 0.5))
        unknown = Unknown(what="workflow", name=name, suggestions=near)
        return RouteDecision(result=unknown, tier="syntax", confidence=1.0, reason="instruction")
    plan = start_run(name, rest, words_of(rest), request.files, kernel, run, session)
    view = WorkflowView(token=run, state="proposed", plan=plan)
    return WorkflowRequest(decision=_decision(plan.name, "syntax", "instruction"), view=view, agreed="")


def start_run(
    name: str, rest: str, words: Sequence[str], files: Sequence[FileReference], kernel: Kernel, run: str, session: str
) -> WorkflowPlan:
    """Enters the stored workflow `name` as a run that may read the `files` of its words, with `rest` for `$ARGUMENTS`
    and `words` for `$1` and on. UsageProblem for words that it has no place for, and for none where it needs one."""
    root = kernel.root.resolve()
    words = [rest] if is_file(Path(rest)) else words  # a name with blanks
    named_files = [Path(os.path.realpath(word)) for word in words if is_file(Path(word))]
    named_files = [file.path for file in files if not file.problem] + named_files
    inside = list(dict.fromkeys(path.relative_to(root).as_posix() for path in named_files if path.is_relative_to(root)))
    words = [_from_root(word, files, root) for word in words]
    plan = load_stored(name, kernel)
    if not any(_ARGUMENT.search(step.input) for step in plan.steps) and len(words) == len(inside) == 1:
        plan = _with_file(plan, inside[0], root)
    else:
        plan = _filled(plan, _from_root(rest, files, root), words)
        read = tuple(dict.fromkeys([*plan.sandbox.read, *inside]))
        plan = replace(plan, sandbox=replace(plan.sandbox, read=read))
    kernel.journal.propose(run, session, plan)
    return plan


def _from_root(word: str, files: Sequence[FileReference], root: Path) -> str:
    """`word` with files from the project's folder, whatever the current folder is."""
    path = Path(os.path.realpath(word))
    if is_file(Path(word)) and path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return relative_to_root(word, files, root)


def _with_file(plan: WorkflowPlan, path: str, root: Path) -> WorkflowPlan:
    """The plan with the file `path` in place of the only one that it reads; UsageProblem if that is not one."""
    if len(plan.sandbox.read) != 1:
        raise _no_place(plan)
    file = FileReference(written=plan.sandbox.read[0], path=root / path)
    steps = [
        replace(step, text=relative_to_root(step.text, [file], root), input=relative_to_root(step.input, [file], root))
        for step in plan.steps
    ]
    if [step.input for step in steps] == [step.input for step in plan.steps] and path != file.written:
        raise _no_place(plan)
    return replace(plan, steps=tuple(steps), sandbox=replace(plan.sandbox, read=(path,)))


def orchestrate(
    request: PreprocessingResult, kernel: Kernel, context: TurnContext, session: str
) -> WorkflowRequest | RouteDecision | None:
    """`/master-orchestrator need`: a plan, even of one step. None if no skill fits a part of it, or if the need or the
    skill is missing: then it is an ordinary call of the skill (CMD-1)."""
    need = need_of(request)
    if not need or not kernel.catalogue.exists(f"skill:{SKILL}"):
        return None
    message = Message(text=need, language=request.language, answers=request.answers)
    asked = preprocess(message, kernel.files, context.now)
    found = plan_workflow(asked, need, _ground(kernel, context), alone=True)
    if isinstance(found, NeedClarification) and found.missing == ("skill",):
        return None
    return _proposed(found, kernel, context.run, session, "orchestrated")


def attach_answer(reply: Reply, request: PreprocessingResult) -> Reply:
    """The reply to `/master-orchestrator` with CMD-3's answer in its data; any other reply unchanged."""
    if not is_orchestrated(request.commands):
        return reply
    plan = None if reply.workflow is None else reply.workflow.plan
    told = answer(reply.report, plan, request.language, verbose=is_verbose(request.commands[0]))
    report = replace(reply.report, data={**reply.report.data, **told})
    return replace(reply, report=report, reports=(*reply.reports[:-1], report))


def _proposed(
    found: PlanProposal | NeedClarification | Unknown | None, kernel: Kernel, run: str, session: str, reason: str
) -> WorkflowRequest | RouteDecision | None:
    """Enters a plan as proposed, with the consents that its approval covers, bound to the digests at this time."""
    match found:
        case None:
            return None
        case PlanProposal(plan=plan, left=left):
            plan = with_free_name(plan, kernel)
            kernel.journal.propose(run, session, plan, grants(plan, kernel))
            view = WorkflowView(token=run, state="proposed", plan=plan, left=left, idle=_idle(plan, kernel))
            return WorkflowRequest(decision=_decision(plan.name, "exact", reason), view=view)
        case question:
            return RouteDecision(result=question, tier="exact", confidence=1.0, reason=reason)


def _idle(plan: WorkflowPlan, kernel: Kernel) -> tuple[str, ...]:
    """The prompt skills of the plan, if there is no model to carry them out."""
    names = dict.fromkeys(step.skill for step in plan.steps if step.agent == "skills" and kernel.models is None)
    return tuple(name for name in names if (skill := kernel.catalogue.find(name)) is not None and skill.kind == "B")


def _ground(kernel: Kernel, context: TurnContext) -> PlanningContext:
    return PlanningContext(
        catalogue=kernel.catalogue,
        router=kernel.router,
        files=kernel.files,
        root=kernel.root.resolve(),
        limit=kernel.settings.steps,
        context=context,
    )


def _decision(name: str, tier: Tier, reason: str) -> RouteDecision:
    return RouteDecision(result=Workflow(name=name), entity=name, tier=tier, confidence=1.0, reason=reason)


def _filled(plan: WorkflowPlan, rest: str, words: Sequence[str]) -> WorkflowPlan:
    """Fills placeholders in one pass; inserted text is not expanded again and ends no quotes (X-26)."""

    def value(hit: re.Match[str]) -> str:
        if hit[1]:
            return "$"
        if hit[2] is not None and int(hit[2]) > len(words):
            return hit.group()
        before = hit.string[: hit.start()]
        text = rest if hit[2] is None else words[int(hit[2]) - 1]
        return _fitted(text.removeprefix("@") if before.endswith("@") else text, before)

    steps = [replace(step, input=_ARGUMENT.sub(value, step.input)) for step in plan.steps]
    if rest and steps == list(plan.steps):
        raise _no_place(plan)
    if not words and any(hit[2] == "1" for step in plan.steps for hit in _ARGUMENT.finditer(step.input)):
        hint = f"#{plan.name} <what to put there>; in the file, \\$1 is the text $1"
        raise UsageProblem(f"workflow {plan.name!r} needs a word for $1", hint=hint)
    steps = [replace(step, text=clean(_ARGUMENT.sub(value, step.text), lines=False)) for step in steps]
    return replace(plan, steps=tuple(steps))


def _no_place(plan: WorkflowPlan) -> UsageProblem:
    hint = f"put $ARGUMENTS or $1 into the input of a step in {plan.file}"
    if len(plan.sandbox.read) == 1:
        hint = f"name a file of the project in place of {plan.sandbox.read[0]!r}, or {hint}"
    return UsageProblem(f"workflow {plan.name!r} takes no arguments", hint=hint)


def _fitted(value: str, before: str) -> str:
    """`value` as it must be written after `before`: on the one line of a command, and inside its quotes."""
    line = before.rpartition("\n")[2]
    if not line.lstrip().startswith(("/", "@@")):
        return value
    value = " ".join(value.split("\n"))
    mark = ""
    for sign in _ESCAPED.sub("", line):
        mark = "" if sign == mark else sign if not mark and sign in "\"'" else mark
    if mark == '"':
        return _QUOTE.sub(r"\\\1", value)
    return value.replace("'", "'\"'\"'") if mark else value
