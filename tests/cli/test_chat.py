"""A conversation, from a pipe and on a terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.support import SOURCE, Place, place_in
from cli.terminals import terminal
from tables import cases

pytestmark = pytest.mark.sample(1)


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


def replies(place: Place, typed: str) -> list[dict[str, Any]]:
    """The replies of a conversation from a pipe."""
    found: list[dict[str, Any]] = place.run("chat", "--json", stdin=typed).document["replies"]
    return found


@pytest.mark.wide
def test_two_turns_from_a_pipe(here: Place) -> None:
    done = here.run("chat", stdin="/code-review x\n/word-count one two three\n")
    assert (done.code, "code-review" in done.out, "3 words" in done.out) == (0, True, True)


@pytest.mark.wide
def test_a_conversation_is_one_json_document(here: Place) -> None:
    answers = here.json("chat", stdin="/word-count x\nwhat can you do?\n")
    assert [reply["report"]["state"] for reply in answers["replies"]] == ["success", "success"]
    assert {reply["session"] for reply in answers["replies"]} == {answers["session"]}


@pytest.mark.parametrize("script", ["chat.py", ""])
def test_help_shows_the_quit_command_and_the_path_syntax(here: Place, script: str) -> None:
    if script:
        done = replace(here, program=(here.program[0], str(SOURCE / "bin" / script))).run(stdin="/help\n")
    else:
        done = here.run("chat", stdin="/help\n")
    assert (done.code, "/quit" in done.out, "@path" in done.out) == (0, True, True)


@cases("typed, code")
def test_the_exit_code_from_a_pipe_is_the_last_turns(here: Place, typed: str, code: int) -> None:
    assert here.run("chat", stdin=typed).code == code


@pytest.mark.requirement("SEN-2")
def test_a_question_is_answered_by_the_next_line(here: Place) -> None:
    answers = replies(here, "/word-count\nto be or not to be\n")
    assert [reply["report"]["state"] for reply in answers] == ["pending", "success"]
    assert answers[1]["report"]["data"]["words"] == 6


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize(
    ("answer", "made"), [("yes", True), ("是", True), ("no", False), ("否", False), ("maybe", False)]
)
def test_a_shell_command_runs_after_a_yes_only(here: Place, answer: str, made: bool) -> None:
    done = here.run("chat", stdin=f"!echo made-$((40 + 2))\n{answer}\n")
    assert ("made-42" in done.out) is made


@pytest.mark.wide
@pytest.mark.requirement("SEN-7")
def test_follow_ups_go_back_until_they_are_released(here: Place) -> None:
    answers = replies(here, "/code-review x\nand again\nstop\nand again\n")
    assert [reply["route"]["entity"] for reply in answers] == ["code-review", "code-review", None, None]


@pytest.mark.parametrize(
    "typed", ["/word-count one \\\ntwo\n", '"""\n/word-count\none\ntwo\n"""\n', '"""\n/word-count\none\ntwo\n']
)
def test_a_message_may_have_several_lines(here: Place, typed: str) -> None:
    answers = replies(here, typed)
    assert [reply["report"]["data"].get("words") for reply in answers] == [2]


@pytest.mark.parametrize(
    ("word", "shown"),
    [("/skills", "Counts words, characters"), ("/why", "why        word-count: written as an instruction")],
)
def test_a_chat_accepts_its_own_commands(here: Place, word: str, shown: str) -> None:
    assert shown not in here.run("chat", stdin="/word-count x\n").out
    done = here.run("chat", stdin=f"/word-count x\n{word}\n")
    assert (done.code, shown in done.out) == (0, True)


@pytest.mark.wide
def test_an_error_does_not_end_the_conversation(here: Place) -> None:
    (here.root / "src").mkdir()
    answers = replies(here, "see @src/\n/nope\n/word-count x\n")
    assert answers[-1]["report"]["state"] == "success"


def test_a_shell_command_starts_in_the_project_and_cannot_change_it(here: Place) -> None:
    (here.root / "notes.txt").write_text("kept\n")
    done = here.run("chat", stdin="!ls; echo lost > notes.txt\nyes\n")
    assert "notes.txt" in done.out and (here.root / "notes.txt").read_text() == "kept\n"


def test_what_a_shell_command_says_of_errors_is_shown(here: Place) -> None:
    done = here.run("chat", stdin="!echo warn >&2; echo fine\nyes\n")
    assert "fine\n" in done.out and "warn\n" in done.out


def test_skills_are_listed_shortly_and_found_by_words(here: Place) -> None:
    none = here.run("chat", stdin="/skills zzzzqqq\n")
    assert none.out + none.err == "no skill is found by these words; /skills lists all\n"
    every, some = here.run("chat", stdin="/skills\n").out, here.run("chat", stdin="/skills count words\n").out
    assert "code-review" in every and "word-count" in every
    assert "word-count" in some and "code-review" not in some


@cases("typed, completed")
def test_tab_completes_a_skill_a_workflow_or_a_file(here: Place, typed: str, completed: str) -> None:
    (here.root / "notes.txt").write_text("a\n")
    for name in ("old data.csv", "a.txt", "five.txt", "five more.txt"):
        (here.root / name).write_text("a\n")
    (here.root / "mybox" / "workflows").mkdir(parents=True)
    (here.root / "mybox" / "workflows" / "weekly.md").write_text("a\n")
    (here.root / "sub" / "inner").mkdir(parents=True)
    with terminal(here, "chat") as screen:
        screen.wait_for("> ")
        screen.type(f"{typed}\t")
        screen.wait_for(completed)
        screen.type("\x15")
        assert screen.end() == 0


def test_a_conversation_that_is_taken_up_again_shows_what_waits(here: Place) -> None:
    here.run("chat", "--session", "s", stdin="!echo made\n")
    with terminal(here, "chat", "--session", "s") as screen:
        screen.wait_for("echo made")
        screen.wait_for("[y]es")
