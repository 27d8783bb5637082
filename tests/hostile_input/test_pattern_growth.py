"""Every pattern of the kernel reads a text of any length in linear time (CWE-1333)."""

from __future__ import annotations

import multiprocessing
import re
from concurrent.futures import ProcessPoolExecutor

import pytest

from hostile_input.pumps import METHODS, UNKNOWN, Use, made_by_modules, repeats_in_possessive, slow
from navigator_kernel.skills.scan.rule import rules

TRIES = 3
FEW, MANY = 8, 40  # texts for each pattern, in `make test` and in the gate


def patterns() -> list[Use]:
    """The patterns of the modules and of the scanner's rules, in the order of their names."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:  # the tests before made others
        made = fresh.submit(made_by_modules).result()
    of_rules = [
        (f"{rule.code} {field}", source, re.IGNORECASE | re.MULTILINE, UNKNOWN)
        for rule in rules()
        for field in ("any", "near", "known", "malice", "mild")
        for source in getattr(rule, field)
    ]
    uses = [Use(place, re.compile(source, flags), frozenset(ways)) for place, source, flags, ways in made + of_rules]
    return sorted(uses, key=lambda use: (use.place, str(use.pattern.pattern)))


@pytest.mark.parametrize(
    ("source", "method"),
    [
        (r"(?:a+)+b", "match"),
        (r"\s+$", "search"),
        (r"[ \t]+\n", "sub"),
        (r"^\s*(?:y|yes)\s*[.!]?\s*$", "match"),
        (r"x.*y.*z", "search"),
        (r"<!--.*?-->", "finditer"),
        (rb"\w+=", "search"),
    ],
)
def test_a_pattern_that_takes_more_than_linear_time_is_noticed(source: str | bytes, method: str) -> None:
    use = Use("bad", re.compile(source), frozenset({method}))
    reports = [report for _ in range(TRIES) if (report := slow(use))]  # other work may distort a measurement
    assert reports and reports[0].startswith("bad: ")


@pytest.mark.parametrize(
    ("source", "method"),
    [(r"(?<!\s)\s++$", "search"), (r"^\s*+(?:y|yes)\s*+[.!]?\s*+$", "match"), (r"[^x]{0,300}y", "search")],
)
def test_a_pattern_that_takes_linear_time_is_not_reported(source: str, method: str) -> None:
    assert slow(Use("good", re.compile(source), frozenset({method}))) == ""


def test_every_pattern_of_the_kernel_takes_linear_time() -> None:
    uses = patterns()
    assert len(uses) > 600
    assert [found for use in uses if (found := slow(use, FEW))] == []


@pytest.mark.wide
@pytest.mark.timeout(300)
def test_every_pattern_of_the_kernel_takes_linear_time_on_many_texts() -> None:
    assert [found for use in patterns() if (found := slow(use, MANY))] == []


def test_no_pattern_needs_what_the_python_of_debian_12_gets_wrong() -> None:
    """Before 3.11.5, a group that is repeated possessively matches wrongly if a part of it repeats (gh-106052)."""
    broken = re.compile(r"((?:%[0-9]{2})++)")
    uses = [*patterns(), Use("broken", broken, frozenset())]
    assert [use.place for use in uses if repeats_in_possessive(use.pattern)] == ["broken"]


def test_the_methods_that_read_a_text_are_known() -> None:
    readers = {name for name in dir(re.Pattern) if callable(getattr(re.Pattern, name)) and not name.startswith("_")}
    assert readers - {"scanner"} == set(METHODS)
