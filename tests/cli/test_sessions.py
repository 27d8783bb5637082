"""A conversation continues in the next process: questions, answers, follow-ups, failures."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.support import LIMIT, Place, environment, place_in
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.sessions import SqliteSessions
from navigator_kernel.values.request import PendingQuestion, Session
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


def test_a_session_that_waits_is_shown_with_its_message_and_its_question(here: Place) -> None:
    ask(here, "创建任务")
    shown = here.run("session", "show", "s")
    assert shown.out.split("\n")[:2] == ["> 创建任务", "  task_manager 需要：任务内容是什么"]
    assert 'to answer: navigator ask --session s "…"' in shown.err
    waits = here.json("session", "show", "s")["waits"]
    assert (waits["message"], waits["question"]) == ("创建任务", "task_manager 需要：任务内容是什么")
    ask(here, "买牛奶")
    assert here.json("session", "show", "s")["waits"] is None


@pytest.mark.wide
@pytest.mark.requirement("RTE-29", "RTE-31")
def test_an_answer_and_the_message_it_answers_are_worked_on_together(here: Place) -> None:
    asked = ask(here, "创建任务")
    assert (asked["report"]["state"], asked["report"]["data"]["required"]) == ("pending", ["content"])
    assert "任务内容是什么" in asked["report"]["summary"]
    told = ask(here, "明天下午3点开会", "--show-prompt")
    assert told["report"]["state"] == "success"
    prompt = told["report"]["raw"]
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
    assert told["report"]["data"]["skill"] == "task_manager"


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


def started(here: Place, *words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*here.program, *words], cwd=here.root, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


def test_six_messages_to_one_session_at_once_are_all_answered_and_kept(here: Place) -> None:
    texts = [f"/word-count {number} words" for number in range(6)]
    running = [started(here, "ask", "--session", "s", text) for text in texts]
    ends = [(process.communicate(timeout=LIMIT), process.returncode) for process in running]
    assert [code for _, code in ends] == [0] * 6, ends
    kept = history(here)
    assert sorted(kept[::2]) == texts and all("2 words" in answer for answer in kept[1::2])


def test_a_chat_goes_on_after_another_process_has_continued_its_session(here: Place) -> None:
    with started(here, "chat", "--session", "s") as chat:
        assert chat.stdin is not None and chat.stdout is not None
        chat.stdin.write("/word-count one\n")
        chat.stdin.flush()
        while len(here.json("session", "list")["sessions"]) == 0:
            assert chat.poll() is None
        here.said("ask", "--session", "s", "/word-count two words")
        _, err = chat.communicate("/word-count and three words\n", timeout=LIMIT)
    assert (chat.returncode, err) == (0, "")
    assert history(here)[::2] == ["/word-count one", "/word-count two words", "/word-count and three words"]


@pytest.mark.requirement("X-43")
def test_a_yes_does_not_answer_a_question_that_was_asked_after_it(here: Place) -> None:
    folder = state_of(here.root)
    store = SqliteSessions(folder / "sessions.sqlite", FolderWriter([folder]), SystemClock())
    question = PendingQuestion(original="make a task", question="Shall it run?", options=("task_manager",), rounds=1)

    async def asked_meanwhile() -> subprocess.Popen[str]:
        async with store.queue.turn("s", print):
            process = started(here, "ask", "--session", "s", "yes")
            while len(list((folder / "turns").iterdir())) < 3:
                assert process.poll() is None
                await asyncio.sleep(0.02)
            store.save(Session(id="s", turn=1, question=question))
        return process

    here.said("ask", "/word-count makes the state")
    with asyncio.run(asked_meanwhile()) as process:
        _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 5 and "session 's' was continued meanwhile" in err
    assert store.load("s").question == question
