"""A conversation on a pseudo-terminal: what Ctrl-C stops, what Ctrl-D ends, and answers to questions."""

from __future__ import annotations

import re
import signal
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from cli.support import Place, below, place_in, type_a
from cli.terminals import LIMIT, Terminal
from cli.terminals import terminal as opened
from person_state import state_of
from processes import filled_below, working_in
from tables import cases

pytestmark = pytest.mark.sample(1)

SLEEP = """\
import os, pathlib, subprocess, time
child = subprocess.Popen(["sleep", "300"], start_new_session=True)
pathlib.Path("pids.part").write_text(f"{os.getpid()} {child.pid}")
os.rename("pids.part", "pids")
time.sleep(300)
"""


def terminal(place: Place, *words: str) -> AbstractContextManager[Terminal]:
    return opened(place, *words, "chat")


@pytest.fixture
def here(tmp_path: Path) -> Place:
    """A project with a trusted skill that sleeps for minutes, as does the process that it starts."""
    place = place_in(tmp_path)
    place.write(below(".claude/skills/dozer", type_a("dozer", SLEEP)))
    place.said("skill", "trust", "dozer")
    return place


def processes(place: Place) -> list[int]:
    """The ids of the skill's process and of its child, once both run."""
    end = time.monotonic() + LIMIT
    while not (found := filled_below(place.root, "pids")):
        assert time.monotonic() < end
        time.sleep(0.02)
    pids = sorted(working_in(found[0].parent))  # in a sandbox, `pids` may hold the numbers of another namespace
    assert len(pids) >= 2
    found[0].unlink()
    return pids


