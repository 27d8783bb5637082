"""Plans in `navigator route`, in a chat and in a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.support import Done, Place
from tables import cases
from workflows.project import project_in

pytestmark = pytest.mark.sample(1)

TWO = "run shout-loud on @notes.txt and then count the terms in it"
TWO_ZH = "用 shout-loud 处理 @notes.txt，然后统计结果的词条数"
FOUR = "run shout-loud on a, then count the terms in it, then run shout-loud on it, then run draft-poem"


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return Place(root=project_in(tmp_path))


def proposed(here: Place, text: str) -> str:
    """The token of the plan proposed for `text`."""
    return str(here.json("ask", text)["workflow"]["token"])


# Routes


def steps(document: Any) -> list[str]:
    return [step["skill"] for step in document["steps"]]


@pytest.mark.requirement("WFL-1")
@pytest.mark.parametrize("text", [TWO, TWO_ZH, f"需求理解：{TWO_ZH}"])
def test_a_route_of_several_steps_is_a_workflow(here: Place, text: str) -> None:
    document = here.json("route", text)
    assert (document["kind"], document["reason"], steps(document)) == (
        "workflow",
        "steps",
        ["shout-loud", "count-terms"],
    )
    asked = here.json("ask", text)["workflow"]["steps"]
    assert [step["text"] for step in document["steps"]] == [step["text"] for step in asked]


def test_a_route_shows_its_steps_to_a_person(here: Place) -> None:
    out = here.said("route", FOUR)
    assert out.startswith("workflow")
    assert "  Step 1: run shout-loud on a → shout-loud\n" in out


def test_a_route_leaves_nothing_behind(here: Place) -> None:
    before = here.files()
    here.said("route", TWO)
    index = {"mybox/.gitignore", "mybox/state/project-id"}  # identifies the project's skill index
    assert {name: data for name, data in here.files().items() if name not in index} == before


@pytest.mark.parametrize("text", ["run shout-loud on a", "/shout-loud first a then b", "hello"])
def test_a_route_of_one_step_has_none(here: Place, text: str) -> None:
    document = here.json("route", text)
    assert (document["kind"] == "workflow", document["steps"]) == (False, [])


@pytest.mark.wide
@cases("text")
def test_a_route_is_of_the_kind_that_the_message_then_gets(here: Place, text: str) -> None:
    assert here.json("route", text)["kind"] == here.json("ask", text)["route"]["kind"]


# A conversation


def replies(done: Done) -> list[Any]:
    return list(json.loads(done.out)["replies"])


@pytest.mark.wide
@pytest.mark.parametrize(("text", "yes"), [(TWO, "yes"), (TWO_ZH, "是")])
def test_a_chat_shows_the_plan_and_runs_it_after_a_yes(here: Place, text: str, yes: str) -> None:
    first, second = replies(here.run("chat", "--json", stdin=f"{text}\n{yes}\n"))
    assert (first["workflow"]["state"], first["exit_code"]) == ("proposed", 9)
    assert (second["workflow"]["state"], second["report"]["data"]["words"]) == ("done", 3)


@pytest.mark.wide
def test_a_chat_shows_each_step_of_a_workflow(here: Place) -> None:
    out = here.said("chat", stdin=f"{TWO}\nyes\n")
    assert out.count(f"[Workflow] {TWO}") == 2
    assert out.index("shout-loud done") < out.index("count-terms done")


@pytest.mark.wide
def test_a_session_continues_with_its_plan_in_another_command(here: Place) -> None:
    here.run("ask", "--session", "s1", TWO)
    document = here.json("ask", "--session", "s1", "yes")
    assert document["report"]["data"]["words"] == 3
    assert here.json("ask", "--session", "s1", "yes")["workflow"] is None


@pytest.mark.wide
def test_approving_a_plan_by_its_token_leaves_a_later_proposal_of_it_proposed(here: Place) -> None:
    token = proposed(here, TWO)
    later = here.json("ask", "--session", "s1", TWO)["workflow"]["token"]
    assert here.json("workflow", "approve", token)["exit_code"] == 0
    assert here.json("workflow", "show", later)["run"]["state"] == "proposed"


@pytest.mark.wide
@pytest.mark.requirement("WFL-9")
def test_a_plan_aborted_by_its_token_is_not_run_by_a_yes_in_its_session(here: Place) -> None:
    token = here.json("ask", "--session", "s1", TWO)["workflow"]["token"]
    here.json("workflow", "abort", token)
    here.run("ask", "--session", "s1", "yes")
    assert here.json("workflow", "show", token)["run"]["state"] == "aborted"
