"""Precision, recall and confusions of a router over evals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from navigator_kernel.evals.cases import EvalCase

NOBODY = "(nobody)"


class Choice(NamedTuple):
    """The skill that a message went to, empty for none; `asked` are those that the person was asked about."""

    skill: str = ""
    asked: tuple[str, ...] = ()


class Outcome(NamedTuple):
    case: EvalCase
    choice: Choice

    @property
    def passed(self) -> bool:
        """It went where it should; where only one skill is known that it is not for, anywhere else."""
        if self.case.wanted:
            return self.choice.skill == self.case.wanted
        return self.choice.skill != self.case.skill if self.case.skill else not self.choice.skill

    def to_dict(self) -> dict[str, Any]:
        """What went wrong, and where."""
        told = {"skill": self.case.skill, "file": self.case.file, "query": self.case.query}
        return {**told, "wanted": self.case.wanted, "chosen": self.choice.skill, "asked": list(self.choice.asked)}


class Score(NamedTuple):
    """`precision` is of the messages that went to a skill, `recall` of those that should; 1 where there are none."""

    cases: int
    passed: int
    precision: float
    recall: float

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "precision": round(self.precision, 4), "recall": round(self.recall, 4)}


def outcomes(cases: Sequence[EvalCase], choose: Callable[[str], Choice]) -> list[Outcome]:
    """Every message is routed once, however many evals ask about it."""
    held: dict[str, Choice] = {}
    for case in cases:
        if case.query not in held:
            held[case.query] = choose(case.query)
    return [Outcome(case, held[case.query]) for case in cases]


def score(found: Sequence[Outcome]) -> Score:
    """A message with `wanted` is right or missed; a wrong skill is a false one."""
    right = sum(bool(one.case.wanted) and one.passed for one in found)
    missed = sum(bool(one.case.wanted) and not one.passed for one in found)
    false = sum(bool(one.choice.skill) and not one.passed for one in found)
    precision = right / (right + false) if right + false else 1.0
    recall = right / (right + missed) if right + missed else 1.0
    return Score(len(found), sum(one.passed for one in found), precision, recall)


def confusions(found: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Where messages went in place of where they should, most frequent first."""
    pairs = Counter(
        (one.case.wanted or f"not {one.case.skill}", one.choice.skill or NOBODY) for one in found if not one.passed
    )
    ordered = sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))
    return [{"wanted": wanted, "chosen": chosen, "count": count} for (wanted, chosen), count in ordered]
