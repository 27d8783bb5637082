"""Turns an intent and a decision into the first stages of the routing funnel: offered, shortlisted, chosen."""

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
from navigator_kernel.values.route import Intent, NeedClarification, RouteDecision, Skills


def narrate(intent: Intent, decision: RouteDecision, offered: int) -> Iterator[Body]:
    """The events, in order."""
    yield SkillsOffered(count=offered)
    if intent.retrieval is not None:
        found = intent.retrieval
        yield SkillsShortlisted(
            candidates=tuple(candidate.to_dict() for candidate in found.candidates),
            band=found.band,
            reason=found.reason,
        )
    if intent.judged is not None:
        judged = intent.judged
        spent = judged.spent.to_dict()
        yield Usage(
            model=judged.model,
            input_tokens=spent["input_tokens"],
            output_tokens=spent["output_tokens"],
            cached_tokens=spent["cached_tokens"],
            cost=spent["cost"],
            phase=1,
        )
    yield RouteDecided(decision=decision.to_dict(), trace=(decision.tier, decision.reason))
    if isinstance(decision.result, Skills):
        for name in decision.result.names:
            yield SkillChosen(skill=name, tier=decision.tier, confidence=round(decision.confidence, 4))
    if isinstance(decision.result, NeedClarification):
        yield ClarificationAsked(question=decision.result.question, missing=decision.result.missing)
