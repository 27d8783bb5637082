"""A no at a terminal goes back to the model, and a yes can cover further changes of a folder (marker ci)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place
from cli.terminals import Terminal, terminal
from models.wire_server import HELLO, Said, WireServer
from person_state import accept
from specialist.turns import events, of_phase_two, says
from tables import cases

pytestmark = pytest.mark.ci

NOTES = "one\ntwo\nthree\n"
QUESTION = "[y]es"
TOLD = "refused: the person said no to this call of edit. It was not done. Continue without it, or in another way."


@pytest.fixture
def writer(here: Place) -> Place:
    here.write({"docs/notes.txt": NOTES, "docs/deep/more.txt": NOTES, "other/more.txt": NOTES})
    accept(here.root, "song-writer")
    return here


def edit(path: str, old: str = "two", new: str = "2") -> Said:
    arguments = {"file_path": path, "old_string": old, "new_string": new}
    return Said(calls=[("edit", json.dumps(arguments))])


def answers(server: WireServer) -> list[str]:
    """The results of tools that the model got last; an error comes as `{"error": …}`."""
    results = [str(one["content"]) for one in of_phase_two(server)[-1]["messages"] if one["role"] == "tool"]
    return [json.loads(text)["error"] if text.startswith('{"error"') else text for text in results]


def begin(screen: Terminal) -> None:
    screen.wait_for("> ")
    screen.type("/song-writer change @docs/notes.txt\n")
    screen.wait_for(QUESTION)


def text(place: Place, path: str) -> str:
    return (place.root / path).read_text()


@pytest.mark.requirement("JIT-12")
@cases("typed, why", lists=True, ids=["n", "zh", "e reason", "e, then reason", "e without reason"])
def test_a_denial_and_its_reason_are_sent_to_the_model_which_continues(
    writer: Place, server: WireServer, typed: list[str], why: str
) -> None:
    says(server, edit("docs/notes.txt"), HELLO)
    with terminal(writer, "chat") as screen:
        begin(screen)
        for line in typed:
            screen.wait_for("why not, or what instead: " if line is not typed[0] else "> ")
            screen.type(line)
        screen.wait_for(HELLO.text)
    assert answers(server) == [TOLD + (f"\nthe person's reason: {why}" if why else "")]
    assert text(writer, "docs/notes.txt") == NOTES


@pytest.mark.requirement("JIT-12", "SAF-5")
def test_the_same_call_is_not_asked_about_again_in_a_turn(writer: Place, server: WireServer) -> None:
    read = Said(calls=[("read", '{"file_path": "docs/notes.txt"}')])
    again = Said(calls=[("edit", '{"new_string": "2", "old_string": "two", "file_path": "docs/notes.txt"}')])
    says(server, edit("docs/notes.txt"), read, again, HELLO)
    with terminal(writer, "chat") as screen:
        begin(screen)
        screen.type("n\n")
        assert QUESTION not in screen.wait_for(HELLO.text)
    told = answers(server)
    assert told[0] == TOLD and told[2].startswith("refused: the person declined this same call of edit before")
    states = [one["data"]["state"] for one in run_of(writer) if one["type"] == "ToolCallCompleted"]
    assert states == ["refused", "success", "refused"]


@pytest.mark.requirement("SAF-5")
def test_a_model_that_goes_on_with_a_refused_call_is_stopped_and_nothing_more_is_asked(
    writer: Place, server: WireServer
) -> None:
    says(server, *[edit("docs/notes.txt")] * 4, HELLO)
    with terminal(writer, "chat") as screen:
        begin(screen)
        screen.type("n\n")
        shown = screen.wait_for("the same call had the same result again and again")
    assert QUESTION not in shown and len(of_phase_two(server)) == 5
    assert text(writer, "docs/notes.txt") == NOTES


@pytest.mark.requirement("JIT-12")
def test_a_yes_for_the_session_covers_changes_below_the_same_folder(writer: Place, server: WireServer) -> None:
    says(server, edit("docs/notes.txt"), edit("docs/deep/more.txt"), edit("other/more.txt"), HELLO)
    with terminal(writer, "chat") as screen:
        screen.wait_for("> ")
        screen.type("/song-writer change @docs/notes.txt @docs/deep/more.txt @other/more.txt\n")
        screen.wait_for(QUESTION)
        screen.type("?\n")
        assert "a       yes, for this session, reading and ordinary changes below docs/\r\n" in screen.wait_for(
            "Ctrl-D"
        )
        screen.wait_for(QUESTION)
        screen.type("a\n")
        assert "other/more.txt" in screen.wait_for(QUESTION)
    changed = NOTES.replace("two", "2")
    assert [text(writer, path) for path in ("docs/notes.txt", "docs/deep/more.txt", "other/more.txt")] == [
        changed, changed, NOTES,
    ]  # fmt: skip


@pytest.mark.requirement("JIT-12")
def test_a_file_that_others_obey_offers_no_yes_for_the_session_and_takes_none(
    writer: Place, server: WireServer
) -> None:
    """Neither `a` to this file, nor one to its folder before, covers its next change."""
    writer.write({"docs/Makefile": NOTES})
    says(server, edit("docs/notes.txt"), edit("docs/Makefile"), edit("docs/Makefile", "one", "1"), HELLO)
    with terminal(writer, "chat") as screen:
        screen.wait_for("> ")
        screen.type("/song-writer change @docs/notes.txt @docs/Makefile\n")
        screen.wait_for("[?]")
        screen.type("a\n")
        shown = screen.wait_for("[?]")
        assert "change docs/Makefile, which other programs run or obey" in shown and "[a]" not in shown
        screen.type("a\n")
        screen.wait_for("[?]")  # asked again
        assert text(writer, "docs/Makefile") == NOTES
        screen.type("y\n")
        screen.wait_for("+1")
        screen.wait_for("[?]")
    assert text(writer, "docs/Makefile") == NOTES.replace("two", "2")


@pytest.mark.requirement("JIT-12")
def test_allowed_edits_are_not_those_of_files_that_others_obey(writer: Place, server: WireServer) -> None:
    writer.write({"Makefile": NOTES})
    says(server, edit("docs/notes.txt"), edit("Makefile"), HELLO)
    waits = writer.json("ask", "--allow-edits", "/song-writer change @docs/notes.txt @Makefile")
    assert waits["exit_code"] == 9 and "change Makefile, which other programs" in waits["report"]["summary"]
    assert (text(writer, "docs/notes.txt"), text(writer, "Makefile")) == (NOTES.replace("two", "2"), NOTES)


@pytest.mark.requirement("JIT-12")
def test_a_yes_for_the_session_holds_in_the_next_turn_and_for_the_same_bytes_alone(
    writer: Place, server: WireServer
) -> None:
    says(
        server,
        edit("docs/notes.txt"),
        HELLO,
        edit("docs/notes.txt", "one", "1"),
        HELLO,
        edit("docs/notes.txt", "1", "0"),
    )
    with terminal(writer, "chat") as screen:
        begin(screen)
        screen.type("a\n")
        screen.wait_for(HELLO.text)
        screen.type("/song-writer change @docs/notes.txt\n")
        screen.wait_for(HELLO.text)
        assert text(writer, "docs/notes.txt") == "1\n2\nthree\n"
        skill = writer.root / ".claude/skills/song-writer/SKILL.md"
        skill.write_text(f"{skill.read_text()}\nRhyme twice.\n")
        accept(writer.root, "song-writer")
        screen.type("/song-writer change @docs/notes.txt\n")
        screen.wait_for(QUESTION)
    assert text(writer, "docs/notes.txt") == "1\n2\nthree\n"


@pytest.mark.parametrize(("word", "said"), [("cancel", "not done, as you asked"), ("取消", "已取消")])
def test_the_person_can_still_end_it(writer: Place, server: WireServer, word: str, said: str) -> None:
    says(server, edit("docs/notes.txt"), HELLO)
    with terminal(writer, "chat") as screen:
        begin(screen)
        screen.type(f"{word}\n")
        screen.wait_for(said)
    assert len(of_phase_two(server)) == 1


@pytest.mark.parametrize(
    ("word", "after", "reason"), [("a", NOTES.replace("two", "2"), False), ("e use words", NOTES, True)]
)
def test_without_a_terminal_the_letters_answer_too(
    writer: Place, server: WireServer, word: str, after: str, *, reason: bool
) -> None:
    says(server, edit("docs/notes.txt"), HELLO)
    assert writer.json("ask", "--session", "s", "/song-writer change @docs/notes.txt")["exit_code"] == 9
    writer.json("ask", "--session", "s", word)
    assert text(writer, "docs/notes.txt") == after
    messages = of_phase_two(server)[-1]["messages"]
    assert ["use words" in message["content"] for message in messages if message["role"] == "tool"] == [reason]


def run_of(place: Place) -> list[dict[str, Any]]:
    """The events of the newest run."""
    logs: list[Path] = sorted((place.root / "mybox/logs/runs").glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    return events(place, logs[-1].stem)
