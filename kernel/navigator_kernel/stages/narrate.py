"""The first stages of the routing funnel from an intent and a decision: offered, shortlisted, chosen."""

from __future__ import annotations

from collections.abc import Iterator

from navigator_kernel.events import (
    Body,
    ClarificationAsked,
    RouteDecided,
    SkillChosen,
    SkillsOffered,
    SkillsShortlisted,
    Usage,
)
from navigator_kernel.values.chat import usage_facts
from navigator_kernel.values.route import Intent, NeedClarification, RouteDecision, Skills


def narrate(intent: Intent, decision: RouteDecision, offered: int) -> Iterator[Body]:
    """Yields the events in order."""
    yield SkillsOffered(count=offered)
    if intent.retrieval is not None:
        found = intent.retrieval
        yield SkillsShortlisted(
            candidates=tuple(candidate.to_dict() for candidate in found.candidates),
            band=found.band,
            reason=found.reason,
        )
    if intent.judged is not None:
        yield from (Usage(model=one.model, phase=1, **usage_facts(one.spent)) for one in intent.judged.used)
    yield RouteDecided(decision=decision.to_dict(), trace=(decision.tier, decision.reason))
    if isinstance(decision.result, Skills):
        for name in decision.result.names:
            yield SkillChosen(skill=name, tier=decision.tier, confidence=round(decision.confidence, 4))
    if isinstance(decision.result, NeedClarification):
        yield ClarificationAsked(question=decision.result.question, missing=decision.result.missing)
