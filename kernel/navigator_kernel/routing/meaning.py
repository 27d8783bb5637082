"""Tier 2 by meaning: the index, the fitted weights and the bands in one place (X-1, RTE-21)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from navigator_kernel.routing.entries import Entry, entry_of
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.model import Caution, Model, Tier, evidence, shipped
from navigator_kernel.routing.ranker import MEASURED, Measured, Ranker
from navigator_kernel.text import clean
from navigator_kernel.values.resource import SkillDef
from navigator_kernel.values.route import Candidate, Retrieval

TWINS = 0.6  # share of the leader's odds from which the second is as likely
ANY = 0.9  # probability that some skill is meant from which it is worth a question
_SHOT = MEASURED.index("near_shot")


@dataclass(slots=True)
class Meaning:
    """Ranks by words and meaning together. `caution` is how often a skill that is taken has to be the right one."""

    index: RoutingIndex
    caution: Caution = "balanced"
    _skills: tuple[SkillDef, ...] | None = None
    _ranker: Ranker | None = field(default=None)

    def retrieve(self, skills: tuple[SkillDef, ...], text: str, k: int) -> Retrieval:
        """The candidates among `skills`, best first, and the band that the leader's probability falls into."""
        if self._ranker is None or skills != self._skills:
            self.learn([entry_of(skill) for skill in skills])
            self._skills = skills
        try:
            return self._known(skills, self.judged(text, k))
        except (ValueError, LookupError, TypeError):  # bytes of the right length that nobody indexed
            self.index.forget()
            self.learn([entry_of(skill) for skill in skills])
            return self._known(skills, self.judged(text, k))

    def _known(self, skills: tuple[SkillDef, ...], found: Retrieval) -> Retrieval:
        """`found`; ValueError where it names what is not among `skills`, for a folder may bring its own index."""
        if not {one.name for one in found.candidates} <= {skill.name for skill in skills}:
            raise ValueError("the index is of other skills")
        return found

    def learn(self, entries: Sequence[Entry]) -> None:
        """From now on these are what can be chosen."""
        key = blake2b("\n".join(entry.digest for entry in entries).encode(), digest_size=16).hexdigest()
        self.index.sync(lambda: entries, key)
        if self.index.view is not None:
            self._ranker = Ranker(self.index.view, self.index.encoder)

    def judged(self, text: str, k: int) -> Retrieval:
        if self._ranker is None:
            return Retrieval(candidates=(), band="direct", reason="nothing_known")
        found = self._ranker.measured(clean(text), meaning=self.index.encoder is not None)
        if not found:
            return Retrieval(candidates=(), band="direct", reason="nothing_known")
        model = shipped(self._tier(found))
        scores = model.scores(found)
        order = sorted(range(len(found)), key=lambda at: (-scores[at], -found[at].row.priority, found[at].row.id))
        ordered, held = [found[at] for at in order], [scores[at] for at in order]
        known = evidence(ordered, held, self._ranker.length(text))
        return _banded(ordered, held, known, model, self.caution, k)

    def _tier(self, found: Sequence[Measured]) -> Tier:
        """Where most of what is near has examples, the weights are those that were fitted with examples."""
        if self.index.encoder is None:
            return "words"
        taught = sum(one.numbers[_SHOT] > 0 for one in found)
        return "taught" if taught > len(found) / 2 else "meaning"


def _banded(
    found: Sequence[Measured],
    scores: Sequence[float],
    known: Mapping[str, float],
    model: Model,
    caution: Caution,
    k: int,
) -> Retrieval:
    sure = model.probability(known)
    odds = [math.exp(score - scores[0]) for score in scores]
    candidates = tuple(
        Candidate(name=one.row.id, score=score, confidence=sure * odd, parts=_parts(one, model))
        for one, score, odd in list(zip(found, scores, odds, strict=True))[:k]
    )
    if sure >= model.bands[caution]:
        return Retrieval(candidates=candidates, band="route", reason="leader")
    if len(odds) > 1 and odds[1] >= TWINS and model.any_meant(known) >= ANY:
        return Retrieval(candidates=candidates, band="ambiguous", reason="equal")
    return Retrieval(candidates=candidates, band="direct", reason="unlikely")


def _parts(one: Measured, model: Model) -> dict[str, float]:
    """What the score is made of: each number with its weight, the strongest first."""
    held = {name: model.rank.get(name, 0.0) * number for name, number in zip(MEASURED, one.numbers, strict=True)}
    strongest = sorted(held, key=lambda name: -abs(held[name]))
    return {name: held[name] for name in strongest if abs(held[name]) >= 0.005}
