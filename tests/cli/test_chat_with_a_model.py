"""A conversation with a model on a terminal: streamed text, tools and skills as they are used, and chat commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.support import Place, place_in
from cli.terminals import terminal as opened
from cli.test_terminal import terminal
from models.wire_server import Said, WireServer, serving
from skill_repositories import skill_text

LOOK = Said(text="Let me look. ", calls=[("skill", '{"name": "song-writer"}')])


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture
def here(tmp_path: Path, home: Path, server: WireServer) -> Place:
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    url = f'[models.providers.there]\nurl = "{server.url}"\n'
    file.write_text(f'router = "local_only"\n[models]\ndefault = "there:worker"\nretries = 0\n{url}')
    here = place_in(tmp_path)
    here.write({".claude/skills/song-writer/SKILL.md": skill_text("song-writer", "writes songs")})
    server.requests.clear()
    server.scripts["worker"] = lambda messages, _: LOOK if messages[-1]["role"] == "user" else Said(text="La la la.")
    server.scripts["other"] = lambda _messages, _number: Said(text="I am the other.")
    return here


@pytest.mark.wide
def test_words_skills_and_tools_are_shown_as_they_come_and_once(here: Place) -> None:
    with terminal(here) as held:
        held.wait_for("> ")
        held.type("/song-writer a song\n")
        shown = held.wait_for("tokens, price not known")
        assert (
            shown.index("… song-writer")
            < shown.index("Let me look.")
            < shown.index("… skill")
            < shown.index("La la la.")
        )
        assert (shown.count("Let me look."), shown.count("La la la.")) == (1, 1)
        held.wait_for("> ")
        assert held.end() == 0


@pytest.mark.wide
@pytest.mark.requirement("EVT-7")
def test_cost_shows_requests_and_tokens_per_skill(here: Place) -> None:
    with terminal(here) as held:
        held.wait_for("> ")
        held.type("/cost\n")
        held.wait_for("all: 0 requests")
        held.type("/song-writer a song\n")
        held.wait_for("tokens, price not known")
        held.type("/cost\n")
        held.wait_for("song-writer: 2 requests, 240 tokens in (200 from a cache), 24 out")
        held.type("/skill\n")
        held.wait_for("song-writer\r\n> ")
        assert held.end() == 0


@pytest.mark.wide
def test_another_model_is_asked_from_then_on(here: Place, server: WireServer) -> None:
    with terminal(here) as held:
        held.wait_for("> ")
        held.type("/model\n")
        held.wait_for("there:worker")
        held.type("/model nonsense\n")
        held.wait_for("'nonsense' names no model")
        held.type("/model there:other\n")
        held.wait_for("there:other\r\n")
        held.type("why is the sky blue?\n")
        held.wait_for("I am the other.")
        held.wait_for("> ")
        assert held.end() == 0
    assert server.asked("other") == 1


@pytest.mark.wide
def test_from_a_pipe_the_answer_is_a_line_and_nothing_is_streamed(here: Place) -> None:
    done = here.run("chat", stdin="/song-writer a song\n/cost\n")
    assert done.out.startswith("Let me look. \n\nLa la la.\n")
    assert "… skill" not in done.out + done.err
    told = json.loads(here.run("chat", "--json", stdin="/song-writer a song\n").out)
    assert told["replies"][0]["report"]["raw"] == "Let me look. \n\nLa la la."


def test_an_answer_is_shown_as_markdown_on_a_terminal_a_paragraph_at_a_time(here: Place, server: WireServer) -> None:
    answer = "# Sky\n\nIt is **blue**.\n\n```\na  **b**\n\nc\n```\n\n- one\n- two\n"
    server.scripts["worker"] = lambda _messages, _number: Said(text=answer)
    with opened(here, "chat", env={"TERM": "xterm"}) as held:
        held.wait_for("> ")
        held.type("why is the sky blue?\n")
        shown = re.sub(r"\x1b\[[0-9;]*m", "", held.wait_for("tokens, price not known"))
        held.wait_for("> ")
        assert held.end() == 0
    assert "**blue**" not in shown and "blue" in shown and "```" not in shown
    assert "a  **b**" in shown and "• one" in shown
