"""What rankings and confidences are worth, as the field measures it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

BINS = 10  # of equal width, for ECE (Guo et al. 2017, arXiv:1706.04599)


@dataclass(frozen=True, slots=True)
class Answered:
    """One question's ranking: `ranks` are the places, from 0, at which its labels came; `labels` how many it has.
    `confidence` is the probability that was given to the first being right, `routed` whether it was taken."""

    ranks: tuple[int, ...]
    labels: int
    confidence: float
    routed: bool

    @property
    def right(self) -> bool:
        return 0 in self.ranks


def top(answers: Sequence[Answered], k: int) -> float:
    """Share of the questions with labels that have one of them among the first `k`."""
    asked = [one for one in answers if one.labels]
    return sum(any(rank < k for rank in one.ranks) for one in asked) / len(asked)


def ndcg(answers: Sequence[Answered], k: int = 10) -> float:
    asked = [one for one in answers if one.labels]
    total = 0.0
    for one in asked:
        gain = sum(1 / log2(rank + 2) for rank in one.ranks if rank < k)
        total += gain / sum(1 / log2(at + 2) for at in range(min(one.labels, k)))
    return total / len(asked)


def auroc(answers: Sequence[Answered]) -> float | None:
    """How well confidence tells questions for a skill from those for none; None where there is but one kind."""
    scores = np.array([one.confidence for one in answers])
    positive = np.array([one.labels > 0 for one in answers])
    if positive.all() or not positive.any():
        return None
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    for value in np.unique(scores):  # ties share their mean rank
        same = scores == value
        ranks[same] = ranks[same].mean()
    count = int(positive.sum())
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(scores) - count)))


def coverage(answers: Sequence[Answered], precision: float) -> float:
    """The largest share of the questions that can be routed, most confident first, with at least `precision` right; a
    question for no skill that is routed is wrong."""
    ordered = sorted(answers, key=lambda one: -one.confidence)
    right, best = 0, 0
    for at, one in enumerate(ordered, 1):
        right += one.right
        if right / at >= precision:
            best = at
    return best / len(ordered)


def routed(answers: Sequence[Answered]) -> tuple[float, float]:
    """Share of the questions that were taken, and share of these that were right."""
    taken = [one for one in answers if one.routed]
    return len(taken) / len(answers), (sum(one.right for one in taken) / len(taken) if taken else 1.0)


def stray(answers: Sequence[Answered]) -> float | None:
    """Share of the questions for no skill that were routed all the same."""
    without = [one for one in answers if not one.labels]
    return sum(one.routed for one in without) / len(without) if without else None


def ece(answers: Sequence[Answered]) -> float:
    """Expected calibration error of "the first is right", 0 to 1."""
    given = np.array([one.confidence for one in answers])
    right = np.array([one.right for one in answers], dtype=float)
    bins = np.minimum((given * BINS).astype(int), BINS - 1)
    gaps = [(bins == at).mean() * abs(right[bins == at].mean() - given[bins == at].mean()) for at in set(bins.tolist())]
    return float(sum(gaps))


FOUR = ("served", "vague", "taken", "wrong", "quiet", "near", "ece")


@dataclass(frozen=True, slots=True)
class Decided:
    """What was done about a message of a `kind`: whether the first skill was taken or up to three offered, whether the
    first was right, whether one of the first three was, and the confidence in the first."""

    kind: str
    takes: bool
    offers: bool
    first: bool
    among: bool
    confidence: float

    @property
    def served(self) -> bool:
        return (self.takes and self.first) or (self.offers and self.among)


def four(decisions: Sequence[Decided]) -> list[float | None]:
    """The shares of FOUR: of clear and of vague messages those that were served; of clear ones for which the right
    skill was taken; of all for which a wrong one was; of messages for no skill those left alone; of near misses those
    for which nothing was taken; and the calibration error. None where there are no such messages."""
    kinds = {kind: [one for one in decisions if one.kind == kind] for kind in ("clear", "vague", "none", "near_miss")}
    held: list[tuple[Sequence[Decided], Sequence[bool]]] = [
        (kinds["clear"], [one.served for one in kinds["clear"]]),
        (kinds["vague"], [one.served for one in kinds["vague"]]),
        (kinds["clear"], [one.takes and one.first for one in kinds["clear"]]),
        (decisions, [one.takes and not one.first for one in decisions]),
        (kinds["none"], [not one.takes and not one.offers for one in kinds["none"]]),
        (kinds["near_miss"], [not one.takes for one in kinds["near_miss"]]),
    ]
    error = ece([Answered((0,) if one.first else (), 1, one.confidence, one.takes) for one in decisions])
    return [*(sum(hits) / len(asked) if asked else None for asked, hits in held), error]
