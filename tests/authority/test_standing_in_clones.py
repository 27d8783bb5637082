"""What a skill of a clone may do before the person decides about it: real commands, a model and a server that speak
their protocols, both kinds of sandbox (SAF-1, X-43)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from authority.clones import ECHO_USER, FILES, SERVER, TOOL, WORDS, adds_server, clone_of, pulled, sets_model, started
from cli.support import Place
from models.wire_server import WireServer, serving
from person_state import state_of
from sandbox.world import RUNGS, use

pytest.importorskip("mcp")
pytestmark = [pytest.mark.requirement("SAF-1", "X-43"), pytest.mark.sample(1)]


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture
def clone(tmp_path: Path, server: WireServer) -> Place:
    sets_model(server)
    return clone_of(tmp_path, FILES)


@pytest.fixture(params=RUNGS)
def served(request: pytest.FixtureRequest, clone: Place) -> Place:
    """The clone, for a person whose own server offers a tool that declares itself read-only; no skill is accepted."""
    use(request.param)
    adds_server(clone)
    return clone


@pytest.fixture
def trusted(served: Place) -> Place:
    """The same clone, but the person trusts the skill that names the tool."""
    served.said("skill", "trust", "echo-user")
    return served


def ask(place: Place, *words: str) -> dict[str, Any]:
    """The report of a turn in the session `talk`."""
    report: dict[str, Any] = place.json("ask", "--session", "talk", *words)["report"]
    return report


def offered(server: WireServer) -> list[str]:
    """Every tool that the model was offered."""
    return [tool["function"]["name"] for one in server.requests for tool in one.body.get("tools", ())]


@pytest.mark.wide
@pytest.mark.parametrize("more", [(), ("--yes",)], ids=["asked", "--yes"])
def test_a_skill_that_is_in_a_clone_asks_by_name_before_a_model_sees_it(
    served: Place, server: WireServer, more: tuple[str, ...]
) -> None:
    asked = ask(served, *more, "/echo-user please")
    assert (asked["state"], server.requests, started(served)) == ("pending", [], [])
    assert "the skill echo-user, which you neither installed nor trusted" in asked["summary"]
    assert TOOL in asked["summary"]


@pytest.mark.wide
def test_a_yes_to_a_skill_is_not_a_yes_to_its_tool_call(served: Place, server: WireServer) -> None:
    ask(served, "/echo-user please")
    asked = ask(served, "yes")
    assert (asked["state"], TOOL in offered(server), started(served)) == ("pending", True, [])
    assert f"Call {TOOL}?" in asked["summary"] and WORDS in asked["summary"]
    assert ask(served, "yes")["raw"] == f"It said: {WORDS}"


@pytest.mark.wide
def test_a_yes_to_a_skill_covers_one_request_only(served: Place) -> None:
    ask(served, "/echo-user please")
    ask(served, "yes")
    assert ask(served, "yes")["state"] == "success"
    assert "which you neither installed nor trusted" in ask(served, "/echo-user please")["summary"]


@pytest.mark.wide
def test_a_no_to_a_tool_call_ends_the_yes_to_its_skill(served: Place) -> None:
    ask(served, "/echo-user please")
    ask(served, "yes")
    ask(served, "no")
    assert "which you neither installed nor trusted" in ask(served, "/echo-user please")["summary"]
    assert started(served) == []


@pytest.mark.wide
def test_a_skill_that_declares_no_tool_gets_none(served: Place, server: WireServer) -> None:
    ask(served, "--yes", "/other-skill please")
    assert (len(server.requests) > 0, offered(server), started(served)) == (True, [], [])


def test_the_text_of_a_skill_that_is_in_a_clone_is_loaded_by_no_other(clone: Place, server: WireServer) -> None:
    sets_model(server, ("skill", '{"name": "other-skill"}'))
    ask(clone, "why is the sky blue?")
    told = [message["content"] for one in server.requests for message in one.body["messages"]]
    assert "skill" in offered(server) and not any("Steer the model." in str(text) for text in told)


def test_a_server_that_a_clone_names_is_not_started_for_its_skill(clone: Place, server: WireServer) -> None:
    """Not even after a yes to the skill: it gets only tools of servers that the person approved."""
    brought = {"there": {"command": sys.executable, "args": [SERVER, "reads"]}}
    clone.write({".mcp.json": json.dumps({"mcpServers": brought})})
    assert ask(clone, "/echo-user please")["state"] == "pending"
    ask(clone, "yes")
    folders = list((state_of(clone.root) / "servers").glob("*/started.*"))
    assert (len(server.requests) > 0, TOOL in offered(server), folders) == (True, False, [])


@pytest.mark.wide
def test_a_read_only_hint_from_a_server_does_not_skip_the_question(trusted: Place) -> None:
    asked = ask(trusted, "--yes", "/echo-user please")  # nor does `--yes`: the model proposed the call
    assert (asked["state"], started(trusted)) == ("pending", [])
    assert f"Call {TOOL}?" in asked["summary"]


@pytest.mark.wide
def test_yes_to_all_covers_what_the_message_itself_orders(served: Place) -> None:
    assert ask(served, "/greeter")["state"] == "pending"
    assert (ask(served, "--yes", "/greeter")["state"], started(served)) == ("success", ["greeter"])


@pytest.mark.wide
def test_a_yes_for_the_session_ends_with_the_first_changed_byte_of_the_skill(trusted: Place, tmp_path: Path) -> None:
    ask(trusted, "/echo-user please")
    assert ask(trusted, "yes, for this session")["raw"] == f"It said: {WORDS}"
    assert ask(trusted, "/echo-user please")["raw"] == f"It said: {WORDS}"
    pulled(trusted, tmp_path, {".claude/skills/echo-user/SKILL.md": f"{ECHO_USER}\n"})
    trusted.said("skill", "trust", "echo-user")
    assert f"Call {TOOL}?" in ask(trusted, "/echo-user please")["summary"]


@pytest.mark.wide
def test_a_yes_for_the_session_ends_where_the_tool_says_something_else(trusted: Place) -> None:
    ask(trusted, "/echo-user please")
    assert ask(trusted, "yes, for this session")["raw"] == f"It said: {WORDS}"
    trusted.said("mcp", "add", "there", "--force", "--", sys.executable, SERVER, "changed_from_the_start")
    trusted.said("mcp", "approve", "there", "echo")
    assert f"Call {TOOL}?" in ask(trusted, "/echo-user please")["summary"]
