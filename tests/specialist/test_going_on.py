"""Work that stops at a limit or a failure names what it made, and goes on with its tools, files and history (SAF-7)."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from cli.support import Place
from cli.terminals import terminal
from models.wire_server import Said, WireServer
from specialist.turns import of_phase_two, says, settings

pytestmark = pytest.mark.ci
DONE = Said(text="All of it is done.")
HALF = Said(text="Two of three are written; the third is left.")


def write(name: str, text: str = "x") -> Said:
    return Said(calls=[("write", json.dumps({"file_path": name, "content": text}))])


@pytest.mark.requirement("JIT-10", "SAF-7")
def test_work_that_hits_a_bound_says_what_is_done_and_continues_in_its_workspace(
    here: Place, mine: Path, server: WireServer
) -> None:
    mine.write_text(settings(server, more="turn_tokens = 260"))
    says(server, write("a.txt"), write("b.txt"), HALF, write("c.txt"), DONE)
    told = here.json("ask", "--session", "s", "/song-writer three files")
    report = told["report"]
    assert (told["exit_code"], report["state"], report["data"]["reason"]) == (1, "partial", "tokens")
    assert report["raw"] == HALF.text and report["data"]["hint"].startswith("say continue to go on with the work")
    assert [Path(path).name for path in report["data"]["files"]] == ["a.txt", "b.txt"]
    again = here.json("ask", "--session", "s", "continue")
    assert (again["exit_code"], again["report"]["state"]) == (0, "success")
    assert [Path(path).name for path in again["report"]["data"]["files"]] == ["a.txt", "b.txt", "c.txt"]
    assert len({Path(path).parent for path in again["report"]["data"]["files"]}) == 1
    went_on = of_phase_two(server)[3]
    assert went_on["messages"][-1] == {"role": "user", "content": "continue"} and went_on["tools"]
    before = of_phase_two(server)[1]["messages"]
    assert went_on["messages"][: len(before)] == before, "a provider can read the beginning from its cache"


def test_what_the_person_says_with_it_reaches_the_model(here: Place, mine: Path, server: WireServer) -> None:
    mine.write_text(settings(server, more="turn_tokens = 260"))
    says(server, write("a.txt"), write("b.txt"), HALF, DONE)
    here.json("ask", "--session", "s", "/song-writer three files")
    again = here.json("ask", "--session", "s", "继续")
    assert again["report"]["raw"] == DONE.text
    assert of_phase_two(server)[3]["messages"][-1]["content"] == "继续"


@pytest.mark.parametrize(
    "mode",
    ["withheld", "cut", "ends-early", "error-in-stream", "limited", "failed", "rejected", "says-nothing", "too-long"],
)
def test_a_failure_of_the_provider_after_some_work_names_the_files_and_goes_on_where_it_was(
    here: Place, mine: Path, server: WireServer, mode: str
) -> None:
    """The request that failed is sent again as it was: nothing is repeated, and no message of the person is between."""
    failing = [Said(mode=mode)] * (2 if mode == "says-nothing" else 1)
    answers = iter([write("a.txt"), *failing, DONE])
    server.scripts["worker"] = lambda _messages, _number: next(answers)
    told = here.json("ask", "--session", "s", "/song-writer a file")
    assert (told["exit_code"], told["report"]["state"]) == (1, "error")
    assert [Path(path).name for path in told["report"]["data"]["files"]] == ["a.txt"]
    assert told["report"]["data"]["hint"].startswith("say continue to go on with the work; ")
    again = here.json("ask", "--session", "s", "continue")
    assert (again["exit_code"], again["report"]["raw"]) == (0, DONE.text)
    assert of_phase_two(server)[-1]["messages"][-1]["content"] != "continue"
    assert [Path(path).name for path in again["report"]["data"]["files"]] == ["a.txt"]


def test_a_terminal_shows_how_far_the_work_is_and_how_to_go_on(here: Place, mine: Path, server: WireServer) -> None:
    mine.write_text(settings(server, more="turn_tokens = 260"))
    says(server, write("a.txt"), write("b.txt"), HALF, write("c.txt"), DONE)
    with terminal(here, "chat") as screen:
        screen.wait_for("> ")
        screen.type("/song-writer three files\n")
        shown = screen.wait_for("say continue")
        assert "round 2 · 132 tokens · 1 file" in shown and HALF.text in shown
        screen.type("continue\n")
        assert DONE.text in screen.wait_for(DONE.text)


def until_stopped(server: WireServer, *before: Said) -> None:
    """The model gives the answers `before`, then none until the turn is stopped, and then that all is done."""
    answers = iter([*before, Said(mode="hangs"), DONE])
    server.scripts["worker"] = lambda _messages, _number: next(answers)


def waits_for(server: WireServer, count: int) -> None:
    """Waits until the model was asked so often."""
    end = time.monotonic() + 30
    while len(server.requests) < count:
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.requirement("SAF-7")
@pytest.mark.parametrize("named", [(), ("--session", "s")])
def test_a_stop_names_the_files_and_the_command_that_goes_on(
    here: Place, mine: Path, server: WireServer, named: tuple[str, ...]
) -> None:
    until_stopped(server, write("a.txt"))
    with terminal(here, "ask", *named, "/song-writer a file", columns=300) as screen:
        waits_for(server, 2)
        screen.type("\x03")
        shown = screen.rest()
        assert screen.process.returncode == 130
    assert "stopped" in shown and "/a.txt" in shown and "say continue" not in shown  # the command is shown instead
    assert here.runs()[0][-1]["type"] == "RunCancelled"
    command = shown.partition("to go on: navigator ")[2].partition("\n")[0].split()
    again = here.json(*command)
    assert (again["exit_code"], again["report"]["raw"]) == (0, DONE.text)
    assert [Path(path).name for path in again["report"]["data"]["files"]] == ["a.txt"]
    assert of_phase_two(server)[-1]["messages"] == of_phase_two(server)[1]["messages"], "nothing is repeated"


def test_a_stop_in_a_chat_leaves_the_work_open(here: Place, mine: Path, server: WireServer) -> None:
    until_stopped(server, write("a.txt"))
    with terminal(here, "chat", columns=300) as screen:
        screen.wait_for("> ")
        screen.type("/song-writer a file\n")
        waits_for(server, 2)
        screen.type("\x03")
        assert "/a.txt" in screen.wait_for("say continue")
        screen.wait_for("> ")
        screen.type("continue\n")
        assert DONE.text in screen.wait_for(DONE.text)


def test_a_call_that_was_stopped_at_its_work_is_asked_about_before_it_is_repeated(
    here: Place, mine: Path, server: WireServer
) -> None:
    command = "echo x >> b.txt; sleep 60"
    answers = iter([write("a.txt"), Said(calls=[("run", json.dumps({"command": command}))]), DONE])
    server.scripts["worker"] = lambda _messages, _number: next(answers)
    with terminal(here, "ask", "--allow", "run", "--session", "s", "/song-writer a file", columns=300) as screen:
        end = time.monotonic() + 30
        while not list((here.root / "mybox/workspace").glob("*/b.txt")):
            assert time.monotonic() < end
            time.sleep(0.02)
        screen.type("\x03")
        screen.rest()
        assert screen.process.returncode == 130
    again = here.json("ask", "--allow", "run", "--session", "s", "continue")
    assert (again["exit_code"], again["report"]["state"]) == (9, "pending")
    assert "may have had an effect" in again["report"]["summary"], again["report"]["summary"]
    (file,) = (here.root / "mybox/workspace").glob("*/b.txt")
    assert file.read_text() == "x\n"


@pytest.mark.parametrize("on", ["continue", "继续"])
def test_a_question_about_work_that_stopped_does_not_drop_it(
    here: Place, mine: Path, server: WireServer, on: str
) -> None:
    mine.write_text(settings(server, more="turn_tokens = 260"))
    answer = Said(text="There are two.")
    says(server, write("a.txt"), write("b.txt"), HALF, answer, write("c.txt"), DONE)
    here.json("ask", "--session", "s", "/song-writer three files")
    assert here.json("ask", "--session", "s", "which files are there?")["report"]["raw"] == answer.text
    again = here.json("ask", "--session", "s", on)
    assert [Path(path).name for path in again["report"]["data"]["files"]] == ["a.txt", "b.txt", "c.txt"]


@pytest.mark.requirement("WFL-7", "SAF-7")
def test_a_step_of_a_workflow_that_hits_a_bound_stops_the_run_and_continues_its_work(
    here: Place, mine: Path, server: WireServer
) -> None:
    mine.write_text(settings(server, more="turn_tokens = 260"))
    says(server, write("a.txt"), write("b.txt"), HALF, write("c.txt"), DONE)
    told = here.json("ask", "--yes", "write a song with /song-writer and then count the words")
    assert (told["report"]["state"], [one["state"] for one in told["reports"]]) == ("partial", ["partial"])
    told = here.json("workflow", "resume", told["workflow"]["token"])
    assert told["report"]["state"] == "success", told["report"]
    went_on = of_phase_two(server)[3]
    assert went_on["messages"][-1]["content"] == "Go on." and went_on["tools"]


@pytest.mark.requirement("WFL-7", "SAF-7")
@pytest.mark.parametrize("words", ["continue", "继续"])
def test_a_stop_in_a_step_of_a_workflow_leaves_the_step_open(here: Place, server: WireServer, words: str) -> None:
    """The work of the model goes on in the step; the step before keeps its result and is not repeated."""
    here.write({"notes.txt": "one two three\n"})
    until_stopped(server, write("a.txt"))
    message = "count the words in notes.txt and then write a song with /song-writer"
    with terminal(here, "ask", "--session", "s", "--yes", message, columns=300) as screen:
        waits_for(server, 2)
        screen.type("\x03")
        shown = screen.rest()
    assert "step 2 of 2 is not finished; go on with it? (yes/no)" in shown
    assert "to answer: navigator ask --session s yes" in shown
    again = here.json("ask", "--session", "s", words)
    assert (again["exit_code"], again["workflow"]["done"]) == (0, 2), again
    assert [report["summary"] for report in again["reports"]] == [
        "notes.txt: 3 words, 14 characters, 1 line",
        DONE.text,
    ]
    assert again["reports"][0]["meta"]["cached"], "its result is the one of before"
    assert [event["step"] for event in here.runs()[-1] if event["type"] == "StepStarted"] == [2]
    before, after = ([one["role"] for one in of_phase_two(server)[at]["messages"]] for at in (1, -1))
    assert before == after and before[-1] == "tool", "no call is repeated"


def test_a_disarmed_folder_is_one_line_of_the_reply(here: Place, server: WireServer) -> None:
    command = "mkdir -p .git/hooks && echo a > .git/hooks/a && echo b > .git/hooks/b && echo c > c.txt"
    says(server, Said(calls=[("run", json.dumps({"command": command}))]), DONE)
    shown = here.run("ask", "--allow", "run", "/song-writer a repository")
    lines = [line for line in shown.err.split("\n") if line.startswith("file: ")]
    names = [line.partition("/workspace/")[2].partition("/")[2] for line in lines]
    assert names == ["c.txt (2 bytes)", ".git.disarmed/ (4 bytes)"], shown.err
