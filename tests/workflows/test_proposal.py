"""A message of several steps becomes a plan in which each step has the best skill for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.turn.steps import LIMIT, PlanProposal
from navigator_kernel.values.route import Lifecycle, NeedClarification, Unknown
from routing.place import Routing, write_skills
from tables import cases
from workflows.proposals import bound, place_at, plan, proposed, steps

pytestmark = pytest.mark.sample(2)

TWO = "run sum-column on @data.csv and then draw a chart"
TWO_ZH = "用 sum-column 处理 @data.csv，然后画一张图表"
BY_NAME = ("polish-manuscript", "Does a thing")
BY_DESCRIPTION = ("second-one", "Polishes a manuscript so that others like to read it")
BY_TAGS = ("third-one", ("Does more", "tags: polish, manuscript\n"))


@pytest.fixture
def place(tmp_path: Path, encoder: UseEncoder) -> Routing:
    return place_at(tmp_path, encoder)


# Messages that get a workflow


@pytest.mark.requirement("WFL-1", "COV-4")
@cases("text")
def test_explicit_steps_become_a_plan(place: Routing, text: str) -> None:
    assert bound(place, text) == ["sum-column", "draw-chart"]


@pytest.mark.requirement("WFL-1")
@pytest.mark.parametrize("order", ["sharpen the picture, then {}", "{} and then sharpen the picture"])
def test_a_step_whose_verb_is_unknown_is_one_where_a_skill_fits_it(place: Routing, order: str) -> None:
    write_skills(place.root, {"picture-sharpener": "Sharpens pictures and photos"})
    assert sorted(bound(place, order.format("draw a chart"))) == ["draw-chart", "picture-sharpener"]


@pytest.mark.requirement("WFL-1")
def test_orders_between_commas_in_a_step_are_steps_if_each_has_its_own_skill(place: Routing) -> None:
    text = "run sum-column on @data.csv, draw a chart, then run count-words"
    assert bound(place, text) == ["sum-column", "draw-chart", "count-words"]


@pytest.mark.requirement("WFL-1")  # the person asks for it
def test_one_order_is_a_plan_where_a_plan_is_asked_for(place: Routing) -> None:
    assert proposed(place, "draw a chart") is None
    assert bound(place, "draw a chart", alone=True) == ["draw-chart"]


@pytest.mark.requirement("COV-4")
@pytest.mark.parametrize(
    "text", ["list the zibs and then show the frobs", "先列出张三再显示李四", "hello", "今天天气怎么样"]
)
def test_no_workflow_is_proposed_if_no_skill_fits_any_step(place: Routing, text: str) -> None:
    assert proposed(place, text) is None


@pytest.mark.parametrize("alone", [False, True])
def test_a_long_text_is_never_taken_apart(place: Routing, alone: bool) -> None:
    steps = ". First, run sum-column on @data.csv. Then draw a chart."
    text = "x" * (LIMIT - len(steps)) + steps
    assert isinstance(proposed(place, text, alone=alone), PlanProposal)
    assert proposed(place, "x" + text, alone=alone) is None


# One skill is better than a plan


@pytest.mark.requirement("WFL-2", "COV-6")
@cases("text")
def test_a_message_for_one_skill_is_not_split(place: Routing, text: str) -> None:
    assert proposed(place, text) is None


@pytest.mark.requirement("WFL-2", "COV-5")
@pytest.mark.parametrize("text", ["fix the spelling and then shorten the sentences", "先改错字再缩短句子"])
def test_a_skill_whose_example_says_just_that_has_all_of_it(tmp_path: Path, text: str, encoder: UseEncoder) -> None:
    write_skills(
        tmp_path,
        {
            "fix-spelling": "Fixes spelling",
            "shorten-sentences": "Shortens sentences",
            "改错字": "改错字",
            "缩短句子": "缩短句子",
        },
    )
    place = place_at(tmp_path, encoder)
    assert proposed(place, text) is None
    assert place.decide(text).entity == "tidy-prose"


@pytest.mark.requirement("COV-5")
def test_connecting_words_inside_what_a_skill_is_given_split_nothing(place: Routing) -> None:
    text = 'run count-words on "first eat, then run" and then draw a chart'
    assert [step.input for step in steps(place, text)] == ['run count-words on "first eat, then run"', "draw a chart"]


@pytest.mark.requirement("COV-6")
@cases("text, inputs", ids=["files", "files-zh", "texts"])
def test_one_skill_for_different_things_is_several_steps(place: Routing, text: str, inputs: tuple[str, ...]) -> None:
    assert tuple(step.input for step in steps(place, text)) == inputs


# The skill of each step


@pytest.mark.requirement("WFL-4", "COV-2")
@pytest.mark.parametrize(
    "text", ["run draw-chart, then run count-words on it", "用 draw-chart，然后用 count-words 统计"]
)
def test_a_step_that_names_a_skill_has_it(tmp_path: Path, text: str, encoder: UseEncoder) -> None:
    write_skills(
        tmp_path, {"other-one": ("Runs charts and counts", "examples: |\n  run draw-chart\n  用 draw-chart\n")}
    )
    assert bound(place_at(tmp_path, encoder), text) == ["draw-chart", "count-words"]


@pytest.mark.requirement("WFL-4", "COV-3")
@pytest.mark.parametrize(
    ("there", "best"),
    [
        ((BY_NAME, BY_DESCRIPTION, BY_TAGS), "polish-manuscript"),
        ((BY_NAME, BY_TAGS), "polish-manuscript"),
        ((BY_DESCRIPTION, BY_TAGS), "second-one"),
        ((BY_TAGS,), "third-one"),
    ],
    ids=["name", "name before tags", "description before tags", "tags"],
)
def test_a_name_counts_more_than_a_description_and_that_more_than_tags(
    tmp_path: Path, there: tuple[tuple[str, str | tuple[str, str]], ...], best: str, encoder: UseEncoder
) -> None:
    write_skills(tmp_path, dict(there))
    assert bound(place_at(tmp_path, encoder), "draw a chart and then polish the manuscript") == ["draw-chart", best]


@pytest.mark.requirement("WFL-6")
@cases("text, skill, agent")
def test_each_step_goes_to_the_agent_that_owns_it(place: Routing, text: str, skill: str, agent: str) -> None:
    first, second = steps(place, f"{text}, then run sum-column on @data.csv")
    assert (first.skill, first.agent) == (skill, agent)
    assert (second.skill, second.agent) == ("sum-column", "skills")


def test_a_plan_depends_on_the_skills_that_it_runs_and_on_nothing_else(place: Routing) -> None:
    assert plan(place, "install acme/tools, then run sum-column on @data.csv, then draw a chart").depends_on == (
        "sum-column",
        "draw-chart",
    )


# Installing first


@pytest.mark.requirement("COV-7")
@pytest.mark.parametrize("text", [TWO, "run web-scraper on @data.csv and then draw a chart"])
def test_a_skill_that_is_here_is_not_fetched(tmp_path: Path, text: str, encoder: UseEncoder) -> None:
    write_skills(tmp_path, {"web-scraper": "scrapes pages"})
    assert {step.agent for step in steps(place_at(tmp_path, encoder), text)} == {"skills"}


@cases("text, first, second")
def test_a_source_is_asked_for_the_skill_that_is_run_next_only_and_says_so(
    place: Routing, text: str, first: str, second: str
) -> None:
    found = steps(place, text)
    assert [step.skill for step in found] == ["skill_manager", second]
    assert (found[0].input, found[0].text) == (first, first)
    order = place.router.recognise(found[0].input)
    assert isinstance(order, Lifecycle)
    assert order.skills == (() if second == "draw-chart" else ("frob-it",))


def test_two_skills_may_come_from_one_source(place: Routing) -> None:
    found = steps(place, "install acme/tools, then run frob-it on @data.csv, then run knit-it on it")
    assert [step.skill for step in found] == ["skill_manager", "frob-it", "knit-it"]
    assert found[0].input == "install acme/tools --skill frob-it --skill knit-it"


def test_a_skill_of_another_name_than_the_one_asked_for_is_not_made_up(place: Routing) -> None:
    found = proposed(place, "install acme/tools --skill other and then run frob-it on @data.csv")
    assert isinstance(found, NeedClarification)


# Files


@cases("text, base, stored")
def test_paths_are_stored_from_the_projects_root(place: Routing, text: str, base: str, stored: str) -> None:
    found = plan(place, f"{text}, then draw a chart", base=base)
    assert found.steps[0].input == stored
    assert [(place.root / path).is_file() for path in found.sandbox.read] == [True]


def test_only_the_files_that_are_named_may_be_read(place: Routing) -> None:
    found = plan(place, "run sum-column on @data.csv, then run count-words on @notes.txt, then draw a chart")
    assert (found.sandbox.read, found.sandbox.write) == (("data.csv", "notes.txt"), ("mybox/workspace",))
    assert found.sandbox.network is False


@cases("text, name, refused")
def test_a_file_that_cannot_be_read_refuses_the_whole_plan(place: Routing, text: str, name: str, refused: bool) -> None:
    (place.root.parent / "outside.csv").write_text("a,1\n")
    found = proposed(place, text)
    assert isinstance(found, Unknown)
    assert (name in found.name, found.refused) == (True, refused)


# The number of steps


FIVE = (
    "run count-words on @notes.txt, then draw a chart, then run sum-column on @data.csv, then list zibs, then show it"
)


@pytest.mark.requirement("WFL-3")
@pytest.mark.parametrize(
    ("limit", "kept", "left"),
    [
        (3, ["count-words", "draw-chart", "sum-column"], ("list zibs", "show it")),
        (2, ["count-words", "draw-chart"], ("run sum-column on @data.csv", "list zibs", "show it")),
    ],
)
def test_the_first_steps_are_offered_and_the_rest_is_named(
    place: Routing, limit: int, kept: list[str], left: tuple[str, ...]
) -> None:
    found = proposed(place, FIVE, limit=limit)
    assert isinstance(found, PlanProposal)
    assert ([step.skill for step in found.plan.steps], found.left) == (kept, left)


@pytest.mark.requirement("WFL-3")
def test_each_step_can_be_run_on_its_own(place: Routing) -> None:
    """The stored input of a step is an order that the router assigns to the same skill."""
    for step in steps(place, "run sum-column on @data.csv, then draw a chart, then count the words in this text"):
        assert place.decide(step.input).entity == step.skill


# The name of the plan


@cases("text, name")
def test_a_plan_is_named_after_its_steps(place: Routing, text: str, name: str) -> None:
    assert plan(place, text).name == name


def test_a_plan_contains_the_message_and_describes_the_output_of_each_step(place: Routing) -> None:
    found = plan(place, TWO)
    assert found.description == TWO
    assert [step.output for step in found.steps] == ["its output and files go to the next step", "the result"]
    assert [step.output for step in plan(place, TWO_ZH).steps] == ["输出与文件交给下一步", "结果"]
