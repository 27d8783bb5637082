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

SHOWN = 5  # candidates, unless more are requested


def answer(app: App, text: str) -> int:
    """`navigator route` without options."""
    show(routed(app, text, SHOWN), explain=False)
    return 0


def routed(app: App, text: str, k: int, files: ProjectFiles | None = None) -> dict[str, Any]:
    """The route of a message as `--json` prints it; UsageProblem without a message."""
    routing = route(app.bare, text, app.language, files=files)
    decision, retrieval = routing.decision, routing.intent.retrieval
    return {
        **decision.to_dict(),
        "agent": decision.agent,
        "intent": routing.intent.to_dict(),
        "phase_one": decision.phase_one(),
        "band": None if retrieval is None else retrieval.band,
        "options": list(decision.options),
        "shortlist": [] if retrieval is None else [one.to_dict() for one in retrieval.candidates[:k]],
        "language": routing.language,
        "steps": [step._asdict() for step in routing.steps],
    }


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
    for at, step in enumerate(told["steps"], 1):
        options = f"{' or '.join(step['options'])}?" if step["options"] else "no skill"
        lines([f"  Step {at}: {step['text']} → {step['skill'] or options}"])


def _strongest(parts: Mapping[str, float], count: int) -> str:
    """The parts of a score, the strongest first."""
    named = sorted(((name, value) for name, value in parts.items() if value), key=lambda part: -abs(part[1]))
    return ", ".join(f"{name} {value:.2f}" for name, value in named[:count])
