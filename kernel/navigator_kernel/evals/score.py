"""Precision, recall and confusions of a router over evals, and the four numbers of decision 37; JUnit XML of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple
from xml.sax.saxutils import quoteattr

from navigator_kernel.evals.cases import EvalCase, Problem
from navigator_kernel.text import clean

NOBODY = "(nobody)"
FIGURES = ("precision", "recall", "served", "taken_wrong", "quiet")  # shares shown to people


class Choice(NamedTuple):
    """The skill that a message went to, empty for none; `asked` are the skills that the person was asked about."""

    skill: str = ""
    asked: tuple[str, ...] = ()


class Outcome(NamedTuple):
    case: EvalCase
    choice: Choice

    @property
    def passed(self) -> bool:
        """Whether the message went where it should; if only a skill that it is not for is known, anywhere else."""
        if self.case.wanted:
            return self.choice.skill == self.case.wanted
        return self.choice.skill != self.case.skill if self.case.skill else not self.choice.skill

    @property
    def served(self) -> bool:
        """Whether the wanted skill was taken, or is among the offered ones."""
        return self.passed or self.case.wanted in self.choice.asked

    @property
    def quiet(self) -> bool:
        """Whether nothing was taken or offered; if the eval only names a skill that it is not for, not that skill."""
        chosen = {self.choice.skill, *self.choice.asked} - {""}
        return self.case.skill not in chosen if self.case.skill else not chosen

    def to_dict(self) -> dict[str, Any]:
        """The eval, the wanted skill, and the skills that were chosen or asked about."""
        told = {"skill": self.case.skill, "file": self.case.file, "query": self.case.query}
        return {**told, "wanted": self.case.wanted, "chosen": self.choice.skill, "asked": list(self.choice.asked)}


class Score(NamedTuple):
    """Shares of messages. `precision`: right, of those that went to a skill; `recall`: right, of those that should.
    `served`: the skill was taken or offered, of messages for a skill; `taken_wrong`: another skill was taken, of all;
    `quiet`: nothing was taken or offered, of messages for no skill. A share of no messages is 1, of `taken_wrong` 0."""

    cases: int
    passed: int
    precision: float
    recall: float
    served: float
    taken_wrong: float
    quiet: float

    def to_dict(self) -> dict[str, Any]:
        return {name: round(value, 4) for name, value in self._asdict().items()}


def worth(one: Outcome) -> int:
    """3 for a message that went where it should, 2 for the right skill among the offered ones, 1 for nothing or for
    wrong offers, 0 for a wrong skill."""
    if one.passed:
        return 3
    return 2 if one.served else 0 if one.choice.skill else 1


def better(before: Outcome, after: Outcome) -> Literal["better", "worse", "other"]:
    one, other = worth(before), worth(after)
    return "better" if other > one else "worse" if other < one else "other"


def outcomes(cases: Sequence[EvalCase], choose: Callable[[str], Choice]) -> list[Outcome]:
    """Routes every message once, however many evals use it."""
    held: dict[str, Choice] = {}
    for case in cases:
        if case.query not in held:
            held[case.query] = choose(case.query)
    return [Outcome(case, held[case.query]) for case in cases]


def score(found: Sequence[Outcome]) -> Score:
    """Computes the score: a message with `wanted` is right or missed, and one that went to a wrong skill is false."""
    right = sum(bool(one.case.wanted) and one.passed for one in found)
    missed = sum(bool(one.case.wanted) and not one.passed for one in found)
    false = sum(bool(one.choice.skill) and not one.passed for one in found)
    wanting = [one for one in found if one.case.wanted]
    return Score(
        cases=len(found),
        passed=sum(one.passed for one in found),
        precision=right / (right + false) if right + false else 1.0,
        recall=right / (right + missed) if right + missed else 1.0,
        served=_share([one.served for one in wanting]),
        taken_wrong=1.0 - _share([not (one.choice.skill and not one.passed) for one in found]),
        quiet=_share([one.quiet for one in found if not one.case.wanted]),
    )


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits) if hits else 1.0


def confusions(found: Sequence[Outcome]) -> list[dict[str, Any]]:
    """The wanted and the chosen skill of wrongly routed messages, most frequent first."""
    pairs = Counter(
        (one.case.wanted or f"not {one.case.skill}", one.choice.skill or NOBODY) for one in found if not one.passed
    )
    ordered = sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))
    return [{"wanted": wanted, "chosen": chosen, "count": count} for (wanted, chosen), count in ordered]


PROJECT = "project"  # the suite of cases and problems without a skill


def junit_xml(found: Sequence[Outcome], problems: Sequence[Problem]) -> str:
    """JUnit XML with one suite for each skill: a test for each eval, and one for each problem."""
    suites: dict[str, list[str]] = defaultdict(list)
    failed: dict[str, int] = defaultdict(int)
    for one in found:
        skill = one.case.skill or PROJECT
        wanted = one.case.wanted or f"not {one.case.skill}"
        fault = "" if one.passed else f"wanted {wanted}, chosen {one.choice.skill or NOBODY}"
        suites[skill].append(_test(skill, f"{one.case.file}: {one.case.query}", fault))
        failed[skill] += bool(fault)
    for problem in problems:
        skill = problem.skill or PROJECT
        fault = problem.message if problem.level == "error" else ""
        suites[skill].append(_test(skill, f"{problem.code}: {problem.message}", fault))
        failed[skill] += bool(fault)
    total, wrong = sum(map(len, suites.values())), sum(failed.values())
    written = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites tests="{total}" failures="{wrong}">']
    for skill, tests in sorted(suites.items()):
        counts = f'tests="{len(tests)}" failures="{failed[skill]}"'
        written += [f"<testsuite name={_attribute(skill)} {counts}>", *tests, "</testsuite>"]
    return "\n".join([*written, "</testsuites>", ""])


def _test(skill: str, name: str, fault: str) -> str:
    inside = f"<failure message={_attribute(fault)}/>" if fault else ""
    return f"<testcase classname={_attribute(skill)} name={_attribute(name)}>{inside}</testcase>"


def _attribute(text: str) -> str:
    """A quoted attribute, without control characters: XML does not allow them, not even escaped."""
    return quoteattr("".join(mark for mark in clean(text, lines=False) if mark >= " " and mark not in "\ufffe\uffff"))
