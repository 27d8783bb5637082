"""A session records that the person's data was read in it: from then on each outgoing call needs its own yes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from authority.clones import FILES, WORDS, adds_server, clone_of, sets_model
from cli.support import Place
from models.wire_server import Said, WireServer, serving
from person_state import state_of
from sandbox.world import RUNGS, use

pytest.importorskip("mcp")
pytestmark = [pytest.mark.requirement("SAF-1", "X-43"), pytest.mark.sample(1)]

LEAKS = "this call may send them out"


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture(params=RUNGS)
def talk(request: pytest.FixtureRequest, tmp_path: Path, server: WireServer) -> Place:
    """A clone with a skill that the person trusts, the person's server that may reach the network, and a session `talk`
    with two answers that read nothing."""
    use(request.param)
    place = clone_of(tmp_path, FILES)
    sets_model(server)
    adds_server(place, "reads", "--network")
    place.said("skill", "trust", "echo-user")
    server.scripts["worker"] = says_hello
    for _ in range(2):
        assert ask(place, "why is the sky blue?")["state"] == "success"
    sets_model(server)
    return place


def says_hello(_messages: object, _number: int) -> Said:
    return Said(text="Hello.")


def ask(place: Place, *words: str) -> dict[str, Any]:
    report: dict[str, Any] = place.json("ask", "--session", "talk", *words)["report"]
    return report


@pytest.mark.wide
def test_answers_that_read_nothing_ask_no_further_question(talk: Place) -> None:
    asked = ask(talk, "/echo-user please")
    assert asked["state"] == "pending" and LEAKS not in asked["summary"]
    assert ask(talk, "yes, for this session")["raw"] == f"It said: {WORDS}"


@pytest.mark.wide
def test_after_a_tool_answer_every_later_turn_is_private(talk: Place, server: WireServer) -> None:
    ask(talk, "/echo-user please")
    ask(talk, "yes, for this session")
    for _ in range(2):
        asked = ask(talk, "/echo-user please")
        assert (asked["state"], LEAKS in asked["summary"]) == ("pending", True)
        server.scripts["worker"] = says_hello
        ask(talk, "why is the sky blue?")  # the session stays private after this turn
        sets_model(server)


@pytest.mark.parametrize("message", ["/greeter", "what is in @notes.txt"])
def test_after_reading_a_skill_or_a_file_the_next_turn_is_private(
    talk: Place, server: WireServer, message: str
) -> None:
    server.scripts["worker"] = says_hello
    assert ask(talk, "--yes", message)["state"] == "success"
    sets_model(server)
    assert LEAKS in ask(talk, "/echo-user please")["summary"]


@pytest.mark.wide
def test_a_session_of_an_earlier_version_counts_as_private(talk: Place) -> None:
    with closing(sqlite3.connect(state_of(talk.root) / "sessions.sqlite")) as database, database:
        (state,) = database.execute("SELECT state FROM sessions WHERE id = 'talk'").fetchone()
        held = json.loads(state)
        assert held.pop("private") is False
        database.execute("UPDATE sessions SET state = ?", (json.dumps(held),))
    assert LEAKS in ask(talk, "/echo-user please")["summary"]


@pytest.mark.wide
def test_a_file_that_the_message_names_is_private_at_once(talk: Place) -> None:
    assert LEAKS in ask(talk, "/echo-user please @notes.txt")["summary"]


@pytest.mark.wide
def test_a_clone_cannot_say_that_nothing_was_read(talk: Place, tmp_path: Path) -> None:
    """The mark is in the person's session; a session file in the project is not read."""
    ask(talk, "--yes", "/greeter")
    (talk.root / "mybox" / "state").mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(state_of(talk.root) / "sessions.sqlite")) as own, own:
        (state,) = own.execute("SELECT state FROM sessions WHERE id = 'talk'").fetchone()
    brought = talk.root / "mybox" / "state" / "sessions.sqlite"
    with closing(sqlite3.connect(brought)) as database, database:
        database.execute(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, created TEXT, updated TEXT, turn INT, state TEXT)"
        )
        free = json.dumps({**json.loads(state), "private": False})
        database.execute("INSERT INTO sessions VALUES ('talk', '', '', 1, ?)", (free,))
    assert LEAKS in ask(talk, "/echo-user please")["summary"]
