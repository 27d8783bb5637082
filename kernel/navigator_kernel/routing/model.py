"""Turns features into an order and probabilities, with the weights of `tests/bench/fit_decision.py`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from operator import mul
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from navigator_kernel.routing.ranker import MEASURED, ScoredCandidate
from navigator_kernel.values.route import Boldness

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

Tier = Literal["words", "meaning", "taught"]
MEANT = ("best_text", "best_words", "best_name", "length")
FIRST = ("odds", "score", "count", "near", "covered", "best_text", "best_words", "length", "body", "words")
AMONG = ("together", *FIRST[1:])
OFFERED = 3  # most skills to offer
FEW = 100  # skills in a catalogue from which `offer` holds
LEAST, MOST = -4.0, 6.0  # bounds of the log-odds: catalogues differ in how sharp their scores are


class Model(Struct, frozen=True, kw_only=True, dict=True):
    """One tier's weights. `rank` weighs MEASURED for the order. The others belong to logistic models: `meant` for
    whether any skill is wanted, if no vector says so; `first` for whether the first is right and `among` for whether
    one of the first OFFERED is, given that one is wanted; `right` and `offered` make a probability of both together."""

    rank: Mapping[str, float]
    meant: Mapping[str, float]
    first: Mapping[str, float]
    among: Mapping[str, float]
    right: tuple[float, float]
    offered: tuple[float, float]

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """The weight of each of MEASURED."""
        return tuple(self.rank.get(name, 0.0) for name in MEASURED)

    def scores(self, found: Sequence[ScoredCandidate]) -> list[float]:
        return [sum(map(mul, self.weights, one.numbers)) for one in found]

    def any_meant(self, known: Mapping[str, float]) -> float:
        """The probability that the message is for a skill at all, from the evidence `known`."""
        return logistic(self.meant, known)

    def given(self, known: Mapping[str, float]) -> float:
        """The probability that the first is right, if the message wants a skill."""
        return logistic(self.first, known)

    def probability(self, known: Mapping[str, float], wanted: float) -> float:
        """The probability that the first is right, if the message wants a skill with the probability `wanted`."""
        return _calibrated(self.right, wanted * self.given(known))

    def probability_among(self, known: Mapping[str, float], wanted: float) -> float:
        """The probability that one of the first OFFERED is right."""
        return _calibrated(self.offered, wanted * logistic(self.among, known))


class Bands(Struct, frozen=True, kw_only=True):
    """The lowest probabilities at which a skill is taken, by boldness, and offered. `offer_few` applies to a catalogue
    of fewer than FEW skills, where the right one is often not installed, unless the first one has words of the message.
    `want` is for whether any skill is wanted. A match that is `sure`, given that one is wanted, shows that one is; a
    `likely` one is offered whatever the message is."""

    take: Mapping[Boldness, float]
    offer: float
    offer_few: float
    want: float
    likely: float
    sure: float


class Wanted(Struct, frozen=True, kw_only=True):
    """Estimates whether a message wants a skill, from its vector of length 1 by the encoder of that name: a network of
    one hidden layer, fitted by `tests/bench/fit_wanted.py`. `inner` and `shift` lead to that layer, `outer` and `bias`
    to the log-odds."""

    encoder: str
    inner: Array
    shift: Array
    outer: Array
    bias: float

    def probabilities(self, vectors: Array) -> Array:
        """The probabilities for vectors in rows, or for one vector."""
        import numpy as np

        odds: Array = np.tanh(vectors @ self.inner + self.shift) @ self.outer + self.bias
        return 1 / (1 + np.exp(-odds))


def logistic(weights: Mapping[str, float], known: Mapping[str, float]) -> float:
    total = sum(weight * known.get(name, 1.0) for name, weight in weights.items())  # `bias` is always 1
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


def evidence(found: Sequence[ScoredCandidate], scores: Sequence[float], length: int) -> dict[str, float]:
    """The evidence from a ranking, with `scores` in order: the log-odds of the share of the first one (softmax), and of
    the first OFFERED together; the score of the first one, and the number of candidates, as a share says little among
    few; how near the nearest candidate and the first one come to the message; how much of the message the first one's
    body and words have; and the number of terms of the message."""
    odds = [math.exp(score - scores[0]) for score in scores]
    known = {name: max(one.numbers[at] for one in found) for name, at in _BEST.items()}
    known |= {name: found[0].numbers[at] for name, at in _OF_FIRST.items()}
    shares = {"odds": 1 / sum(odds), "together": sum(odds[:OFFERED]) / sum(odds)}
    known |= {name: max(LEAST, min(MOST, log_odds(share))) for name, share in shares.items()}
    return known | {"score": scores[0], "count": math.log1p(len(found)), "length": math.log1p(length)}


def log_odds(share: float) -> float:
    return math.log((share + 1e-6) / (1 - share + 1e-6))


def _calibrated(scale: tuple[float, float], probability: float) -> float:
    slope, bias = scale
    return 1 / (1 + math.exp(-(slope * log_odds(probability) + bias)))


_BEST = {name: MEASURED.index(of) for name, of in zip(MEANT, ("near_text", "coverage", "name_whole"), strict=False)}
_FIRST_HAS = {"near": "near_text", "covered": "coverage", "body": "words_body", "words": "near_words"}
_OF_FIRST = {name: MEASURED.index(of) for name, of in _FIRST_HAS.items()}


@cache
def _held() -> dict[str, Any]:
    held: dict[str, Any] = json.loads(Path(__file__).with_name("weights.json").read_bytes())
    return held


@cache
def shipped(tier: Tier) -> Model:
    """The weights of this release."""
    held = _held()[tier]
    return Model(**{**held, "right": tuple(held["right"]), "offered": tuple(held["offered"])})


@cache
def bands(tier: Tier = "meaning") -> Bands:
    """A tier's thresholds. Without an encoder the threshold for an offer is higher, because small talk cannot be
    recognised."""
    return Bands(**_held()["bands"][tier])


@cache
def wanted_by(encoder: str) -> Wanted | None:
    """The network for `encoder`; None if the weights are for another encoder."""
    import numpy as np

    held = msgspec.json.decode(Path(__file__).with_name("wanted.json").read_bytes())  # 3 ms faster than json
    arrays = {name: np.array(held[name], np.float32) for name in ("inner", "shift", "outer")}
    return Wanted(encoder=encoder, bias=held["bias"], **arrays) if held["encoder"] == encoder else None
