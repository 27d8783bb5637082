"""How a command ends: with closed and full streams, without a home, and by a signal during a turn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.support import LIMIT, NOBODY, Done, Place, as_nobody, below, environment, open_to_nobody, place_in, type_a
from processes import filled_below
from skill_repositories import skill_text

SLEEP = """\
import os, pathlib, time
pathlib.Path("began").write_text("x")
time.sleep(300)
"""
COMMANDS = ["list", "list --json", "route hello", "ask /nosuch", "ask /nosuch --json", "nosuch --json"]
ERRORS = {">&-": "Bad file descriptor", ">/dev/full": "No space left on device"}


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


@pytest.fixture
def sleeping(tmp_path: Path) -> Place:
    """A project with a trusted skill that sleeps for minutes."""
    place = place_in(tmp_path)
    place.write(below(".claude/skills/dozer", type_a("dozer", SLEEP)))
    place.said("skill", "trust", "dozer")
    return place


def ended(place: Place, command: str, *more: str) -> Done:
    """Runs `navigator <command>` in a shell, with its redirections."""
    line = " ".join((f"exec {sys.executable} -m navigator_kernel.cli.main {command}", *more))
    done = subprocess.run(["sh", "-c", line], cwd=place.root, env=environment(), capture_output=True, timeout=LIMIT)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in out + err, err
    return Done(code=done.returncode, out=out, err=err)


@pytest.mark.requirement("X-41")
@pytest.mark.parametrize("stream", ERRORS)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_stdout_cannot_take_is_an_error_of_one_line(here: Place, command: str, stream: str) -> None:
    done = ended(here, command, stream)
    assert (done.code, done.err) == (1, f"error: cannot write to stdout: {ERRORS[stream]}\n")


@pytest.mark.parametrize("stream", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize(("command", "code"), [("list", 0), ("chat </dev/null", 0), ("nosuch", 2), ("ask ''", 2)])
def test_what_stderr_cannot_take_changes_nothing_else(here: Place, command: str, code: int, stream: str) -> None:
    done = ended(here, command, stream)
    assert (done.code, done.out) == (code, ended(here, command).out)


@pytest.mark.parametrize(("command", "code"), [("list", 0), ("ask", 2), ("chat", 0), ("route hello", 0)])
def test_a_closed_stdin_is_empty(here: Place, command: str, code: int) -> None:
    done, usual = ended(here, command, "<&-"), ended(here, command, "</dev/null")
    assert (done.code, done.err) == (code, usual.err)


def test_no_file_gets_the_number_of_a_closed_stream(here: Place) -> None:
    assert ended(here, "ask --session s /nosuch", "<&- >&- 2>&-").code == 1
    assert here.json("session", "show", "s")["turns"] == 1  # nothing was written into its database


def homeless(place: Place, home: str | None, *words: str) -> Done:
    """Runs a command with a home that its user cannot write to; None for a user who has none."""
    env = {name: value for name, value in environment().items() if not name.startswith("XDG_") and name != "HOME"}
    return as_nobody(place, *words, env=env if home is None else {**env, "HOME": home})


@pytest.fixture
def nobodys(here: Place) -> Place:
    """A project of the user without a name."""
    open_to_nobody(here.root)
    if os.geteuid() == 0:
        for path in (here.root, *here.root.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    return here


HOMES = ["/nonexistent", "/", *([None] if os.geteuid() == 0 else [])]


@pytest.mark.ci
@pytest.mark.parametrize("home", HOMES)
def test_reading_commands_work_without_a_home_that_can_be_written(nobodys: Place, home: str | None) -> None:
    assert "word-count" in homeless(nobodys, home, "list").out
    assert homeless(nobodys, home, "route", "count the words").out.startswith("skills: word-count")
    assert "word-count" in homeless(nobodys, home, "search", "count words").out
    assert homeless(nobodys, home, "skill", "verify").code == 0


@pytest.mark.ci
def test_pipelines_work_without_a_home_that_can_be_written(nobodys: Place) -> None:
    folder = nobodys.root / ".claude/skills/greet"
    (folder / "evals").mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text("greet", "Greets people. Use when someone comes in"))
    (folder / "evals" / "trigger-eval.json").write_text('[{"query": "greet people", "should_trigger": true}]')
    done = homeless(nobodys, "/nonexistent", "eval", "greet")
    assert (done.code, "1 of 1 eval passed" in done.err) == (0, True), done
    assert "routing by words only" in done.err
    assert homeless(nobodys, "/nonexistent", "skill", "validate", "--strict", ".claude/skills").code == 0
    assert homeless(nobodys, "/nonexistent", "skill", "scan", "--all", "--sarif").code == 0
    assert homeless(nobodys, "/nonexistent", "skill", "outdated", "--json").code == 0


@pytest.mark.ci
@pytest.mark.parametrize("home", HOMES)
def test_the_error_for_such_a_home_names_the_variables_for_other_folders(nobodys: Place, home: str | None) -> None:
    done = homeless(nobodys, home, "ask", "--session", "s", "hello")
    assert done.code == 1 and "XDG_STATE_HOME and XDG_CACHE_HOME" in done.err


def begun(place: Place, *words: str) -> subprocess.Popen[bytes]:
    """A command that runs the skill, once that runs."""
    process = subprocess.Popen(
        [*place.program, *words], cwd=place.root, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    end = time.monotonic() + LIMIT
    while not filled_below(place.root, "began"):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_during_a_skill_is_the_exit_code_as_in_a_shell(sleeping: Place, number: signal.Signals) -> None:
    with begun(sleeping, "ask", "/dozer x") as process:
        process.send_signal(number)
        assert process.wait(LIMIT) == 128 + number


@pytest.mark.wide
def test_a_signal_that_the_process_ignores_does_not_end_the_turn(sleeping: Place) -> None:
    nohup = Place(root=sleeping.root, program=("nohup", *sleeping.program))
    with begun(nohup, "ask", "/dozer x") as process:
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 128 + signal.SIGTERM


@pytest.mark.requirement("JIT-12")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize(("answer", "left"), [("yes", "interrupted"), ("no", "")])
def test_the_message_of_a_turn_that_a_signal_ends_is_asked_about(
    sleeping: Place, number: signal.Signals, answer: str, left: str
) -> None:
    with begun(sleeping, "ask", "--session", "s", "/dozer x") as process:
        process.send_signal(number)
        process.wait(LIMIT)
    (file,) = filled_below(sleeping.root, "began")
    file.unlink()
    assert sleeping.json("session", "list")["sessions"][0]["waiting"] == "interrupted"
    if answer == "yes":
        with begun(sleeping, "ask", "--session", "s", answer) as process:  # the skill runs again
            process.kill()
            assert b"/dozer x" in process.communicate()[1]
    else:
        assert "/dozer x" in sleeping.run("chat", "--session", "s", stdin="no\n").err
    assert [one["waiting"] for one in sleeping.json("session", "list")["sessions"]] == [left]


def test_a_person_who_stops_a_turn_is_not_asked_about_it(sleeping: Place) -> None:
    with begun(sleeping, "ask", "--session", "s", "/dozer x") as process:
        process.send_signal(signal.SIGINT)
        process.wait(LIMIT)
    assert sleeping.json("session", "list")["sessions"] == []
