"""Routes a message synchronously, without loading the command-line parser."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from navigator_kernel.errors import UsageProblem
from navigator_kernel.language.clauses import may_join, may_spell_out
from navigator_kernel.values.owner import one_look
from navigator_kernel.values.route import Intent, RouteDecision, RouteResult, Workflow

if TYPE_CHECKING:
    from navigator_kernel.adapters.files.project_files import ProjectFiles
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.text import Language
    from navigator_kernel.values.request import PreprocessingResult


class BoundStep(NamedTuple):
    """One of several steps that a message lists. `skill` and `agent` are empty for one that no skill surely fits, whose
    `options` may be meant, and for one that is skipped."""

    text: str
    skill: str
    agent: str
    options: tuple[str, ...] = ()


class Routed(NamedTuple):
    """The intent of a message, the decision, and the steps that it lists."""

    intent: Intent
    decision: RouteDecision
    language: Language
    steps: tuple[BoundStep, ...]


def routed(
    project: Project, text: str, language: Language | None = None, *, files: ProjectFiles | None = None
) -> Routed:
    """The route of a message, whose paths are read with `files` or as usual; UsageProblem if it is empty."""
    from navigator_kernel.turn.message import preprocess
    from navigator_kernel.turn.understand import decide, understand_locally
    from navigator_kernel.values.request import Message, Session

    if not text.strip():
        raise UsageProblem("there is no message", hint='navigator route "review this code"')
    session = Session(id="route")
    with one_look():
        request = preprocess(Message(text=text, language=language), files := files or project.files)
        intent = understand_locally(request, session, project.router)
        decision = decide(intent, request, project.catalogue)
        result, steps = _spelled_out(request, project, files)
    if result is not None:
        decision = RouteDecision(result=result, tier="exact", confidence=1.0, reason="steps")
    return Routed(intent, decision, request.language, steps)


def _spelled_out(
    request: PreprocessingResult, project: Project, files: ProjectFiles
) -> tuple[RouteResult | None, tuple[BoundStep, ...]]:
    """The workflow that the message spells out, with the skill and the agent of each step, or the question that comes
    first; empty if the message is a single order."""
    from navigator_kernel.turn.message import without_prefix

    need = without_prefix(request.original)
    if request.commands or not (may_spell_out(need) or may_join(need)):
        return None, ()
    return _planned(request, need, project, files)


def _planned(
    request: PreprocessingResult, need: str, project: Project, files: ProjectFiles
) -> tuple[RouteResult | None, tuple[BoundStep, ...]]:
    from navigator_kernel.turn.steps import ListedSteps, PlanningContext, PlanProposal, list_steps, propose
    from navigator_kernel.values.context import TurnContext

    context = TurnContext(
        run="route",
        timeout=project.settings.timeout,
        language=request.language,
        format="detail",
        servers=tuple(project.settings.servers),
    )
    ground = PlanningContext(
        catalogue=project.catalogue,
        router=project.router,
        files=files,
        root=project.root.resolve(),
        limit=project.settings.steps,
        context=context,
    )
    listed = list_steps(request, need, ground)
    if not isinstance(listed, ListedSteps):
        return listed, ()
    plan = propose(listed, ground)
    bound = (BoundStep(step.text, step.skill, step.agent, () if step.skill else step.offered) for step in listed.steps)
    steps = (*bound, *(BoundStep(text, "", "") for text in listed.left))
    return (Workflow(name=plan.plan.name) if isinstance(plan, PlanProposal) else plan), steps
