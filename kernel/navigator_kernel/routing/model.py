"""Turns features into an order and probabilities, with the weights of `tests/maintenance/fit_router.py`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from operator import mul
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from navigator_kernel.routing.ranker import MEASURED, Query, ScoredCandidate
from navigator_kernel.values.route import Boldness

Way = Literal["words", "meaning"]  # without an encoder, and with one
# What the first candidate's numbers, and those of the best of all, are called in the evidence
OF_FIRST = {
    "near": "near_text", "shot": "near_shot", "taught": "taught", "learned": "near_learned",
    "words": "near_words", "covered": "coverage", "purpose": "words_purpose", "body": "words_body",
    "whole": "name_whole", "name": "name_said",
}  # fmt: skip
OF_BEST = {"best_text": "near_text", "best_covered": "coverage"}
EVIDENCE = (
    "odds", "together", "score", "gap", "gap_third", *OF_FIRST, *OF_BEST, "count", "length", "known", "wanted", "asks",
)  # fmt: skip
OFFERED = 3  # most skills to offer
LEAST, MOST = -4.0, 6.0  # bounds of log-odds: catalogues differ in how sharp their scores are
ALONE = 5.0  # the gap to a candidate that does not exist
LONG = 30  # terms of a long message
USUAL, USUAL_COUNT = 2.2, 100  # log of 1 and the number of terms of a usual message; number of skills


class Network(Struct, frozen=True, kw_only=True):
    """A probability from numbers in the order of EVIDENCE: a network of one hidden layer in plain Python, because an
    answer by words must not wait for numpy. `inner` has a row of weights for each hidden unit."""

    inner: Sequence[Sequence[float]]
    shift: Sequence[float]
    outer: Sequence[float]
    bias: float

    def probability(self, numbers: Sequence[float]) -> float:
        hidden = (math.tanh(sum(map(mul, row, numbers)) + by) for row, by in zip(self.inner, self.shift, strict=True))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, sum(map(mul, self.outer, hidden)) + self.bias))))


class Model(Struct, frozen=True, kw_only=True, eq=False):
    """The weights of a way of routing. `rank` weighs MEASURED for the order; to it is added a share of `by_examples`,
    how well examples describe the candidate, and for each unit by which a log is above USUAL `by_length`, of the
    message in terms, and `by_count`, of skills. `first` estimates whether the first candidate is right, `among` whether
    one of the first OFFERED is."""

    rank: Mapping[str, float]
    by_length: Mapping[str, float]
    by_count: Mapping[str, float]
    by_examples: Mapping[str, float]
    first: Network
    among: Network

    def scores(self, found: Sequence[ScoredCandidate], length: int, count: int) -> list[float]:
        """The score of each candidate for a message of `length` terms, among `count` skills."""
        return [sum(map(mul, self.weights(one, length, count), one.numbers)) for one in found]

    def weights(self, one: ScoredCandidate, length: int, count: int) -> Sequence[float]:
        """The weight of each of MEASURED for that candidate."""
        return _weights(self, one.numbers[_TAUGHT], math.log1p(length) - USUAL, math.log(count / USUAL_COUNT))


class Bands(Struct, frozen=True, kw_only=True):
    """The lowest probabilities at which a skill is taken, by boldness, or `sure` for a question that does not want any
    skill with the probability `question`; and at which skills are offered: `offer` if the message wants any skill,
    which it does from `want`, and else `likely`. A message of LONG terms is near many skills by chance: then it is
    `offer_long`."""

    take: Mapping[Boldness, float]
    question: float
    sure: float
    offer: float
    offer_long: float
    want: float
    likely: float


def evidence(
    found: Sequence[ScoredCandidate], scores: Sequence[float], said: Query, count: int, wanted: float
) -> list[float]:
    """The numbers of EVIDENCE for a ranking with `scores` in order, among `count` skills; `wanted` is the probability
    that the message wants any skill."""
    odds = [math.exp(score - scores[0]) for score in scores]
    first = found[0].numbers
    known = {
        "odds": log_odds(1 / sum(odds)),
        "together": log_odds(sum(odds[:OFFERED]) / sum(odds)),
        "score": scores[0],
        "gap": scores[0] - scores[1] if len(scores) > 1 else ALONE,
        "gap_third": scores[0] - scores[2] if len(scores) > OFFERED - 1 else ALONE,
        "count": math.log(count),
        "length": math.log1p(said.length),
        "known": said.known,
        "wanted": log_odds(wanted),
        "asks": float(said.asks),
    }
    known |= {name: first[at] for name, at in _OF_FIRST.items()}
    known |= {name: max(one.numbers[at] for one in found) for name, at in _OF_BEST.items()}
    return [known[name] for name in EVIDENCE]


def log_odds(share: float) -> float:
    """The log-odds of a share, from LEAST to MOST."""
    return max(LEAST, min(MOST, math.log((share + 1e-6) / (1 - share + 1e-6))))


@lru_cache(256)
def _weights(model: Model, taught: float, longer: float, more: float) -> Sequence[float]:
    """What is evidence for a skill never counts against it; that it has examples may, because they say a little about
    every message."""
    shifts = (model.by_examples, taught), (model.by_length, longer), (model.by_count, more)
    held = [sum((by.get(name, 0.0) * share for by, share in shifts), model.rank.get(name, 0.0)) for name in MEASURED]
    return [weight if name == "taught" else max(0.0, weight) for name, weight in zip(MEASURED, held, strict=True)]


_TAUGHT = MEASURED.index("taught")
_OF_FIRST = {name: MEASURED.index(of) for name, of in OF_FIRST.items()}
_OF_BEST = {name: MEASURED.index(of) for name, of in OF_BEST.items()}


@cache
def _held() -> dict[str, Any]:
    held: dict[str, Any] = json.loads(Path(__file__).with_name("weights.json").read_bytes())
    return held


@cache
def shipped(way: Way) -> Model:
    """The weights of this release."""
    return msgspec.convert(_held()[way], Model)


@cache
def bands(way: Way = "meaning") -> Bands:
    """The thresholds. Without an encoder nothing says whether a message wants any skill: only `likely` counts."""
    return Bands(**_held()["bands"][way])
