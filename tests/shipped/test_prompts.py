"""The shipped prompts: what they contain, how they are filled, and what they ask for."""

from __future__ import annotations

import re

import pytest

from shipped.place import Place
from tables import cases

QUESTION = "which task, and what about it, with its time if it has one"
QUESTION_ZH = "哪个任务、怎么处理，有时间请写明"


def prompt(place: Place, text: str) -> str:
    return str(place.ask(text).raw)


@pytest.mark.requirement("FMT-11")
@cases("text, skill")
def test_a_prompt_ends_with_the_request(place: Place, text: str, skill: str) -> None:
    report = place.ask(text)
    assert (report.data["skill"], report.data["kind"]) == (skill, "B")
    shown = str(report.raw)
    assert shown.startswith("You ")
    assert text.startswith("/") or text in shown
    assert not re.search(r"\{\{?\w+\}?\}", shown)


@pytest.mark.requirement("FMT-11")
def test_the_orchestrator_asks_for_a_plan_and_its_execution(place: Place) -> None:
    told = prompt(place, "把这个复杂需求分解成步骤并执行")
    parts = ["Decomposition", "Required resources", "Steps", "Expected result", "carry the plan out"]
    places = [told.find(part) for part in parts]
    assert -1 not in places and places == sorted(places)
    assert "One skill beats a workflow" in told and "At most three steps" in told


# task_manager


@pytest.mark.requirement("FMT-11", "FMT-8", "RTE-29", "RTE-31")
@pytest.mark.parametrize(
    ("order", "answer"),
    [("创建任务", "明天下午3点开会"), ("create a task", "meeting tomorrow at 3pm"), ("/task_manager", "buy milk")],
)
def test_a_bare_order_is_asked_about_and_the_answer_completes_it(place: Place, order: str, answer: str) -> None:
    talk = place.talk()
    asked = talk.say(order).report
    assert (asked.state, asked.data["required"]) == ("pending", ["task"])
    assert (QUESTION if order.isascii() else QUESTION_ZH) in asked.summary
    told = talk.say(answer).report
    assert told.state == "success"
    assert f"Task: {answer}" in str(told.raw)


@cases("text, task")
def test_a_task_in_the_request_is_filled_in_without_a_question(place: Place, text: str, task: str) -> None:
    assert prompt(place, text).endswith(f"Task: {task}")


@pytest.mark.requirement("FMT-8", "FMT-11")
@cases("rule")
def test_the_rules_for_tasks_are_in_its_prompt(place: Place, rule: str) -> None:
    assert rule in prompt(place, "/task_manager buy milk")


def test_placeholder_syntax_in_a_task_is_left_as_text(place: Place) -> None:
    assert prompt(place, "/task_manager {{request}} and {task}").endswith("Task: {{request}} and {task}")
