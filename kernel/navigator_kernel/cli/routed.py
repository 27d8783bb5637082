"""What a message would be routed to: synchronous, without plugins' code and without a parser of command lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from navigator_kernel.assembly.parts import RouterParts, open_router
from navigator_kernel.cli.output import lines, table
from navigator_kernel.errors import UsageProblem
from navigator_kernel.values.route import RouteDecision, RouteResult, Workflow
from navigator_kernel.values.wording import because_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from navigator_kernel.cli.project import App
    from navigator_kernel.values.request import PreprocessingResult
    from navigator_kernel.values.route import Intent

SHOWN = 5  # candidates, unless more are asked for


def answer(app: App, text: str) -> int:
    """`navigator route` without options."""
    show(routed(app, open_router(app.root, app.settings), text, SHOWN), explain=False)
    return 0


def routed(app: App, parts: RouterParts, text: str, k: int) -> dict[str, Any]:
    """What a message would get, as `--json` prints it; UsageProblem where there is none."""
    from navigator_kernel.stages.decide import decide
    from navigator_kernel.stages.preprocess import preprocess
    from navigator_kernel.stages.understand import understand_locally
    from navigator_kernel.values.request import Message, Session

    if not text.strip():
        raise UsageProblem("there is no message", hint='navigator route "review this code"')
    request = preprocess(Message(text=text, language=app.language), parts.files)
    session = Session(id="route")
    with parts.catalogue.once():
        intent = understand_locally(request, session, parts.router)
        decision = decide(intent, request, parts.catalogue)
        result, steps = _spelled_out(request, app, parts)
    if result is not None:
        decision = RouteDecision(result=result, tier="exact", confidence=1.0, reason="steps")
    return {**_document(intent, decision, k), "language": request.language, "steps": steps}


def _spelled_out(
    request: PreprocessingResult, app: App, parts: RouterParts
) -> tuple[RouteResult | None, list[dict[str, str]]]:
    """The workflow that the message spells out, each step with what it is bound to, or the question that comes first;
    nothing where it is one order."""
    from navigator_kernel.stages.preprocess import without_prefix
    from navigator_kernel.values.clauses import may_spell_out

    need, held = without_prefix(request.original), app.settings
    if request.commands or not may_spell_out(need):
        return None, []
    from navigator_kernel.proposal import Proposed, propose
    from navigator_kernel.steps import Ground
    from navigator_kernel.values.context import TurnContext

    servers = tuple(held.servers)
    context = TurnContext(
        run="route", timeout=held.timeout, language=request.language, format="detail", servers=servers
    )
    root, limit = app.root.resolve(), held.steps
    ground = Ground(
        catalogue=parts.catalogue, router=parts.router, files=parts.files, root=root, limit=limit, context=context
    )
    found = propose(request, need, ground)
    if not isinstance(found, Proposed):
        return found, []
    bound = [{"text": step.text, "skill": step.skill, "agent": step.agent} for step in found.plan.steps]
    return Workflow(name=found.plan.name), [*bound, *({"text": text, "skill": "", "agent": ""} for text in found.left)]


def _document(intent: Intent, decision: RouteDecision, k: int) -> dict[str, Any]:
    found = intent.retrieval
    candidates = [] if found is None else [candidate.to_dict() for candidate in found.candidates[:k]]
    body = {**decision.to_dict(), "agent": decision.agent, "intent": intent.to_dict()}
    band = None if found is None else found.band
    return {**body, "phase_one": decision.phase_one(), "band": band, "shortlist": candidates}


def show(told: Mapping[str, Any], *, explain: bool) -> None:
    confidence, shortlist = f"{told['confidence']:.2f}", told["shortlist"]
    lines(f"{told['kind']}: {told['entity'] or told['agent'] or '-'}  ({told['tier']}, {confidence})")
    lines(f"  {because_of(told['reason'], told['language'], name=told['entity'] or '', confidence=confidence)}")
    if explain and shortlist:
        lines(f"  band: {told['band']}")
        for one in shortlist:
            scored = f"  {one['name']}: {one['confidence']:.2f}, score {one['score']:.2f}"
            lines([scored, f"    {_strongest(one['parts'], 99)}"])
    elif shortlist:
        rows = [(one["name"], f"{one['confidence']:.2f}", _strongest(one["parts"], 2)) for one in shortlist]
        table(("skill", "confidence", "why"), rows)
    lines([f"  Step {at}: {step['text']} → {step['skill']}" for at, step in enumerate(told["steps"], 1)])


def _strongest(parts: Mapping[str, float], count: int) -> str:
    """The parts of a score, the strongest first."""
    named = sorted(((name, value) for name, value in parts.items() if value), key=lambda part: -abs(part[1]))
    return ", ".join(f"{name} {value:.2f}" for name, value in named[:count])
