"""Writes the outcome of evals as JUnit XML, for continuous integration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

from navigator_kernel.evals.cases import Problem
from navigator_kernel.evals.score import NOBODY, Outcome
from navigator_kernel.text import clean

PROJECT = "project"  # the suite of cases and problems without a skill


def junit(found: Sequence[Outcome], problems: Sequence[Problem]) -> str:
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
