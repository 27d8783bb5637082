"""`navigator route`: what a message would get, without doing it; synchronous and without plugins' code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from navigator_kernel.assembly.parts import RouterParts, open_router
from navigator_kernel.cli.app import App, json_option, pass_app
from navigator_kernel.cli.output import document, lines, table
from navigator_kernel.errors import UsageProblem
from navigator_kernel.text import Language
from navigator_kernel.values.request import PreprocessingResult
from navigator_kernel.values.route import Intent, RouteDecision, RouteResult, Workflow
from navigator_kernel.values.wording import because


@click.command("route")
@click.argument("words", nargs=-1, required=True)
@click.option("-k", type=click.IntRange(1, 100), default=5, show_default=True, help="How many candidates are shown.")
@click.option("--explain", is_flag=True, help="Show what each candidate's score is made of.")
@json_option
@pass_app
def command(app: App, *, words: tuple[str, ...], k: int, explain: bool, as_json: bool) -> None:
    """Say what WORDS would be routed to, and why."""
    from navigator_kernel.stages.decide import decide
    from navigator_kernel.stages.preprocess import preprocess
    from navigator_kernel.stages.understand import understand_locally
    from navigator_kernel.values.request import Message, Session

    text = " ".join(words)
    if not text.strip():
        raise UsageProblem("there is no message", hint='navigator route "review this code"')
    parts = open_router(app.root, app.settings)
    request = preprocess(Message(text=text, language=app.language), parts.files)
    session = Session(id="route")
    intent = understand_locally(request, session, parts.router)
    decision = decide(intent, request, parts.catalogue)
    result, steps = _spelled_out(request, app, parts)
    if result is not None:
        decision = RouteDecision(result=result, tier="exact", confidence=1.0, reason="steps")
    if as_json:
        document({**_document(intent, decision, k), "steps": steps})
    else:
        _show(intent, decision, k, request.language, explain=explain)
        lines([f"  Step {at}: {step['text']} → {step['skill']}" for at, step in enumerate(steps, 1)])


def _spelled_out(
    request: PreprocessingResult, app: App, parts: RouterParts
) -> tuple[RouteResult | None, list[dict[str, str]]]:
    """The workflow that the message spells out, each step with what it is bound to, or the question that comes first;
    nothing where it is one order."""
    from navigator_kernel.proposal import Proposed, may_spell_out, propose
    from navigator_kernel.stages.preprocess import without_prefix
    from navigator_kernel.steps import Ground
    from navigator_kernel.values.context import TurnContext

    need, held = without_prefix(request.original), app.settings
    if request.commands or not may_spell_out(need):
        return None, []
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
    return {**body, "phase_one": decision.phase_one(), "shortlist": candidates}


def _show(intent: Intent, decision: RouteDecision, k: int, language: Language, *, explain: bool) -> None:
    lines(f"{decision.kind}: {decision.entity or decision.agent or '-'}  ({decision.tier}, {decision.confidence:.2f})")
    lines(f"  {because(decision, language)}")
    candidates = intent.retrieval.candidates[:k] if intent.retrieval is not None else ()
    if not candidates:
        return
    if not explain:
        table(
            ("skill", "confidence", "why"),
            [(c.name, f"{c.confidence:.2f}", _strongest(c.parts, 2)) for c in candidates],
        )
        return
    lines(f"  band: {intent.retrieval.band if intent.retrieval else '-'}")
    for one in candidates:
        lines([f"  {one.name}: {one.confidence:.2f}, score {one.score:.2f}", f"    {_strongest(one.parts, 99)}"])


def _strongest(parts: Mapping[str, float], count: int) -> str:
    """The parts of a score, the strongest first."""
    named = sorted(((name, value) for name, value in parts.items() if value), key=lambda part: -abs(part[1]))
    return ", ".join(f"{name} {value:.2f}" for name, value in named[:count])
