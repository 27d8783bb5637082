"""A conversation continues in the next process: questions, answers, follow-ups, failures."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, place_in
from person_state import state_of

pytestmark = pytest.mark.sample(1)

TASK = """\
---
name: task_manager
description: 创建任务，记录待办事项（用户要创建任务、添加待办时使用）
examples: [创建任务, 新建一个任务]
required_params:
  - {name: content, prompt: 任务内容是什么, validation: not_empty}
---
## System Prompt

Makes a task.

## User Prompt Template

{{content}} | {{request}}
"""
FAILS = """\
---
name: always-fails
description: paints the fence in a colour
examples: [paint the fence]
command: python ${SKILL_ROOT}/run.py
---
Fails.
"""


@pytest.fixture
def here(tmp_path: Path) -> Place:
    place = place_in(tmp_path)
    place.write(
        {
            ".claude/skills/task_manager/SKILL.md": TASK,
            ".claude/skills/always-fails/SKILL.md": FAILS,
            ".claude/skills/always-fails/run.py": "raise SystemExit(3)\n",
        }
    )
    return place


def ask(here: Place, *words: str, session: str = "s") -> Any:
    return here.json("ask", "--session", session, *words)


def history(here: Place, session: str = "s") -> list[str]:
    return [entry["text"] for entry in here.json("session", "show", session)["history"]]


def digest(here: Place, session: str = "s") -> str:
    return hashlib.sha256(json.dumps(history(here, session)).encode()).hexdigest()


@pytest.mark.wide
@pytest.mark.requirement("RTE-29", "RTE-31")
def test_an_answer_and_the_message_it_answers_are_worked_on_together(here: Place) -> None:
    asked = ask(here, "创建任务")
    assert (asked["report"]["state"], asked["report"]["data"]["required"]) == ("pending", ["content"])
    assert "任务内容是什么" in asked["report"]["summary"]
    told = ask(here, "明天下午3点开会")
    assert told["report"]["state"] == "success"
    prompt = told["report"]["data"]["prompt"]
    assert "明天下午3点开会 | 创建任务 明天下午3点开会" in prompt


@pytest.mark.wide
@pytest.mark.requirement("RTE-30")
def test_the_history_contains_the_merged_request_only_and_the_question_leaves_it_unchanged(here: Place) -> None:
    ask(here, "/code-review x = 1")
    before = digest(here)
    ask(here, "创建任务")
    assert digest(here) == before
    ask(here, "明天下午3点开会")
    assert history(here)[2] == "创建任务 明天下午3点开会"
    assert not any("任务内容是什么" in text for text in history(here))


@pytest.mark.wide
def test_an_explicit_command_is_not_taken_as_an_answer(here: Place) -> None:
    ask(here, "创建任务")
    assert ask(here, "/word-count one two")["report"]["data"]["words"] == 2
    assert history(here)[0] == "/word-count one two"


@pytest.mark.wide
def test_a_question_of_yesterday_is_no_longer_waiting(here: Place) -> None:
    ask(here, "创建任务")
    file = state_of(here.root) / "sessions.sqlite"
    with sqlite3.connect(file) as database:
        state = json.loads(database.execute("SELECT state FROM sessions").fetchone()[0])
        state["question"]["asked_at"] = "2020-01-01T00:00:00.000Z"
        database.execute("UPDATE sessions SET state = ?", (json.dumps(state),))
    database.close()
    assert ask(here, "明天下午3点开会")["report"]["data"]["reason"] == "no_model"


@pytest.mark.wide
def test_without_a_session_a_question_names_the_one_to_answer_in(here: Place) -> None:
    asked = here.json("ask", "创建任务")
    told = here.json("ask", "--session", asked["resume"], "写报告")
    assert told["report"]["state"] == "success"


def test_a_turn_that_waits_for_nothing_is_not_kept_without_a_session(here: Place) -> None:
    here.json("ask", "/code-review x = 1")
    assert here.json("session", "list")["sessions"] == []


@pytest.mark.wide
@pytest.mark.requirement("STK-1", "SEN-7")
def test_a_follow_up_in_another_process_goes_to_the_same_skill(here: Place) -> None:
    ask(here, "/word-count one two")
    assert ask(here, "again: one two three")["report"]["data"]["words"] == 3


@pytest.mark.wide
@pytest.mark.requirement("STK-2")
@pytest.mark.parametrize("word", ["停止", "切换任务", "我来处理", "stop", "switch task", "I will handle it"])
def test_a_word_of_interruption_frees_the_session(here: Place, word: str) -> None:
    ask(here, "/word-count one two")
    assert ask(here, word)["report"]["state"] == "success"
    assert ask(here, "again: one two three")["route"]["kind"] == "direct"


@pytest.mark.requirement("SAF-5")
def test_after_two_failures_nothing_is_tried_again_until_the_person_says_what_to_change(here: Place) -> None:
    for _ in range(2):
        assert ask(here, "--yes", "paint the fence")["report"]["state"] == "error"
    asked = ask(here, "--yes", "paint the fence")
    assert (asked["report"]["state"], asked["reports"][0]["agent"]) == ("pending", "kernel")
    assert "two failures in a row" in asked["report"]["summary"]


@pytest.mark.wide
@pytest.mark.requirement("SAF-5")
def test_after_two_failures_a_message_that_says_something_new_is_done(here: Place) -> None:
    for _ in range(2):
        ask(here, "--yes", "paint the fence")
    assert ask(here, "count words of this: hello world")["report"]["data"]["words"] == 2
    for _ in range(2):
        ask(here, "--yes", "paint the fence")
    assert ask(here, "--yes", "paint the fence red instead")["report"]["state"] == "error"


@pytest.mark.wide
def test_an_explicit_command_runs_after_two_failures(here: Place) -> None:
    for _ in range(2):
        ask(here, "--yes", "paint the fence")
    assert ask(here, "/word-count one")["report"]["state"] == "success"


def test_the_name_of_a_session_is_checked(here: Place) -> None:
    done = here.run("ask", "--session", "../evil", "hello")
    assert done.code == 2
    assert not (here.root.parent / "evil").exists()


def test_a_session_is_exported_as_it_was_said(here: Place, tmp_path: Path) -> None:
    ask(here, "/word-count one two")
    target = tmp_path / "said.jsonl"
    here.said("session", "export", "s", str(target))
    entries = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    assert (entries[0]["role"], entries[0]["text"]) == ("user", "/word-count one two")
    assert here.run("session", "export", "s", str(target)).code == 3


@pytest.mark.wide
def test_a_deleted_session_is_gone(here: Place) -> None:
    ask(here, "/word-count one two")
    here.said("session", "delete", "s")
    assert here.run("session", "show", "s").code == 4
