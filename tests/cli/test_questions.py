"""Questions on a terminal: what stands below them, what a typed letter does, and how to answer from a pipe."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.hints import wrong
from cli.support import Place, place_in
from cli.terminals import terminal
from models.wire_server import HELLO, Said, WireServer, serving
from navigator_kernel.cli.chat.question import OpenQuestion, command_for, open_question
from navigator_kernel.cli.output import width
from navigator_kernel.cli.project import App
from navigator_kernel.text import Language
from navigator_kernel.values.request import PendingApproval, PendingQuestion, Session
from navigator_kernel.values.workflow import PLAN, REPEAT
from person_state import accept
from skill_repositories import skill_text
from specialist.turns import of_phase_two, says, settings, song
from workflows.project import project_in

pytestmark = pytest.mark.sample(1)

TWO = "run shout-loud on @notes.txt and then count the terms in it"
FAILS = "run shout-loud on @notes.txt and then run fail-hard on it"
ONCE = "[y]es  [n]o  [?]"
LASTING = "[y]es  [a]lways this session  [n]o  [?]"
CALL = "[y]es  [a]lways this session  [n]o  [e]dit  [?]"
OPEN = "the question stays open; to answer it: "


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return Place(root=project_in(tmp_path))


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture
def writer(tmp_path: Path, home: Path, server: WireServer) -> Place:
    """A project with a prompt skill, and a model that carries it out."""
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings(server))
    place = place_in(tmp_path)
    place.write({".claude/skills/song-writer/SKILL.md": song(), "notes.txt": "one\ntwo\nthree\n"})
    accept(place.root, "song-writer")
    server.requests.clear()
    return place


def edit(new: str = "2") -> Said:
    return Said(calls=[("edit", f'{{"file_path": "notes.txt", "old_string": "two", "new_string": "{new}"}}')])


# What is asked, and its letters


@pytest.mark.parametrize(
    ("message", "letters", "answer", "result"),
    [
        ("!echo hi-$((1+1))", LASTING, "y", "hi-2"),
        (TWO, "[y]es  [n]o  [e]dit  [?]", "y", "words: 3"),
        ("/word-count", "[?]  Ctrl-D: answer later", "one two", "2 words"),
        (FAILS, "[y]es  [n]o  [e]dit  [?]", "n", "not done, as you asked"),
    ],
    ids=["command", "plan", "parameter", "plan refused"],
)
def test_ask_waits_for_the_answer_to_a_question_below_one_line_of_letters(
    here: Place, message: str, letters: str, answer: str, result: str
) -> None:
    with terminal(here, "ask", message, columns=200) as screen:
        shown = screen.wait_for("\r\n> ")
        screen.type(f"{answer}\n")
        rest = screen.rest()
    assert shown.endswith(f"\r\n{letters}\r\n> ")
    assert "navigator ask" not in shown + rest and "[State Update]" not in shown
    assert result in rest and screen.process.returncode == 0


def test_a_failed_step_is_asked_about_until_the_person_stops(here: Place) -> None:
    with terminal(here, "ask", FAILS) as screen:
        screen.wait_for("[e]dit")
        screen.type("y\n")
        assert "try it again? (yes/no)\r\n" in screen.wait_for(ONCE)
        screen.type("n\n")
        assert (screen.rest() != "", screen.process.returncode) == (True, 0)


def test_a_workflow_command_waits_too(here: Place) -> None:
    token = here.json("ask", FAILS)["workflow"]["token"]
    with terminal(here, "workflow", "approve", token) as screen:
        screen.wait_for(ONCE)
        screen.type("n\n")
        assert (screen.rest() != "", screen.process.returncode) == (True, 0)


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize(
    ("message", "letters", "answer", "result"),
    [
        ("make a report", ONCE, "\n", "csv-report needs"),
        ("make a report", ONCE, "n\n", "not done"),
        ("could you check my text", "1-3  [n]one  [?]", "1\n", "no Markdown file"),
    ],
    ids=["Enter", "n", "number"],
)
def test_a_choice_of_skills_is_answered_below_it(
    tmp_path: Path, message: str, letters: str, answer: str, result: str
) -> None:
    with terminal(place_in(tmp_path), "ask", message) as screen:
        assert screen.wait_for("\r\n> ").endswith(f"\r\n{letters}\r\n> ")
        screen.type(answer)
        screen.wait_for(result)


def waiting(approval: PendingApproval) -> Session:
    return Session(id="s", approval=approval)


def asking(options: tuple[str, ...] = (), rest: str = "") -> Session:
    return Session(id="s", question=PendingQuestion(original="x", question="?", options=options, rest=rest))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_line_of_letters_is_wider_than_a_screen_and_no_letter_is_without_a_meaning(language: Language) -> None:
    sessions = [
        waiting(PendingApproval(packets=(), subject="shell:x@sha256:1")),
        waiting(PendingApproval(packets=(), subject=PLAN, workflow="run-1")),
        waiting(PendingApproval(packets=(), subject=REPEAT, workflow="run-1")),
        asking(("one",)),
        asking(("one", "two", "three")),
        asking(rest="x"),
        asking(),
    ]
    questions = [open_question(session, language) for session in sessions]
    words = ("run", "scripts", "read", "edit:docs/", "packages:a==1,b==2", "fetch:example.org:443")
    questions += [OpenQuestion(kind="call", letters="yane", language=language, right=word) for word in words]
    for question in questions:
        assert question is not None
        assert width(question.line) < 80 and question.line.count("[?]") == 1
        assert all(width(line) < 80 for line in question.legend)
        assert len(question.legend) >= len(question.letters) + 1


def test_a_consent_that_cannot_last_has_no_letter_for_the_session() -> None:
    question = open_question(waiting(PendingApproval(packets=(), subject="script:x@sha256:1")), "en")
    assert question is not None and question.line == ONCE
    assert question.message("a") == ""


# Letters


def test_a_question_mark_explains_the_letters_without_a_turn_and_enter_answers_nothing(
    writer: Place, server: WireServer
) -> None:
    says(server, edit(), HELLO)
    with terminal(writer, "ask", "/song-writer change notes.txt") as screen:
        shown = screen.wait_for(CALL)
        asked = len(server.requests)
        assert "yes, this once" not in shown and "Continue?" not in shown
        for typed in ("?", "？", "help"):
            screen.type(f"{typed}\n")
            legend = screen.wait_for(CALL)
            assert "\r\na       yes, for this session, reading and ordinary changes below the project\r\n" in legend
        screen.type("\n")
        screen.wait_for(CALL)
        assert (len(server.requests), (writer.root / "notes.txt").read_text()) == (asked, "one\ntwo\nthree\n")
        screen.type("y\n")
        assert HELLO.text in screen.rest()
    assert (writer.root / "notes.txt").read_text() == "one\n2\nthree\n"


@pytest.mark.requirement("JIT-12")
def test_e_asks_for_the_reason_and_the_model_gets_it(writer: Place, server: WireServer) -> None:
    says(server, edit(), edit("zwei"), HELLO)
    with terminal(writer, "ask", "/song-writer change notes.txt") as screen:
        screen.wait_for(CALL)
        screen.type("e\n")
        screen.wait_for("why not, or what instead: ")
        screen.type("in German\n")
        assert "+zwei" in screen.wait_for(CALL)
        screen.type("y\n")
        screen.rest()
    answers = [one["content"] for one in of_phase_two(server)[1]["messages"] if one["role"] == "tool"]
    assert json.loads(answers[-1])["error"].endswith("the person's reason: in German")
    assert (writer.root / "notes.txt").read_text() == "one\nzwei\nthree\n"


def test_a_for_a_command_covers_the_session(here: Place) -> None:
    with terminal(here, "ask", "--session", "s", "!echo hi") as screen:
        screen.wait_for(LASTING)
        screen.type("a\n")
        assert "hi" in screen.rest()
    assert here.run("ask", "--session", "s", "!echo hi").code == 0
    assert here.run("ask", "--session", "t", "!echo hi").code == 9


def test_an_answer_in_letters_leaves_the_language_as_it_is(here: Place) -> None:
    with terminal(here, "ask", "用 shout-loud 处理 @notes.txt，然后统计结果的词条数") as screen:
        screen.wait_for("[y] 是  [n] 否  [e] 修改  [?]")
        screen.type("n\n")
        assert "已取消" in screen.rest()


# An interrupted run


@pytest.fixture
def interrupted(writer: Place, server: WireServer) -> Place:
    """A project in whose session `s` a process was killed while a model was working."""
    killed = threading.Event()

    def answer(_messages: object, _number: int) -> Said:
        if len(of_phase_two(server)) == 1:
            return Said(calls=[("read", '{"file_path": "notes.txt"}')])
        killed.wait(60)
        return HELLO

    server.scripts["worker"] = answer
    with terminal(writer, "ask", "--session", "s", "/song-writer read @notes.txt") as screen:
        end = time.monotonic() + 60
        while len(of_phase_two(server)) < 2:
            assert time.monotonic() < end, screen.seen
            time.sleep(0.02)
        os.killpg(screen.process.pid, signal.SIGKILL)
        screen.process.wait()
    killed.set()
    return writer


@pytest.mark.parametrize(("letter", "result"), [("n", "not done, as you asked"), ("y", HELLO.text)])
def test_an_interrupted_run_is_asked_about_before_another_message_is_sent(
    interrupted: Place, letter: str, result: str
) -> None:
    with terminal(interrupted, "ask", "--session", "s", "/word-count one two") as screen:
        shown = screen.wait_for(ONCE)
        assert "this was interrupted when its process was stopped: /song-writer read" in shown
        screen.type(f"{letter}\n")
        rest = screen.rest()
    assert rest.index(result) < rest.index("2 words")


def test_the_answer_to_an_interrupted_run_is_not_asked_for_again(interrupted: Place) -> None:
    with terminal(interrupted, "ask", "--session", "s", "no") as screen:
        shown = screen.rest()
    assert ONCE not in shown and "not done, as you asked" in shown


# Leaving


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_question_stays_open_when_the_person_leaves_and_the_command_answers_it(here: Place, language: str) -> None:
    with terminal(here, "--language", language, "ask", "!echo hi-$((1+1))", columns=200) as screen:
        screen.wait_for("> ")
        screen.type("\x04")
        shown = screen.rest()
    assert screen.process.wait() == 9
    hint = re.search(r"navigator (ask --session \S+ yes)", shown)
    assert hint is not None
    assert "hi-2" in here.said(*shlex.split(hint[1]))


def test_ctrl_c_at_a_question_ends_with_130_and_the_same_line(here: Place) -> None:
    with terminal(here, "ask", "--session", "s", "!echo hi") as screen:
        screen.wait_for("> ")
        assert f"{OPEN}navigator ask --session s yes" in screen.stop()
    assert screen.process.returncode == 130


def test_an_answered_question_is_not_open_in_the_stored_session(here: Place) -> None:
    """A yes counts once: the session must not be left as it was while its question waited."""
    with terminal(here, "ask", "--session", "s", "!echo hi") as screen:
        screen.wait_for("> ")
        screen.type("y\n")
        screen.rest()
    with terminal(here, "ask", "!echo ho") as screen:
        screen.wait_for("> ")
        screen.type("y\n")
        screen.rest()
    for session in here.json("session", "list")["sessions"]:
        again = here.json("ask", "--session", session["id"], "yes")
        assert again["report"]["data"].get("stdout") is None, again["report"]


@pytest.mark.parametrize("message", ["!echo hi", TWO, FAILS, "/word-count", "make a report"])
def test_from_a_pipe_the_hint_is_the_command_that_answers(here: Place, message: str) -> None:
    done = here.run("ask", message)
    assert done.code == 9
    hint = re.search(r"^to answer: navigator (.*)$", done.err, re.MULTILINE)
    assert hint is not None and ONCE not in done.out + done.err
    words = shlex.split(hint[1])
    answered = here.run(*words[:-1], "one two" if words[-1] == "…" else words[-1])
    assert answered.code in {0, 1} or "csv-report needs" in answered.out or "needs your approval" in answered.out


@pytest.mark.parametrize(
    ("session", "answer"),
    [
        (waiting(PendingApproval(packets=(), subject="x")), "yes"),
        (asking(("one",)), "yes"),
        (asking(("one", "two")), "1"),
        (asking(), "…"),
    ],
    ids=["approval", "one", "several", "parameter"],
)
def test_the_command_is_quoted_for_a_shell(session: Session, answer: str) -> None:
    rights = App(allow=("run", "edit:it's/"), read_only=True).rights
    words = shlex.split(command_for(session, "/a b/it's", rights))
    given = ["--allow", "run,edit:it's/", "--read-only"]
    assert words == ["navigator", "--root", "/a b/it's", "ask", "--session", "s", *given, answer]
    assert wrong(words[1:]) == ""


# Long questions


LONG = "".join(f"line {number} of the new text\\n" for number in range(400))


@pytest.mark.parametrize("words", [("ask", "/song-writer change notes.txt"), ("chat",)], ids=["ask", "chat"])
def test_a_question_longer_than_the_screen_goes_through_the_pager_in_full(
    writer: Place, server: WireServer, words: tuple[str, ...]
) -> None:
    says(server, edit(LONG), HELLO)
    pager = writer.root.parent / "pager"
    pager.write_text('#!/bin/sh\necho "[pager]"\ncat\n')
    pager.chmod(0o755)
    with terminal(writer, *words, env={"TERM": "xterm", "PAGER": str(pager)}, columns=120) as screen:
        if words == ("chat",):
            screen.wait_for("> ")
            screen.type("/song-writer change notes.txt\n")
        shown = screen.wait_for(CALL).replace("\r\n", "\n")
    assert "[pager]" in shown
    assert all(f"+line {number} of the new text\n" in shown for number in range(400))
    after = shown.rpartition("+line 399 of the new text\n")[2]
    assert re.search(r"let the skill song-writer change notes\.txt \(4\d\d lines, shown above\)\n", after)


def test_a_long_question_is_printed_whole_in_a_pipe(writer: Place, server: WireServer) -> None:
    says(server, edit(LONG), HELLO)
    done = writer.run("ask", "/song-writer change notes.txt")
    assert (done.code, done.out.count("of the new text\n") >= 400) == (9, True)


# Chat


def test_chat_prints_no_hint_that_is_meant_for_the_shell(here: Place) -> None:
    here.write({".claude/skills/plain-prompt/SKILL.md": skill_text("plain-prompt", "Says how to write plainly")})
    typed = (
        "!echo hi",
        "?",
        "n",
        TWO,
        "n",
        "/count-terms",
        "one two",
        "/plain-prompt x",
        "hello there",
        "/model",
        "/help",
    )
    with terminal(here, "chat", columns=200) as screen:
        screen.wait_for("> ")
        shown = ""
        for line in typed:
            screen.type(f"{line}\n")
            shown += screen.wait_for("\r\n> ")
        screen.type("!echo hi\n")
        last = screen.wait_for("\r\n> ")
        screen.type("\x04")
        left = screen.rest()
    assert re.findall(r".{12} navigator \w+", shown + last) == [
        "(in a shell) navigator host",
        "(in a shell) navigator ask",
    ]
    assert last.endswith(f"\r\n{LASTING}\r\n> ")
    assert "/quit            leave" in shown
    assert f"{OPEN}navigator ask --session " in left


def test_a_hint_of_an_error_is_marked_as_one_for_a_shell_in_chat(here: Place) -> None:
    here.said("skill", "disable", "count-terms")
    done = here.run("chat", stdin="/count-terms x\n")
    assert "(in a shell) navigator skill enable count-terms" in done.out + done.err


def test_an_open_parameter_in_a_pipe_of_chat_has_no_letters(here: Place) -> None:
    done = here.run("chat", stdin="/word-count\none two\n")
    assert done.code == 0 and "navigator ask" not in done.err and "[?]" not in done.err
