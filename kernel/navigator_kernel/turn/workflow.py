"""Decides whether a turn is about a workflow: listed in the message, called by name, or resumed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.errors import UsageProblem
from navigator_kernel.language.clauses import may_join, may_spell_out, workflow_order
from navigator_kernel.language.parameters import is_file
from navigator_kernel.text import Language, clean, fold, lazy_compile
from navigator_kernel.turn.message import preprocess, without_prefix, words_of
from navigator_kernel.turn.steps import PlanningContext, PlanProposal, plan_workflow, relative_to_root
from navigator_kernel.turn.workflow_file import (
    check_text,
    dumps,
    is_stored,
    load_stored,
    store,
    stored_names,
    with_file,
    with_free_name,
)
from navigator_kernel.turn.workflow_run import grants
from navigator_kernel.values.request import CommandInstruction, FileReference, Message, PreprocessingResult
from navigator_kernel.values.route import Direct, NeedClarification, RouteDecision, Tier, Unknown, Workflow
from navigator_kernel.values.workflow import PLAN, WorkflowPlan, WorkflowView, outline

if TYPE_CHECKING:
    from navigator_kernel.ports import Kernel
    from navigator_kernel.turn.answers import Resumed
    from navigator_kernel.values.context import TurnContext
    from navigator_kernel.values.packet import Report
    from navigator_kernel.values.reply import Reply


_ARGUMENT = lazy_compile(r"\\(\$)|\$ARGUMENTS\b|\$([1-9])(?!\d)")
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
    order = None if may_spell_out(need) else workflow_order(need.strip())
    if order is not None and order.verb != "run":
        names = tuple(stored_names(kernel))
        if order.verb == "save":
            names = (_saved(order.name, resumed, request, kernel, context),)
        result = Direct(topic="stored" if order.verb == "save" else "workflows")
        return RouteDecision(result=result, tier="syntax", confidence=1.0, reason="workflows", candidates=names)
    is_skill = order is not None and not order.is_sure and kernel.catalogue.exists(f"skill:{order.name}")
    if order is not None and not is_skill and order.name in stored_names(kernel):
        return invoke_stored(order.name, order.words, request, kernel, context.run, session)
    if request.way in {"plain", "chosen", "again", "about"} or not (may_spell_out(need) or may_join(need)):
        return None
    return _proposed(plan_workflow(request, need, _ground(kernel, context)), kernel, context.run, session, "steps")


def _saved(name: str, resumed: Resumed, request: PreprocessingResult, kernel: Kernel, context: TurnContext) -> str:
    """Stores the last work of the session as the workflow `name`: the plan that ran, or one step that does it again.
    Without a name, a plan keeps the name that it has. Returns the name; UsageProblem if there is nothing to store."""
    last = resumed.session.sticky
    hint = "name the task itself: #NAME runs what mybox/workflows/NAME.md says"
    if last is None or not last.text:
        raise UsageProblem("nothing ran before that could be stored as a workflow", hint=hint)
    if last.text.startswith("#"):
        stored, _, words = last.text[1:].partition(" ")
        plan = load_stored(stored, kernel)
        plan = (is_file(kernel.root / words) and with_file(plan, words, kernel.root.resolve())) or plan
    else:
        inner = preprocess(Message(text=last.text, language=request.language), kernel.files, context.now)
        proposal = plan_workflow(inner, last.text, _ground(kernel, context), alone=True)
        if not isinstance(proposal, PlanProposal) or kernel.redact(last.text) != last.text:
            raise UsageProblem("what ran last cannot be stored as a workflow", hint=hint)
        plan = proposal.plan
    if name in stored_names(kernel) and not is_stored(replace(plan, name=name), kernel):
        hint = f"choose another name, or remove mybox/workflows/{name}.md"
        raise UsageProblem(f"another workflow is called {name!r}", hint=hint)
    return store(check_text(dumps(replace(plan, name=name)), name, kernel) if name else plan, kernel).name


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
    view = WorkflowView(token=run, state="proposed", plan=plan, again=f"#{name} {rest}".rstrip())
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
        changed = with_file(plan, inside[0], root)
        if changed is None:
            raise _no_place(plan)
        plan = changed
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


def orchestrate(
    request: PreprocessingResult, kernel: Kernel, context: TurnContext, session: str
) -> WorkflowRequest | RouteDecision | None:
    """`/master-orchestrator need`: a plan, even of one step. None if no skill fits a part of it, or if the need or the
    skill is missing: then it is an ordinary call of the skill (CMD-1)."""
    need = need_of(request)
    if not need or not kernel.catalogue.exists(f"skill:{SKILL}"):
        return None
    message = Message(text=need, language=request.language, answers=request.answers)
    inner = preprocess(message, kernel.files, context.now)
    proposal = plan_workflow(inner, need, _ground(kernel, context), alone=True)
    if isinstance(proposal, NeedClarification) and proposal.missing == ("skill",):
        return None
    return _proposed(proposal, kernel, context.run, session, "orchestrated")


def attach_answer(reply: Reply, request: PreprocessingResult) -> Reply:
    """The reply to `/master-orchestrator` with CMD-3's answer in its data; any other reply unchanged."""
    if not is_orchestrated(request.commands):
        return reply
    plan = None if reply.workflow is None else reply.workflow.plan
    data = answer(reply.report, plan, request.language, verbose=is_verbose(request.commands[0]))
    report = replace(reply.report, data={**reply.report.data, **data})
    return replace(reply, report=report, reports=(*reply.reports[:-1], report))


