"""Prints a route without loading plugins or the command-line parser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from navigator_kernel.bootstrap.routed import routed as route
from navigator_kernel.cli.output import lines, table
from navigator_kernel.language.wording import because_of

if TYPE_CHECKING:
    from navigator_kernel.adapters.files.project_files import ProjectFiles
    from navigator_kernel.cli.project import App
    from navigator_kernel.values.route import Intent, RouteDecision

SHOWN = 5  # candidates, unless more are requested


def answer(app: App, text: str) -> int:
    """`navigator route` without options."""
    show(routed(app, text, SHOWN), explain=False)
    return 0


def routed(app: App, text: str, k: int, files: ProjectFiles | None = None) -> dict[str, Any]:
    """The route of a message as `--json` prints it; UsageProblem without a message."""
    found = route(app.bare, text, app.language, files=files)
    steps = [step._asdict() for step in found.steps]
    return {**_document(found.intent, found.decision, k), "language": found.language, "steps": steps}


def _document(intent: Intent, decision: RouteDecision, k: int) -> dict[str, Any]:
    found = intent.retrieval
    candidates = [] if found is None else [candidate.to_dict() for candidate in found.candidates[:k]]
    body = {**decision.to_dict(), "agent": decision.agent, "intent": intent.to_dict()}
    band = None if found is None else found.band
    body |= {"phase_one": decision.phase_one(), "band": band, "options": list(decision.options)}
    return {**body, "shortlist": candidates}


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
        table(("skill", "confidence", "why"), rows, language=told["language"])
    lines([f"  Step {at}: {step['text']} → {_fits(step)}" for at, step in enumerate(told["steps"], 1)])


def _fits(step: Mapping[str, Any]) -> str:
    return str(step["skill"] or (f"{' or '.join(step['options'])}?" if step["options"] else "no skill"))


def _strongest(parts: Mapping[str, float], count: int) -> str:
    """The parts of a score, the strongest first."""
    named = sorted(((name, value) for name, value in parts.items() if value), key=lambda part: -abs(part[1]))
    return ", ".join(f"{name} {value:.2f}" for name, value in named[:count])