def all_gone(pids: list[int]) -> bool:
    end = time.monotonic() + 5
    while any(alive(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def alive(pid: int) -> bool:
    try:
        return re.search(r"^State:\s+[ZX]", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE) is None
    except OSError:
        return False


def test_the_prompt_appears_and_ctrl_d_leaves_with_0(here: Place) -> None:
    with terminal(here) as screen:
        screen.wait_for("> ")
        assert screen.end() == 0


@pytest.mark.wide
@pytest.mark.requirement("STA-3", "X-44", "X-41")
def test_the_reminder_is_shown_once_a_session_and_the_sections_after_each_answer(here: Place) -> None:
    with terminal(here) as screen:
        screen.wait_for("> ")
        screen.type("/word-count one\n")
        first = screen.wait_for("\n> ")
        screen.type("/word-count one two\n")
        second = screen.wait_for("\n> ")
        assert [told.count("docs/skills-mapping.md") for told in (first, second)] == [1, 0]
        assert [told.count("[Logic Trace] ") for told in (first, second)] == [1, 1]
        assert screen.end() == 0


def test_ctrl_d_leaves_with_0_after_a_failure(here: Place) -> None:
    with terminal(here) as screen:
        screen.wait_for("> ")
        screen.type("/no-such-skill\n")
        screen.wait_for("no skill is called")
        screen.wait_for("> ")
        assert screen.end() == 0


def test_ctrl_c_cancels_a_turn_with_all_its_processes_and_the_next_message_works(here: Place) -> None:
    with terminal(here) as screen:
        screen.wait_for("> ")
        screen.type("/dozer x\n")
        pids = processes(here)
        assert all(map(alive, pids))
        screen.type("\x03")
        screen.wait_for("stopped")
        assert all_gone(pids)
        assert [run[-1]["type"] for run in here.runs()] == ["RunCancelled"]
        screen.wait_for("> ")
        screen.type("/word-count one two\n")
        screen.wait_for("2 words")
        screen.wait_for("> ")
        assert screen.end() == 0


@pytest.mark.wide
def test_ctrl_c_can_stop_one_turn_after_another(here: Place) -> None:
    with terminal(here) as screen:
        for _ in range(3):
            screen.wait_for("> ")
            screen.type("/dozer x\n")
            pids = processes(here)
            screen.type("\x03")
            screen.wait_for("stopped")
            assert all_gone(pids)
        screen.wait_for("> ")
        assert screen.end() == 0
    assert [run[-1]["type"] for run in here.runs()] == ["RunCancelled"] * 3


@pytest.mark.wide
def test_a_turn_that_was_stopped_leaves_the_conversation_as_it_was(here: Place) -> None:
    with terminal(here) as screen:
        screen.wait_for("> ")
        screen.type("/word-count one two\n")
        screen.wait_for("2 words")
        screen.wait_for("> ")
        screen.type("/dozer x\n")
        processes(here)
        screen.type("\x03")
        screen.wait_for("stopped")
        screen.wait_for("> ")
        screen.type("again\n")
        screen.wait_for("2 words")


@pytest.mark.wide
def test_ctrl_c_in_the_middle_of_a_message_drops_the_message(here: Place) -> None:
    with terminal(here) as screen:
        screen.wait_for("> ")
        screen.type("/word-count one \\\n")
        screen.wait_for(". ")
        screen.interrupt()
        screen.type('"""\n')
        screen.wait_for(". ")
        screen.type("/word-count one\n")
        screen.wait_for(". ")
        screen.interrupt()
        screen.type("/word-count one two three\n")
        assert "1 word," not in screen.wait_for("3 words")
        screen.wait_for("> ")
        assert screen.end() == 0


@pytest.mark.wide
def test_a_running_skill_is_shown(here: Place) -> None:
    with terminal(here) as screen:
        screen.wait_for("> ")
        screen.type("/dozer x\n")
        screen.wait_for("… dozer")
        processes(here)
        screen.type("\x03")
        screen.wait_for("stopped")


@pytest.mark.wide
def test_the_style_that_is_asked_for_is_kept_through_a_conversation(here: Place) -> None:
    with terminal(here, "--style", "ascii") as screen:
        screen.wait_for("> ")
        screen.type("/word-count one two\n")
        screen.wait_for("[OK] 2 words")


@cases(
    "lines, states, shown", lists=True, ids=["yes", "no", "no then yes", "something else then yes", "yes to nothing"]
)
def test_a_yes_answers_only_a_question_that_is_open(here: Place, lines: str, states: list[str], shown: bool) -> None:
    replies = here.run("chat", "--json", stdin=lines).document["replies"]
    assert [reply["report"]["state"] for reply in replies][: len(states)] == states
    assert any(reply["report"]["data"].get("stdout") == "hi-there" for reply in replies) is shown


def test_a_yes_counts_once(here: Place) -> None:
    replies = here.run("chat", "--json", stdin="!echo hi\nyes\n!echo hi\n").document["replies"]
    assert [reply["report"]["state"] for reply in replies] == ["pending", "success", "pending"]


@pytest.mark.wide
def test_the_agreed_command_shows_what_it_printed(here: Place) -> None:
    done = here.run("chat", stdin="!echo hi-$((1+1))\nyes\n")
    assert (done.code, "hi-2" in done.out) == (0, True)


@pytest.mark.parametrize("word", ["/why", "/skills", "/help"])
def test_a_word_of_its_own_works_before_the_first_turn(here: Place, word: str) -> None:
    done = here.run("chat", stdin=f"{word}\n")
    assert (done.code, (done.out + done.err).strip() != "") == (0, True)


@pytest.mark.wide
@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict"])
def test_an_undecodable_line_causes_no_internal_error(here: Place, encoding: str) -> None:
    text = b"hello \xff\xfe\n/word-count one two\n"
    done = here.run("chat", stdin=text, env={"PYTHONIOENCODING": encoding})
    assert "NAVIGATOR_DEBUG" not in done.err


def test_a_damaged_record_ends_a_turn_and_not_the_conversation(here: Place) -> None:
    (state_of(here.root) / "disabled.json").write_text("{ broken")
    done = here.run("chat", stdin="hello\n/help\n")
    assert (done.code, "disabled.json" in done.err, "/quit" in done.out) == (6, True, True)


@pytest.mark.wide
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_termination_signal_also_ends_the_processes_of_a_running_skill(here: Place, number: signal.Signals) -> None:
    with terminal(here) as screen:
        screen.wait_for("> ")
        screen.type("/dozer x\n")
        pids = processes(here)
        screen.process.send_signal(number)
        assert screen.process.wait(timeout=20) == 128 + number
    assert all_gone(pids)
    assert [run[-1]["type"] for run in here.runs()] == ["RunCancelled"]