def _proposed(
    proposal: PlanProposal | NeedClarification | Unknown | None, kernel: Kernel, run: str, session: str, reason: str
) -> WorkflowRequest | RouteDecision | None:
    """Enters a plan as proposed, with the consents that its approval covers, bound to the digests at this time."""
    match proposal:
        case None:
            return None
        case PlanProposal(plan=plan, left=left, at_once=at_once):
            plan = with_free_name(plan, kernel)
            kernel.journal.propose(run, session, plan, grants(plan, kernel))
            names = dict.fromkeys(step.skill for step in plan.steps if step.agent == "skills" and kernel.models is None)
            skills = [(name, kernel.catalogue.find(name)) for name in names]
            idle = tuple(
                name for name, skill in skills if skill is not None and skill.kind == "B"
            )  # for want of a model
            view = WorkflowView(token=run, state="proposed", plan=plan, left=left, idle=idle)
            decision = _decision(plan.name, "exact", reason)
            return WorkflowRequest(decision=decision, view=view, agreed="" if at_once else None)
        case question:
            return RouteDecision(result=question, tier="exact", confidence=1.0, reason=reason)


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


# The built-in command `/master-orchestrator <need>` and its answers (CMD-1..6).

SKILL = "master-orchestrator"
_VERBOSE = ("--verbose", "-v")


class SlashCommand(Struct, frozen=True, kw_only=True):
    """A slash command; `handler` is the function that handles it (CMD-2)."""

    name: str
    type: Literal["skill"]
    description: str
    handler: str
    enabled: bool
    priority: int
    source: Literal["builtin"]
    examples: tuple[str, ...]


COMMAND = SlashCommand(
    name=SKILL,
    type="skill",
    description="Plans a task: its parts, their inputs, the steps and the results; then runs the plan",
    handler="navigator_kernel.turn.workflow.orchestrate",
    enabled=True,
    priority=100,
    source="builtin",
    examples=(
        "/master-orchestrator 需求理解：先统计 @notes.md 的字数，然后检查其中的链接",
        "/master-orchestrator count the words in @notes.md and then check its links",
    ),
)


def is_orchestrated(commands: Sequence[CommandInstruction]) -> bool:
    """Whether the message is this command, spelled either way (X-29)."""
    called = len(commands) == 1 and commands[0].type == COMMAND.type and fold(commands[0].name) == COMMAND.name
    return called and COMMAND.enabled


def is_verbose(command: CommandInstruction) -> bool:
    """Whether `--verbose` or `-v` stands before the need (CMD-4)."""
    return bool(command.args) and command.args[0] in _VERBOSE


def behind(request: PreprocessingResult) -> str:
    """The text after the name of the command, on its line and below."""
    command = request.commands[0]
    at = request.original.index(command.original_string)
    return request.original[at:].partition(command.name)[2].strip()


def without_flag(request: PreprocessingResult) -> PreprocessingResult:
    """The request for the skill, without options about the answer's form."""
    if not is_orchestrated(request.commands) or not is_verbose(request.commands[0]):
        return request
    command = request.commands[0]
    rest = "".join(command.rest.split(None, 1)[1:])
    return replace(request, commands=(replace(command, args=command.args[1:], rest=rest),))


def need_of(request: PreprocessingResult) -> str:
    """The text after the name, without the prefix 需求理解： and the flag (CMD-6)."""
    rest = behind(request)
    first, *more = rest.split(None, 1) or [""]
    rest = "".join(more).strip() if first in _VERBOSE else rest
    return rest.removeprefix("需求理解").lstrip("：: ") if rest.startswith("需求理解") else rest


def answer(report: Report, plan: WorkflowPlan | None, language: Language, *, verbose: bool) -> Mapping[str, Any]:
    """`{success, result, skill}` or `{success: false, error}`; with `verbose` also the whole report (CMD-3)."""
    if report.state in {"error", "timeout"} or (report.state == "pending" and plan is None):
        fields: dict[str, Any] = {"success": False, "error": report.summary}
    else:
        result = report.summary if plan is None else _parts(plan, language)
        fields = {"success": True, "result": result, "skill": SKILL}
    return {**fields, "report": report.to_dict()} if verbose else fields


def _parts(plan: WorkflowPlan, language: Language) -> dict[str, Any]:
    """The parts of an answer: decomposition, required resources, steps, expected result (CMD-5)."""
    return {
        "decomposition": [step.text for step in plan.steps],
        "resources": {"skills": list(plan.depends_on), "files": list(plan.sandbox.read)},
        "steps": [line.strip() for line in outline(plan, language)[1:]],
        "expected": [f"{step.skill}: {step.output}" for step in plan.steps],
    }
