"""Checks descriptions without messages: trigger hints, overlap, and size in the catalogues of hosts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from navigator_kernel.evals.cases import EvalCase, Problem
from navigator_kernel.routing.words import content_terms
from navigator_kernel.skills.formats.validate import description_findings
from navigator_kernel.text import fold
from navigator_kernel.values.resource import SkillDef

LONG = 1024  # characters of a description, the specification's limit
SHOWN = 0.5  # the least overlap to report
AROUND = 4  # characters that a host adds to a name and a description
NAMED = 200  # most names of skills that do not fit
TOKEN = 4  # characters per token, as the hosts count


class Budget(NamedTuple):
    """The limits of a host, in characters: for all entries that it shows its model, and for one description."""

    total: int
    each: int


# Claude Code: 1 % of 200,000 tokens of 4 characters, 1,536 per description (anthropics/claude-code issue 64606).
# Codex: 2 % of the window, 8,000 characters if the window is unknown (openai/codex pull request 18298).
BUDGETS: Mapping[str, Budget] = {"claude-code": Budget(8_000, 1_536), "codex": Budget(8_000, LONG)}


class Listing(Struct, frozen=True, kw_only=True):
    """The cost of a host's list of skills in every request, if all enabled skills are in its folder. `beyond` is how
    many do not fit, counted in the order of names, and `names` are the first of these; a token is four characters."""

    host: str
    skills: int
    characters: int
    tokens: int
    limit: int
    limit_tokens: int
    beyond: int
    names: list[str]


class Overlap(NamedTuple):
    """The likeness of two descriptions, 1 if they say the same."""

    one: str
    other: str
    likeness: float


def of_descriptions(skills: Sequence[SkillDef]) -> Iterator[Problem]:
    """Finds descriptions that are too short, in the first person, or without a trigger hint (RTE-37, RTE-39)."""
    for skill in skills:
        for one in description_findings(skill, strict=True):
            yield Problem(one.code, one.level, skill.name, one.message)


def of_names(skills: Sequence[SkillDef]) -> Iterator[Problem]:
    """Names, triggers and aliases that several skills declare; a message with one reaches one of them by chance."""
    held: dict[str, list[str]] = defaultdict(list)
    for skill in skills:
        for word in dict.fromkeys(fold(word) for word in (skill.name, *skill.triggers, *skill.aliases)):
            held[word].append(skill.name)
    for word, names in sorted(held.items()):
        if len(names) > 1:
            yield Problem(
                "trigger-shared",
                "error",
                names[0],
                f"{word!r} is a trigger or a name of several skills: {', '.join(names)}",
            )


def of_evals(cases: Sequence[EvalCase], skills: Sequence[SkillDef]) -> Iterator[Problem]:
    """Evals that no catalogue can meet."""
    known, wanted = {skill.name for skill in skills}, defaultdict(set)
    for case in cases:
        for name in (case.skill, case.expected):
            if name and name not in known:
                yield Problem("eval-unknown", "error", case.skill, f"there is no skill called {name!r}", case.file)
        if case.wanted:
            wanted[fold(case.query)].add(case.wanted)
        if not case.should_trigger and case.expected == case.skill != "":
            yield Problem(
                "eval-contradiction", "error", case.skill, f"{case.query!r} should and should not select it", case.file
            )
    for query, names in sorted(wanted.items()):
        if len(names) > 1:
            message = f"{query!r} is for {' and for '.join(sorted(names))}"
            yield Problem("eval-contradiction", "error", min(names), message)


def without_evals(cases: Sequence[EvalCase], skills: Sequence[SkillDef], level: str) -> Iterator[Problem]:
    """Skills without evals, or with evals of one kind only: messages that are for them, or messages that are not."""
    kinds = defaultdict(set)
    for case in cases:
        kinds[case.skill].add(case.should_trigger)
    for skill in skills:
        if not kinds[skill.name]:
            yield Problem("eval-missing", level, skill.name, "it has no evals")
        elif len(kinds[skill.name]) < 2:
            yield Problem("eval-one-sided", level, skill.name, "its evals are all of one kind")


def overlaps(skills: Sequence[SkillDef], least: float = SHOWN) -> list[Overlap]:
    """Pairs of descriptions by the cosine of their words, with more weight on rare words; none under `least`."""
    bags = {skill.name: Counter(content_terms(skill.description)) for skill in skills}
    among = Counter(word for bag in bags.values() for word in bag)
    weights: dict[str, dict[str, float]] = {}
    for name, bag in bags.items():
        found = {word: count * math.log(1 + len(bags) / among[word]) for word, count in bag.items()}
        length = math.sqrt(sum(value * value for value in found.values())) or 1.0
        weights[name] = {word: value / length for word, value in found.items()}
    likeness: dict[tuple[str, str], float] = defaultdict(float)
    holders: dict[str, list[str]] = defaultdict(list)
    for name in sorted(weights):
        for word, value in weights[name].items():
            for other in holders[word]:
                likeness[other, name] += value * weights[other][word]
            holders[word].append(name)
    found_pairs = [Overlap(one, other, round(value, 3)) for (one, other), value in likeness.items() if value >= least]
    return sorted(found_pairs, key=lambda pair: (-pair.likeness, pair))


def used(skills: Sequence[SkillDef], each: int) -> int:
    """The number of characters in a host's catalogue."""
    shown = [skill for skill in skills if skill.implicit]
    return sum(len(skill.name) + min(len(skill.description), each) + AROUND for skill in shown)


def listings(skills: Sequence[SkillDef]) -> list[Listing]:
    """The listing of each host that has a budget."""
    shown = sorted((skill for skill in skills if skill.implicit), key=lambda skill: skill.name)
    result: list[Listing] = []
    for host, budget in BUDGETS.items():
        total, beyond = 0, []
        for skill in shown:
            total += used([skill], budget.each)
            if total > budget.total:
                beyond.append(skill.name)
        result.append(
            Listing(
                host=host,
                skills=len(shown),
                characters=total,
                tokens=-(-total // TOKEN),
                limit=budget.total,
                limit_tokens=budget.total // TOKEN,
                beyond=len(beyond),
                names=beyond[:NAMED],
            )
        )
    return result
