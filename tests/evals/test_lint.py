"""What a description has to say, and what two descriptions have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.evals.lint import Overlap, of_descriptions, overlaps, used
from navigator_kernel.values.resource import SkillDef


def skill(name: str, description: str, *, implicit: bool = True) -> SkillDef:
    return SkillDef(name=name, description=description, path=Path("SKILL.md"), folder=None, implicit=implicit)


@pytest.mark.requirement("RTE-37", "RTE-39")
@pytest.mark.parametrize(
    ("description", "hinted"),
    [
        ("Counts words. This skill should be used when the user wants a count", True),
        ("Use when somebody asks how long a text is, in words", True),
        ("Counts the words of a text. Use it for essays and for reports", True),
        ("Reviews code. Triggers when a pull request is opened", True),
        ("Handles tides whenever the user asks about high water", True),
        ("统计文字的字数（用户要知道文章长度时使用）", True),
        ("当用户要统计字数的时候，给出字数、行数和最常用的词", True),
        ("适用于统计中文和英文文章的字数、行数与最常见的词语", True),
        ("Counts the words, lines and characters of a text, quickly", False),
        ("Uses pandas for tables and writes reports by the hundred", False),
        ("Runs the tests of a project on a server and tells the result", False),
        ("统计文字的字数、行数和最常见的词语，支持中文和英文两种语言", False),
    ],
)
def test_a_trigger_hint_is_a_scenario_and_not_what_the_skill_is_made_of(description: str, hinted: bool) -> None:
    codes = [problem.code for problem in of_descriptions([skill("a", description)])]
    assert ("trigger-missing" not in codes) is hinted, codes


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
