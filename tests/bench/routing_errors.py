"""Counts the router's most confident errors by what caused them; no question of a set is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.routing_sets import Question
from navigator_kernel.values.route import Candidate
from tables import table

LOOKED_AT = 40  # most confident errors of each set
GROUPS: Mapping[str, tuple[str, ...]] = table(__file__, "GROUPS")
NONE_MEANT, NOT_FOUND = "no skill was meant", "the right one was not found"


@dataclass(frozen=True, slots=True)
class Mistake:
    """A first place that is wrong: how confident it was, and why it came first."""

    confidence: float
    cause: str


def mistake(question: Question, found: Sequence[Candidate]) -> Mistake | None:
    """None where the first is right, or where nothing was found."""
    if not found or found[0].name in question.labels:
        return None
    first = found[0]
    if not question.labels:
        return Mistake(first.confidence, NONE_MEANT)
    right = next((one for one in found if one.name in question.labels), None)
    if right is None:
        return Mistake(first.confidence, NOT_FOUND)
    lead = {name: _sum(first.parts, of) - _sum(right.parts, of) for name, of in _parts(first, right).items()}
    return Mistake(first.confidence, f"{max(lead, key=lambda name: lead[name])} spoke for the wrong one")


def _parts(*found: Candidate) -> dict[str, set[str]]:
    """The parts of a score by group, each in the first group that its name begins like."""
    held: dict[str, set[str]] = {name: set() for name in GROUPS}
    for part in {name for one in found for name in one.parts}:
        group = next((name for name, begins in GROUPS.items() if part.startswith(begins)), "its words")
        held[group].add(part)
    return held


def _sum(parts: Mapping[str, float], names: Iterable[str]) -> float:
    return sum(parts.get(name, 0.0) for name in names)


def page(sets: Mapping[str, Sequence[Mistake]], questions: Mapping[str, int]) -> str:
    """The table of `docs/reference/routing-errors.md`: by set, how many of its LOOKED_AT most confident errors have
    which cause."""
    causes = [*(f"{name} spoke for the wrong one" for name in GROUPS), NONE_MEANT, NOT_FOUND]
    lines = [
        "# Where the router is wrong",
        "",
        "Written by `make bench-routing`; do not edit it. Of each set of the benchmark the most confident errors",
        f"(at most {LOOKED_AT}), counted by their cause: what spoke most for the wrong skill, as against the right one.",
        "",
        "![Right at the first place, by set; milliseconds a message, by size](routing.png)",
        "",
        "| set | questions | errors | median confidence | " + " | ".join(causes) + " |",
        "|---|---|---|---|" + "---|" * len(causes),
    ]
    for name, held in sets.items():
        worst = sorted(held, key=lambda one: -one.confidence)[:LOOKED_AT]
        counts = Counter(one.cause for one in worst)
        middle = f"{worst[len(worst) // 2].confidence:.2f}" if worst else "-"
        cells = " | ".join(str(counts[cause] or "-") for cause in causes)
        lines.append(f"| {name} | {questions[name]} | {len(held)} | {middle} | {cells} |")
    return "\n".join(lines) + "\n"
