"""What a description has to say, and what two descriptions have in common."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from navigator_kernel.evals.lint import Overlap, of_descriptions, overlaps, used
from navigator_kernel.values.resource import Diagnostic, SkillDef
from tables import cases


def skill(name: str, description: str, *, implicit: bool = True) -> SkillDef:
    return SkillDef(name=name, description=description, path=Path("SKILL.md"), folder=None, implicit=implicit)


@pytest.mark.requirement("RTE-37", "RTE-39")
@cases("description, hinted")
def test_a_trigger_hint_is_a_scenario_and_not_what_the_skill_is_made_of(description: str, hinted: bool) -> None:
    codes = [problem.code for problem in of_descriptions([skill("a", description)])]
    assert ("trigger-missing" not in codes) is hinted, codes


def test_a_missing_description_is_not_judged_as_one() -> None:
    assert [*of_descriptions([skill("a", "")])] == []
    note = Diagnostic(code="no-description", level="warning", path="SKILL.md", message="")
    assert [*of_descriptions([replace(skill("a", "Go."), diagnostics=(note,))])] == []


def test_a_rare_word_in_common_weighs_more_than_a_frequent_one() -> None:
    others = [skill(f"s{at}", f"Use when the user wants a report number{at}") for at in range(8)]
    rare = [skill("a", "Use when the user wants a zeugma"), skill("b", "Use when the user wants a zeugma, too")]
    found = overlaps([*rare, *others], 0.6)
    assert found[0][:2] == ("a", "b")
    assert overlaps([skill("a", "one two three"), skill("b", "one two three")], 0.9) == [Overlap("a", "b", 1.0)]
    assert overlaps([skill("a", ""), skill("b", "")]) == []


def test_a_catalogue_is_as_long_as_what_a_host_shows_of_it() -> None:
    held = [skill("abc", "x" * 100), skill("de", "y" * 2_000), skill("hidden", "z" * 50, implicit=False)]
    assert used(held, 1_024) == (3 + 100 + 4) + (2 + 1_024 + 4)
