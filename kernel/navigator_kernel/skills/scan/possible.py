"""Finds out in one pass which rules may match a text, before any is tried."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from navigator_kernel.adapters.pattern_set import SPARE, PatternSet
from navigator_kernel.config.settings import user_state
from navigator_kernel.skills.scan import hidden
from navigator_kernel.skills.scan.flow import hits as flows
from navigator_kernel.skills.scan.rule import Rule, rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from navigator_kernel.skills.scan.context import Kind


def may_match(text: str) -> frozenset[str]:
    """The sources of the patterns that may match in `text`."""
    return _patterns().possible(text)


@lru_cache(maxsize=1_000)  # most passages have one of a few sets
def worth_reading(may: frozenset[str]) -> frozenset[Kind]:
    """The kinds of passages in which something may be found if these patterns may match."""
    kinds: frozenset[Kind] = frozenset(kind for rule in rules_of(may) for kind in rule.kinds)
    if flows.is_possible(may):
        kinds |= flows.KINDS
    return kinds if may.isdisjoint(hidden.SOURCES) else kinds | hidden.KINDS


def rules_of(may: frozenset[str]) -> Sequence[Rule]:
    """The rules with one of these patterns, in their order."""
    by_source = _by_source()
    numbers = sorted({number for source in may for number in by_source.get(source, ())})
    return [rules()[number] for number in numbers]


@cache
def _patterns() -> PatternSet:
    sources = (*_by_source(), *flows.SOURCES, *hidden.SOURCES)
    return PatternSet(sources, user_state() / "cache" / "patterns", SPARE)


@cache
def _by_source() -> Mapping[str, Sequence[int]]:
    """Each pattern of a rule, with the numbers of its rules."""
    numbers: dict[str, list[int]] = {}
    for number, rule in enumerate(rules()):
        for source in rule.any:
            numbers.setdefault(source, []).append(number)
    return numbers
