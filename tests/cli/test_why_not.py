"""`navigator why --not`: the stage at which a skill dropped out, in runs of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, below, place_in, type_a
from skill_repositories import skill_text

pytestmark = pytest.mark.sample(2)

FAILS = "import sys\nsys.exit(3)\n"


@pytest.fixture
def here(tmp_path: Path, home: Path) -> Place:
    here = place_in(tmp_path)
    here.write(
        {".claude/skills/ada-painter/SKILL.md": skill_text("ada-painter", "Paints watercolours of boats at sea")}
    )
    here.write(
        {".claude/skills/bob-painter/SKILL.md": skill_text("bob-painter", "Paints watercolours of boats at sea")}
    )
    here.write(
        {
            ".claude/skills/for-people/SKILL.md": skill_text(
                "for-people", "Sells tea", "disable-model-invocation: true\n"
            )
        }
    )
    here.write(below(".claude/skills/fail-hard", type_a("fail-hard", FAILS, description="Fails with a message")))
    return here


def after(here: Place, *words: str, skill: str) -> tuple[str, list[str], Any]:
    here.run("ask", *words)
    told = here.json("why", "--not", skill)
    return told["fell_out"], told["stages"], told


@pytest.mark.parametrize("skill", ["no-such-skill", "for-people"])
def test_an_unknown_or_person_only_skill_is_not_offered(here: Place, skill: str) -> None:
    fell_out, stages, told = after(here, "please sell me some tea", skill=skill)
    assert (fell_out, stages) == ("offered", [])
    assert skill in told["why"]


@pytest.mark.wide
def test_a_disabled_skill_is_not_offered(here: Place) -> None:
    here.said("skill", "disable", "ada-painter")
    fell_out, _, told = after(here, "paint a watercolour of boats at sea", skill="ada-painter")
    assert (fell_out, told["why"]) == ("offered", "ada-painter is disabled")


@pytest.mark.wide
@pytest.mark.parametrize("message", ["please review this code", "帮我审查一下代码"])
def test_a_less_similar_skill_is_not_shortlisted_or_not_chosen(here: Place, message: str) -> None:
    fell_out, stages, told = after(here, message, skill="ada-painter")
    assert fell_out in {"shortlisted", "chosen"} and stages[0] == "offered"
    assert "code-review" in told["why"] or "closer" in told["why"]


@pytest.mark.wide
def test_no_other_skill_is_searched_for_when_one_is_called_by_name(here: Place) -> None:
    fell_out, stages, told = after(here, "/word-count hello", skill="ada-painter")
    assert (fell_out, stages) == ("shortlisted", ["offered"])
    assert told["why"] == "no search was made: skills word-count by syntax"


def test_two_equal_skills_lead_to_a_question_before_a_choice(here: Place) -> None:
    fell_out, stages, told = after(here, "paint a watercolour of boats at sea", skill="bob_painter")
    assert (fell_out, stages, told["skill"]) == ("chosen", ["offered", "shortlisted"], "bob-painter")
    assert (
        "a question came first" in told["why"]
        and told["confidence"] is not None
        and told["best"][0].endswith("-painter")
    )


def test_a_skill_after_a_failed_step_is_not_loaded(here: Place) -> None:
    fell_out, stages, told = after(here, "--yes", "use fail-hard, ada-painter about the sea", skill="ada-painter")
    assert fell_out == "loaded" and stages[-1] == "chosen"
    assert "an earlier step ended it" in told["why"]


def test_a_used_skill_is_reported_as_used(here: Place) -> None:
    fell_out, stages, told = after(here, "/word-count hello", skill="word-count")
    assert (fell_out, stages[-1], told["why"]) == ("", "used", "it was used, and ended in success")


@pytest.mark.wide
def test_a_person_reads_it_in_a_few_lines(here: Place) -> None:
    here.run("ask", "paint a watercolour of boats at sea")
    told = here.said("why", "--not", "ada-painter").splitlines()
    assert [line.split()[0] for line in told] == ["run", "offered", "shortlisted", "chosen", "confidence"]
