"""Missing parts of a plan are asked for once, before there is a plan, and the answer completes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.turn.steps import PlanProposal
from navigator_kernel.values.route import NeedClarification
from routing.place import Routing
from tables import cases
from workflows.proposals import bound, place_at, plan, proposed, question, steps

pytestmark = pytest.mark.sample(2)

GAP = "run sum-column on @data.csv, then list the zibs, then draw a chart"
GAP_ZH = "用 sum-column 处理 @data.csv，然后列出张三，最后画一张图表"
CLUB = (
    "Our club meets on Friday and I am late with everything, so please bear with me: nothing of it is on paper yet, and "
    "on Thursday I will be away all day because of the dentist. We are forty people and most of us have known each "
    "other since school. "
)
SCOPE = "scope: installed skills; docs/skills-mapping.md has more"
SCOPE_ZH = "仅在已安装的技能中匹配；更多技能见 docs/skills-mapping.md"


@pytest.fixture
def place(tmp_path: Path, encoder: UseEncoder) -> Routing:
    return place_at(tmp_path, encoder)


# A step that no skill fits


@pytest.mark.requirement("WFL-5")
@pytest.mark.parametrize(("text", "step", "scope"), [(GAP, "list the zibs", SCOPE), (GAP_ZH, "列出张三", SCOPE_ZH)])
def test_a_step_that_no_skill_fits_is_one_question_with_the_scope(
    place: Routing, text: str, step: str, scope: str
) -> None:
    asked = question(place, text)
    assert asked.missing == ("skill",)
    assert repr(step) in asked.question
    assert scope in asked.question


@pytest.mark.requirement("WFL-5")
def test_all_steps_that_no_skill_fits_are_asked_for_at_once(place: Routing) -> None:
    text = "run sum-column on @data.csv, then list the zibs, then show the frobs, then draw a chart"
    asked = question(place, text, limit=4)
    assert re.search(r"'list the zibs'(?: \([^)]*\?\))?; 'show the frobs'", asked.question), asked.question


@pytest.mark.requirement("WFL-5")
@pytest.mark.parametrize("answer", ["count-words", "Count_Words", "`count-words`", "count-words.", " 'count-words' "])
def test_an_answer_that_names_a_skill_binds_the_step(place: Routing, answer: str) -> None:
    assert bound(place, GAP, answer=answer) == ["sum-column", "count-words", "draw-chart"]


def test_an_answer_that_names_no_skill_is_asked_again(place: Routing) -> None:
    assert question(place, GAP, answer="whatever you like").missing == ("skill",)


def test_a_bound_step_keeps_its_skill_whatever_is_answered(place: Routing) -> None:
    assert bound(place, GAP, answer="draw-chart") == ["sum-column", "draw-chart", "draw-chart"]


@pytest.mark.requirement("WFL-5")
def test_two_steps_of_which_one_fits_no_skill_are_not_given_to_the_other_ones_skill(place: Routing) -> None:
    """`run count-words on the moon, then list the zibs` must not count the words of `list the zibs`."""
    asked = proposed(place, "run count-words on the moon, then list the zibs")
    assert isinstance(asked, NeedClarification)
    assert "'list the zibs'" in asked.question


@pytest.mark.requirement("WFL-5")
@pytest.mark.parametrize(
    ("text", "rest", "binds"),
    [
        (GAP, "1. run sum-column on @data.csv\n2. draw a chart", ["sum-column", "draw-chart"]),
        (GAP_ZH, "1. 用 sum-column 处理 @data.csv\n2. 画一张图表", ["sum-column", "draw-chart"]),
        ("run sum-column on @data.csv, then list the zibs", "run sum-column on @data.csv", None),
    ],
)
def test_the_other_steps_are_offered_without_the_one_that_no_skill_fits(
    place: Routing, text: str, rest: str, binds: list[str] | None
) -> None:
    asked = question(place, text)
    assert asked.rest == rest
    assert "sum-column on @data.csv → sum-column" in asked.question or "处理 @data.csv → sum-column" in asked.question
    assert binds is None or bound(place, asked.rest) == binds


def test_a_numbered_list_is_a_list_of_steps(place: Routing) -> None:
    text = "1. run sum-column on @data.csv\n2. draw a chart\n3. run count-words on @notes.txt\n4. draw a chart"
    found = proposed(place, text)
    assert isinstance(found, PlanProposal)
    assert [step.skill for step in found.plan.steps] == ["sum-column", "draw-chart", "count-words"]
    assert found.left == ("draw a chart",)


# Parameters of a step (PKT-10, X-10)


@pytest.mark.requirement("PKT-10")
@cases("text, skill, missing")
def test_a_missing_parameter_of_a_skill_step_is_asked_for_first(
    place: Routing, text: str, skill: str, missing: tuple[str, ...]
) -> None:
    asked = question(place, text)
    assert (asked.target, asked.missing) == (skill, missing)
    assert skill in asked.question


@cases("text")
def test_text_and_files_of_a_later_step_come_from_the_one_before(place: Routing, text: str) -> None:
    assert len(steps(place, text)) > 1


@pytest.mark.requirement("PKT-10")
@cases("text, missing")
def test_a_missing_parameter_of_a_worker_or_mcp_step_is_asked_for_first_too(
    place: Routing, text: str, missing: str
) -> None:
    found = proposed(place, text)
    assert isinstance(found, NeedClarification)
    assert missing in found.missing


@pytest.mark.requirement("PKT-10")
def test_one_question_names_all_that_is_missing(place: Routing) -> None:
    asked = question(place, "run count-words and then run mail-letter")
    assert set(asked.missing) >= {"text", "to"}
    assert "the text" in asked.question
    assert "whom to" in asked.question


# The answer


@pytest.mark.requirement("PKT-10")
@cases("text, skill, answer, stored")
def test_an_answer_is_stored_in_the_step_that_asked(
    place: Routing, text: str, skill: str, answer: str, stored: str
) -> None:
    found = steps(place, text, answer=answer)
    assert [step.input for step in found if step.skill == skill] == [stored]


@pytest.mark.parametrize("answer", ["it's", 'a "quoted" word', "$1 \\$ `x`", "# no", "a\nb", "--flag"])
def test_an_answer_of_any_characters_comes_back_as_one_value(place: Routing, answer: str) -> None:
    [first, _] = steps(place, "run count-words and then draw a chart", answer=answer)
    request = place.request(first.input)
    assert request.commands[0].args == (f"text={' '.join(answer.split())}",)


@pytest.mark.requirement("PKT-10")
@pytest.mark.parametrize("answer", ["@data.csv", '@"deep down/my data.csv"'])
def test_a_file_may_be_the_answer(place: Routing, answer: str) -> None:
    found = plan(place, "run sum-column and then draw a chart", answer=answer)
    assert [step.skill for step in found.steps] == ["sum-column", "draw-chart"]
    assert found.sandbox.read == (answer.strip('@"'),)
    assert place.request(found.steps[0].input).files[0].problem == ""


def test_an_answer_is_not_split_into_steps(place: Routing) -> None:
    found = plan(place, "run count-words and then draw a chart", answer="eat, then run sum-column")
    assert [step.skill for step in found.steps] == ["count-words", "draw-chart"]
    assert found.description == "run count-words and then draw a chart"


# The wishes of a long message


@pytest.mark.requirement("WFL-1", "X-45")
def test_each_of_several_wishes_without_a_sure_skill_has_an_offer_and_gets_the_skill_that_is_named(
    place: Routing,
) -> None:
    wishes = "Take the table and see which numbers look odd. Then make something for the wall. And at the end mail it."
    text = f"{CLUB}Three jobs, please keep the order. {wishes} No posters."
    asked = question(place, text)
    assert asked.missing == ("skill",)
    assert not asked.rest
    for wish in ("Take the table", "Then make something", "And at the end"):
        assert re.search(rf"'{wish}[^']*' \([a-z-]+, [a-z-]+, [a-z-]+\?\)", asked.question)
    named = proposed(place, text, answer="draw-chart, draw-chart, draw-chart")
    assert isinstance(named, PlanProposal)
    assert [step.skill for step in named.plan.steps] == ["draw-chart"] * 3


@pytest.mark.requirement("WFL-1")
def test_a_skill_that_one_wish_names_is_not_offered_for_another(place: Routing) -> None:
    asked = question(place, f"{CLUB}First, run draw-chart on it. Second, tell each of them by mail what they owe.")
    assert "tell each of them" in asked.question
    offer = asked.question.partition("(")[2].partition("?)")[0]
    assert offer
    assert "draw-chart" not in offer
    assert asked.rest == "run draw-chart on it."


@pytest.mark.requirement("WFL-2")
def test_two_sentences_that_only_then_joins_are_one_task_unless_each_surely_has_a_skill(place: Routing) -> None:
    assert proposed(place, f"{CLUB}Draw a chart of our totals. Then a second one in blue for the wall.") is None


@pytest.mark.requirement("WFL-5")
def test_what_counts_a_wish_is_not_asked_for_again(place: Routing) -> None:
    text = "I have three things for you. One: which sum has the column amount of data.csv, the totals of the whole year? Two: list the zibs of the blue moon, all of them, and how they sing in the evening. Three: draw a chart of the amounts with the months below and the totals at the left, in colours that print well on our old printer."
    asked = question(place, text)
    assert asked.rest.startswith("draw a chart of the amounts")
