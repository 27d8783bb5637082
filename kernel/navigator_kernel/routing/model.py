"""Turns what was measured into an order and a probability, by weights that `tests/bench/fit_router.py` fitted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from operator import mul
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from navigator_kernel.routing.ranker import MEASURED, Measured

Tier = Literal["words", "meaning", "taught"]
Caution = Literal["strict", "balanced", "eager"]
PRECISIONS = {"strict": 0.97, "balanced": 0.93, "eager": 0.85}  # how often what is taken is to be right
_CERTAIN = ("score", "share", "clear", "length")  # many more fit a set better, and the next one worse
CERTAIN: Mapping[Tier, tuple[str, ...]] = {
    "words": (*_CERTAIN, "bounded"),
    "meaning": (*_CERTAIN, "bounded", "agreed"),  # by words no name is nearer than another by meaning
    "taught": ("share", "length"),  # where examples speak, the others tell nothing of what is for no skill
}
BOUND = 4.0  # log-odds from which more says little: catalogues differ in how sharp their scores are
MEANT = ("best_text", "best_words", "best_name", "length")


class Model(Struct, frozen=True, kw_only=True, dict=True):
    """One tier's weights. `rank` weighs MEASURED, `meant` what tells that any skill is meant, `certain` what tells that
    it is the first, `bands` are the probabilities from which a leader is taken, by the precision that is wanted."""

    rank: Mapping[str, float]
    meant: Mapping[str, float]
    certain: Mapping[str, float]
    bands: Mapping[str, float]

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """Of each of MEASURED."""
        return tuple(self.rank.get(name, 0.0) for name in MEASURED)

    def scores(self, found: Sequence[Measured]) -> list[float]:
        return [sum(map(mul, self.weights, one.numbers)) for one in found]

    def any_meant(self, known: Mapping[str, float]) -> float:
        """The probability that the message is for a skill at all."""
        return _logistic(self.meant, known)

    def probability(self, known: Mapping[str, float]) -> float:
        """That the first is right."""
        return _logistic(self.certain, known)


def _logistic(weights: Mapping[str, float], known: Mapping[str, float]) -> float:
    total = sum(weight * known.get(name, 1.0) for name, weight in weights.items())  # `bias` is always there
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


def evidence(found: Sequence[Measured], scores: Sequence[float], length: int) -> dict[str, float]:
    """What is known of a ranking, `scores` being in order: the first one's score, the log-odds of its share of all
    (softmax), and within BOUND, how clear that is either way, how many terms the message has, whether no other's name
    comes nearer than the first one's, and how near anything comes to the message at all.
    """
    share = 1 / sum(math.exp(score - scores[0]) for score in scores)
    odds = math.log((share + 1e-6) / (1 - share + 1e-6))
    bounded = max(-BOUND, min(BOUND, odds))
    agreed = float(found[0].numbers[_NAME] >= max(one.numbers[_NAME] for one in found))
    known = {name: max(one.numbers[at] for one in found) for name, at in _BEST.items()}
    known |= {"score": scores[0], "share": odds, "bounded": bounded, "clear": bounded**2}
    return known | {"length": math.log1p(length), "agreed": agreed}


_NAME = MEASURED.index("near_name")
_BEST = {name: MEASURED.index(of) for name, of in zip(MEANT, ("near_text", "coverage", "name_whole"), strict=False)}


@cache
def shipped(tier: Tier) -> Model:
    """The weights of this release."""
    held: dict[str, Any] = json.loads(Path(__file__).with_name("weights.json").read_bytes())
    return Model(**held[tier])
