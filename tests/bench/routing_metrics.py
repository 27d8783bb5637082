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


SHARES = ("served", "vague", "taken", "wrong", "absent", "quiet", "near", "ece")


@dataclass(frozen=True, slots=True)
class Decided:
    """What was done about a message: whether the first skill was taken or up to three offered, whether the first was
    right, whether one of those offered was, and the confidence in the first. `kind` is clear or vague; of `presence`
    (see `routing_catalogues.Message`), `excused` says that the first one does what an absent skill would have done."""

    kind: str
    presence: str
    takes: bool
    offers: bool
    first: bool
    among: bool
    confidence: float
    excused: bool = False

    @property
    def served(self) -> bool:
        return (self.takes and self.first) or (self.offers and self.among)


def shares(decisions: Sequence[Decided]) -> list[float | None]:
    """SHARES: of clear and of vague messages for skills that are there those that were served; of clear ones those
    for which the right skill was taken; of all but near misses those for which a wrong one was; of messages for absent
    skills those for which any was; of messages for no skill those left alone; of near misses those for which nothing
    was taken; and the calibration error. None where there are no such messages."""
    by: dict[str, list[Decided]] = {}
    for one in decisions:
        by.setdefault(one.presence, []).append(one)
    present = by.get("present", [])
    clear, vague = ([one for one in present if one.kind == kind] for kind in ("clear", "vague"))
    rest = [one for one in decisions if one.presence != "near"]
    held = [
        [one.served for one in clear],
        [one.served for one in vague],
        [one.takes and one.first for one in clear],
        [one.takes and not one.first and not one.excused for one in rest],
        [one.takes and not one.excused for one in by.get("absent", [])],
        [not one.takes and not one.offers for one in by.get("none", [])],
        [not one.takes for one in by.get("near", [])],
    ]
    error = ece([Answered((0,) if one.first else (), 1, one.confidence, one.takes) for one in decisions])
    return [*(sum(hits) / len(hits) if hits else None for hits in held), error]


def report(found: Sequence[tuple[str, int, Decided]]) -> dict[str, dict[str, list[float | None]]]:
    """SHARES by set, by number of skills beside the shipped ones; printed as a table of each set, a column per size."""
    by: dict[str, dict[int, list[Decided]]] = {}
    for name, size, one in found:
        by.setdefault(name, {}).setdefault(size, []).append(one)
    told: dict[str, dict[str, list[float | None]]] = {}
    for name, sizes in sorted(by.items()):
        held = {size: shares(decisions) for size, decisions in sorted(sizes.items())}
        print(f"{name:20} {' '.join(f'{size:6}' for size in held)}")
        for at, share in enumerate(SHARES):
            values = [f"{column[at]:6.3f}" if column[at] is not None else "     -" for column in held.values()]
            print(f"  {share:18} {' '.join(values)}")
        told[name] = {str(size): column for size, column in held.items()}
    return told
