"""A turn is the same with either engine: one contract for `run_turn` and for the state graph."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from models.wire_server import HELLO, Said, WireServer
from person_state import state_of
from specialist.turns import of_phase_two
from state_graph.conftest import ENGINES, Engine, says

pytestmark = pytest.mark.sample(1)

CREATE = Said(calls=[("task_create", json.dumps({"title": "tea", "start_time": "2026-02-01T15:00:00+00:00"}))])
DELETE = Said(calls=[("task_delete", '{"task_id": 1}')])
LOOK = Said(text="Let me look. ", calls=[("skill", '{"name": "song-writer"}')])


def rows(root: Path) -> list[Any]:
    file = state_of(root) / "planner.sqlite"
    with sqlite3.connect(file) as database:
        return database.execute("SELECT id, title FROM tasks").fetchall()


def kinds(engine: Engine) -> list[str]:
    return [event["type"] for event in engine.events]


@pytest.mark.requirement("JIT-7")
def test_a_message_without_a_skill_is_answered(engine: Engine, server: WireServer) -> None:
    says(server, HELLO)
    came = engine.say("why is the sky blue?")
    assert (came.text, came.state, came.skill) == (HELLO.text, "success", "")
    assert [tool["function"]["name"] for tool in of_phase_two(server)[0]["tools"]] == ["skill"]


@pytest.mark.requirement("JIT-7", "JIT-8", "JIT-9")
def test_a_skill_is_loaded_and_worked_on(engine: Engine, server: WireServer) -> None:
    says(server, LOOK, HELLO)
    came = engine.say("/song-writer a song about rain")
    assert (came.text, came.state) == (f"{LOOK.text}\n\n{HELLO.text}", "success")
    (first, second) = of_phase_two(server)
    assert "Rhyme every line." in first["messages"][1]["content"]
    assert second["messages"][-1]["role"] == "tool"


@pytest.mark.requirement("JIT-11")
def test_the_turns_before_are_remembered(engine: Engine, server: WireServer) -> None:
    says(server, Said(text="Hello Ann."))
    engine.say("my name is Ann, hello there")
    engine.say("/song-writer a song about my name")
    told = [(one["role"], one["content"]) for one in of_phase_two(server)[-1]["messages"]]
    assert told[1:3] == [("user", "my name is Ann, hello there"), ("assistant", "Hello Ann.")]


def test_a_tool_writes_its_row_and_the_events_are_in_order(engine: Engine, server: WireServer, root: Path) -> None:
    says(server, CREATE, Said(text="Done."))
    assert engine.say("/task_manager tea tomorrow at three").state == "success"
    assert rows(root) == [(1, "tea")]
    order = [
        "RunStarted",
        "SkillActivated",
        "ToolCallStarted",
        "ToolCallCompleted",
        "RunContent",
        "UICommand",
        "RunCompleted",
    ]
    told = kinds(engine)
    assert [kind for at, kind in enumerate(told) if kind in order and kind not in told[:at]] == order


@pytest.mark.requirement("JIT-11", "JIT-12")
def test_a_deletion_waits_for_a_yes_and_another_process_continues(
    engine: Engine, server: WireServer, root: Path
) -> None:
    says(server, CREATE, Said(text="Done."))
    engine.say("/task_manager tea tomorrow at three")
    says(server, DELETE, Said(text="Gone."))
    asked = engine.say("/task_manager delete task 1")
    assert (asked.state, rows(root)) == ("pending", [(1, "tea")]) and '{"task_id": 1}' in asked.text
    before = len(server.requests)
    came = engine.agree(yes=True)
    assert (came.text, came.state, rows(root), len(server.requests)) == ("Gone.", "success", [], before + 1)
    assert "ApprovalRequested" in kinds(engine) and "ApprovalResolved" in kinds(engine)


@pytest.mark.wide
@pytest.mark.requirement("JIT-12")
def test_a_deletion_that_is_declined_does_not_happen(engine: Engine, server: WireServer, root: Path) -> None:
    says(server, CREATE, Said(text="Done."))
    engine.say("/task_manager tea tomorrow at three")
    says(server, DELETE, Said(text="Gone."))
    engine.say("/task_manager delete task 1")
    engine.agree(yes=False)
    assert rows(root) == [(1, "tea")]
    says(server, HELLO)
    assert engine.say("/song-writer a song about tea").text == HELLO.text


def test_a_new_message_instead_of_an_answer_is_a_new_turn(engine: Engine, server: WireServer, root: Path) -> None:
    says(server, CREATE, Said(text="Done."))
    engine.say("/task_manager tea tomorrow at three")
    says(server, DELETE, Said(text="Gone."))
    engine.say("/task_manager delete task 1")
    says(server, HELLO)
    assert (engine.say("/song-writer a song about rain").text, rows(root)) == (HELLO.text, [(1, "tea")])


def test_a_script_asks_first_and_runs_then(engine: Engine, server: WireServer) -> None:
    assert engine.say("/shout-loud hello").state == "pending"
    came = engine.agree(yes=True)
    assert (came.state, came.text.strip()) == ("success", "HELLO")
    assert server.requests == []


def test_skills_that_are_named_together_are_done_one_after_another(engine: Engine, server: WireServer) -> None:
    says(server, HELLO)
    engine.say("use song-writer, task_manager about boats")
    assert [one for one in kinds(engine) if one == "SkillUsed"] == ["SkillUsed"] * 2
    assert len(of_phase_two(server)) == 2


@pytest.mark.requirement("SAF-5")
def test_a_loop_without_end_is_ended(engine: Engine, server: WireServer) -> None:
    says(server, LOOK)
    came = engine.say("/song-writer a song")
    assert (came.state, len(of_phase_two(server))) == ("partial", 11)


@pytest.mark.parametrize(("model", "state"), [("failed", "error"), ("hangs", "timeout"), ("cut", "error")])
def test_a_model_that_fails_is_one_typed_report(root: Path, server: WireServer, model: str, state: str) -> None:
    for made in ENGINES.values():
        first = 1 if model == "hangs" else 60
        engine = made(root, server, {"aliases": {"x": f"there:{model}"}, "default": f"there:{model}", "first": first})
        assert engine.say("/song-writer a song").state == state


@pytest.mark.wide
@pytest.mark.requirement("JIT-7")
def test_both_ask_the_model_for_the_same(root: Path, server: WireServer) -> None:
    """Byte for byte, except the names that the model gives its calls, and the workspace of the run."""
    asked = {}
    for name, made in ENGINES.items():
        server.requests.clear()
        engine: Engine = made(root, server, {})
        says(server, LOOK, HELLO)
        for text in ("why is the sky blue?", "/song-writer a song about rain", "/task_manager what is there to do?"):
            engine.say(text)
        bodies = (json.dumps(request.body, sort_keys=True) for request in server.requests)
        asked[name] = [re.sub(r"call_0_\d+|(?<=mybox/workspace/)[\w-]+", "", body) for body in bodies]
    assert len(asked["own"]) == 7  # one to choose a skill, then two for each turn
    assert asked["own"] == asked["langgraph"]
