"""The documents' scenario from end to end: a message, the skill, the tool, the row, the events in their order."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, place_in
from models.wire_server import Said, WireServer, serving
from person_state import state_of

ASKED = "创建一个明天下午3点的会议准备任务"
WHEN = "2026-11-23T15:00:00+08:00"
CREATE = Said(calls=[("task_create", json.dumps({"title": "会议准备", "start_time": WHEN}))])
DONE = Said(text="已为您创建任务「会议准备」，安排在明天下午3点。")
DELETE = Said(calls=[("task_delete", '{"task_id": 1}')])


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture
def here(tmp_path: Path, home: Path, server: WireServer) -> Place:
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        f'[models]\ndefault = "there:worker"\nretries = 0\n[models.providers.there]\nurl = "{server.url}"\n'
    )
    server.requests.clear()
    return place_in(tmp_path)


def says(server: WireServer, *script: Said) -> None:
    """Sets the model's answers, chosen by the number of its own answers since the person's last message."""

    def answer(messages: Sequence[Any], _number: int) -> Said:
        if "router" in str(messages[0]["content"]) or "路由" in str(messages[0]["content"]):
            return Said(text='{"skills": ["task_manager"], "direct": false}')
        last = max((at for at, one in enumerate(messages) if one["role"] == "user"), default=0)
        answered = sum(bool(one["role"] == "assistant") for one in messages[last:])
        return script[min(answered, len(script) - 1)]

    server.scripts["worker"] = answer


def rows(here: Place) -> list[tuple[Any, ...]]:
    file = state_of(here.root) / "planner.sqlite"
    with sqlite3.connect(file) as database:
        return database.execute("SELECT id, title, start_time, priority, project_id FROM tasks").fetchall()


def events(here: Place, run: str) -> list[tuple[str, dict[str, Any]]]:
    log = here.root / "mybox" / "logs" / "runs" / f"{run}.jsonl"
    return [(held["type"], held["data"]) for held in map(json.loads, log.read_text().splitlines())]


@pytest.mark.wide
@pytest.mark.requirement("JIT-8", "JIT-9", "JIT-13", "EVT-1", "EVT-2", "EVT-3", "EVT-6", "TOL-7", "TOL-12")
def test_a_task_is_created_and_its_events_come_in_order(here: Place, server: WireServer) -> None:
    says(server, CREATE, DONE)
    told = here.json("ask", "--session", "s", ASKED)
    assert (told["exit_code"], told["route"]["entity"], told["report"]["raw"]) == (0, "task_manager", DONE.text)
    ((number, title, start, priority, project),) = rows(here)
    assert (number, title, priority, project) == (1, "会议准备", 3, 1)
    assert datetime.fromisoformat(f"{start}+00:00") == datetime.fromisoformat(WHEN)
    happened = events(here, told["run"])
    kinds = [kind for kind, _ in happened]
    order = ["SkillActivated", "ToolCallStarted", "ToolCallCompleted", "RunContent", "UICommand", "RunCompleted"]
    assert [kind for at, kind in enumerate(kinds) if kind in order and kind not in kinds[:at]] == order
    assert kinds.index("UICommand") > len(kinds) - 1 - kinds[::-1].index("RunContent")
    commands = [data for kind, data in happened if kind == "UICommand"]
    assert commands[0] == {"type": "refresh", "payload": {"target": "tasks"}}
    assert [one["type"] for one in commands] == ["refresh", "toast"]


@pytest.mark.ci
@pytest.mark.requirement("JIT-12", "JIT-11", "SAF-1")
def test_a_deletion_asks_first_and_continues_in_another_process(here: Place, server: WireServer) -> None:
    says(server, CREATE, DONE)
    here.json("ask", "--session", "s", ASKED)
    says(server, DELETE, Said(text="已删除。"))
    asked = here.json("ask", "--session", "s", "删除任务 1")
    assert (asked["exit_code"], asked["report"]["state"]) == (9, "pending")
    assert "确定要删除任务 1 吗" in asked["report"]["summary"] and '{"task_id": 1}' in asked["report"]["summary"]
    assert (asked["report"]["data"]["tool"], len(rows(here))) == ("task_delete", 1)
    before = len(server.requests)
    told = here.json("ask", "--session", "s", "是")
    assert (told["exit_code"], told["report"]["raw"], rows(here)) == (0, "已删除。", [])
    assert len(server.requests) == before + 1  # the turn resumes: the model is not asked for the call again
    assert ("UICommand", {"type": "refresh", "payload": {"target": "tasks"}}) in events(here, told["run"])


@pytest.mark.ci
@pytest.mark.requirement("JIT-12")
@pytest.mark.parametrize(("answer", "state"), [("不", "success"), ("今天天气怎么样", None)])
def test_a_deletion_that_nobody_agreed_to_does_not_happen(
    here: Place, server: WireServer, answer: str, state: Any
) -> None:
    says(server, CREATE, DONE)
    here.json("ask", "--session", "s", ASKED)
    says(server, DELETE, Said(text="已删除。"))
    here.json("ask", "--session", "s", "删除任务 1")
    says(server, Said(text="好的。"))
    told = here.json("ask", "--session", "s", answer)
    assert state in {None, told["report"]["state"]}
    assert len(rows(here)) == 1


@pytest.mark.ci
@pytest.mark.requirement("SAF-8")
def test_a_secret_is_redacted_in_the_stored_session_of_a_pending_approval(here: Place, server: WireServer) -> None:
    secret = "AKIA" + "ABCDEFGHIJKLMNOP"
    says(server, CREATE, DONE)
    here.json("ask", "--session", "s", ASKED)
    says(server, with_text(DELETE, f"I saw {secret} there. "), Said(text="done"))
    assert here.json("ask", "--session", "s", "删除任务 1")["report"]["state"] == "pending"
    kept = b"".join(path.read_bytes() for path in state_of(here.root).glob("sessions.sqlite*"))
    assert (secret.encode() in kept, b"I saw [redacted]" in kept) == (False, True)


def with_text(said: Said, text: str) -> Said:
    return said._replace(text=text)


@pytest.mark.ci
def test_a_yes_is_to_these_arguments_only(here: Place, server: WireServer) -> None:
    says(server, CREATE, DONE)
    here.json("ask", "--session", "s", ASKED)
    here.json("ask", "--session", "s", "再创建一个一样的任务")
    says(server, DELETE, Said(calls=[("task_delete", '{"task_id": 2}')]), Said(text="done"))
    here.json("ask", "--session", "s", "删除任务 1")
    told = here.json("ask", "--session", "s", "是")
    assert (told["report"]["state"], [row[0] for row in rows(here)]) == ("pending", [2])


@pytest.mark.ci
@pytest.mark.requirement("JIT-5")
def test_a_tool_that_the_skill_did_not_declare_is_not_offered_and_refused(here: Place, server: WireServer) -> None:
    says(server, Said(calls=[("note_create", '{"title": "x"}')]), Said(text="done"))
    told = here.json("ask", ASKED)
    offered = {tool["function"]["name"] for tool in server.requests[-1].body["tools"]}
    assert offered == {"skill", *(f"task_{verb}" for verb in ("get", "list", "create", "update", "delete", "snooze"))}
    assert told["exit_code"] == 0
    assert "note_create" in str(server.requests[-1].body["messages"][-1]["content"])
    assert "tool:note_create" in here.run("log").out
    assert not (state_of(here.root) / "planner.sqlite").exists()


@pytest.mark.ci
@pytest.mark.requirement("JIT-5", "SAF-8")
def test_a_tool_that_the_person_denies_is_not_offered(here: Place, home: Path, server: WireServer) -> None:
    file = home / ".config" / "navigator" / "config.toml"
    file.write_text(file.read_text() + '\n[policy.skills.task_manager]\ndeny = ["tool:task_d*"]\n')
    says(server, DELETE, Said(text="no"))
    here.json("ask", ASKED)
    offered = {tool["function"]["name"] for tool in server.requests[-1].body["tools"]}
    assert "task_delete" not in offered and "task_create" in offered


@pytest.mark.ci
@pytest.mark.requirement("EVT-2")
def test_a_ui_command_in_the_text_of_a_model_is_removed_and_sends_no_event(here: Place, server: WireServer) -> None:
    text = 'Done.\n```json\n{"type": "refresh", "payload": {"target": "tasks"}}\n```\nGood.'
    says(server, Said(text=text))
    told = here.json("ask", ASKED)
    assert "refresh" not in told["report"]["raw"] and told["report"]["raw"].startswith("Done.")
    assert [kind for kind, _ in events(here, told["run"]) if kind == "UICommand"] == []


@pytest.mark.ci
def test_a_tool_that_failed_commands_nothing(here: Place, server: WireServer) -> None:
    says(server, Said(calls=[("task_update", '{"task_id": 9, "changes": {"title": "x"}}')]), Said(text="none"))
    told = here.json("ask", ASKED)
    assert [kind for kind, _ in events(here, told["run"]) if kind == "UICommand"] == []
    assert "操作失败: there is no task 9" in str(server.requests[-1].body["messages"][-1]["content"])
