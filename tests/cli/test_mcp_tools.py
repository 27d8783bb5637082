"""A skill's model calls MCP tools that the skill declares and the person approved, while they are unchanged."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.support import SOURCE, Place, place_in
from models.wire_server import Said, WireServer, serving
from navigator_kernel.tools.outward import mcp_tools
from navigator_kernel.values.mcp import OfferedTool
from person_state import accept
from skill_repositories import skill_text

SERVER = str(SOURCE / "tests" / "mcp_client" / "hostile_server.py")

pytestmark = [pytest.mark.ci, pytest.mark.requirement("JIT-5")]


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture
def here(tmp_path: Path, server: WireServer) -> Place:
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "navigator" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    url = f'[models.providers.there]\nurl = "{server.url}"\n'
    file.write_text(f'router = "local_only"\n[models]\ndefault = "there:worker"\nretries = 0\n{url}')
    place = place_in(tmp_path)
    text = skill_text("echo-user", "says it again", "tools: [there__echo]\n")
    place.write({".claude/skills/echo-user/SKILL.md": text})
    accept(place.root, "echo-user")
    server.requests.clear()

    def worker(messages: Sequence[Mapping[str, Any]], _number: int) -> Said:
        if messages[-1]["role"] == "user":
            return Said(calls=[("there__echo", '{"words": "from afar"}')])
        return Said(text=f"It said: {messages[-1]['content']}")

    server.scripts["worker"] = worker
    return place


def offered(server: WireServer) -> list[str]:
    """The tools in the first request to the model."""
    return [tool["function"]["name"] for tool in server.requests[0].body.get("tools", ())]


@pytest.mark.requirement("X-43")
def test_a_tool_that_says_it_only_reads_is_called_after_a_yes(here: Place, server: WireServer) -> None:
    """A server's statement about its own tool grants nothing."""
    here.said("mcp", "add", "there", "--", sys.executable, SERVER, "reads")
    here.run("ask", "/echo-user please")
    assert "there__echo" not in offered(server)
    here.said("mcp", "approve", "there")
    server.requests.clear()
    asked = here.json("ask", "--session", "talk", "/echo-user please")["report"]
    assert (asked["state"], "there__echo" in offered(server)) == ("pending", True)
    done = here.json("ask", "--session", "talk", "yes")["report"]
    assert (done["state"], done["raw"]) == ("success", "It said: from afar")


@pytest.mark.requirement("JIT-12")
def test_a_tool_that_does_more_waits_for_a_yes_each_time(here: Place) -> None:
    here.said("mcp", "add", "there", "--", sys.executable, SERVER, "good")
    here.said("mcp", "approve", "there")
    asked = here.json("ask", "--session", "talk", "/echo-user please")["report"]
    assert (asked["state"], "there__echo" in asked["summary"], "from afar" in asked["summary"]) == (
        "pending",
        True,
        True,
    )
    done = here.json("ask", "--session", "talk", "yes")["report"]
    assert (done["state"], done["raw"]) == ("success", "It said: from afar")


def test_a_tool_that_says_something_else_by_now_is_not_called(here: Place) -> None:
    here.said("mcp", "add", "there", "--", sys.executable, SERVER, "good")
    here.said("mcp", "approve", "there")
    page = Path(os.environ["XDG_CONFIG_HOME"]) / "navigator" / "mcp.json"
    page.write_text(page.read_text().replace('"good"', '"changed_from_the_start"'))
    here.run("mcp", "tools", "there", "--yes")
    assert here.json("ask", "--session", "talk", "--yes", "/echo-user please")["report"]["state"] == "pending"
    done = here.json("ask", "--session", "talk", "yes")["report"]
    assert "from afar" not in str(done["raw"]) and "agree" in done["raw"]


def test_a_skill_that_does_not_declare_it_is_not_offered_it(here: Place, server: WireServer) -> None:
    here.said("mcp", "add", "there", "--", sys.executable, SERVER, "reads")
    here.said("mcp", "approve", "there")
    here.write({".claude/skills/other/SKILL.md": skill_text("other", "does nothing")})
    server.requests.clear()
    here.run("ask", "/other please")
    assert "there__echo" not in offered(server)


def test_a_message_without_a_skill_gets_a_tool_that_only_reads_without_a_question(
    here: Place, server: WireServer
) -> None:
    """The person approved the tool as the server describes it, and it reaches nobody else."""
    here.said("mcp", "add", "there", "--", sys.executable, SERVER, "reads")
    here.json("ask", "how far is the moon?")
    assert "there__echo" not in offered(server)
    here.said("mcp", "approve", "there")
    server.requests.clear()
    done = here.json("ask", "how far is the moon?")["report"]
    assert (offered(server), done["state"], done["raw"]) == (
        ["skill", "there__echo"],
        "success",
        "It said: from afar",
    )


@pytest.mark.requirement("X-43")
def test_with_the_network_it_asks_in_a_session_in_which_data_was_read(here: Place) -> None:
    here.said("mcp", "add", "there", "--network", "--", sys.executable, SERVER, "reads")
    here.said("mcp", "approve", "there")
    first = here.json("ask", "--session", "talk", "how far is the moon?")["report"]
    assert (first["state"], first["raw"]) == ("success", "It said: from afar")
    second = here.json("ask", "--session", "talk", "and how far is the sun?")["report"]
    assert (second["state"], "may send them out" in second["summary"]) == ("pending", True)


@pytest.mark.requirement("JIT-12")
def test_a_message_without_a_skill_waits_before_a_tool_that_does_more(here: Place, server: WireServer) -> None:
    here.said("mcp", "add", "there", "--", sys.executable, SERVER, "good")
    here.said("mcp", "approve", "there")
    asked = here.json("ask", "--session", "talk", "--yes", "how far is the moon?")["report"]
    assert (asked["state"], "from afar" in asked["summary"]) == ("pending", True)
    done = here.json("ask", "--session", "talk", "yes")["report"]
    assert (done["state"], done["raw"]) == ("success", "It said: from afar")


@pytest.mark.requirement("SAF-2")
def test_the_persons_settings_turn_them_off_for_messages_without_a_skill(here: Place, server: WireServer) -> None:
    here.said("mcp", "add", "there", "--", sys.executable, SERVER, "reads")
    here.said("mcp", "approve", "there")
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "navigator" / "config.toml"
    file.write_text(f'{file.read_text()}[policy.direct]\ndeny = ["mcp"]\n')
    server.requests.clear()
    here.run("ask", "how far is the moon?")
    assert offered(server) == ["skill"]
    server.requests.clear()
    here.run("ask", "/echo-user please")
    assert "there__echo" in offered(server)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}},
        {"type": "object", "description": "x" * 40_000},
    ],
)
def test_a_schema_that_no_model_should_see_is_left_out(schema: dict[str, Any]) -> None:
    async def call(*_: Any) -> Any:
        raise AssertionError

    assert mcp_tools([OfferedTool(server="s", name="t", schema=schema)], lambda _: True, call) == ()


def test_hidden_characters_in_a_tool_description_or_schema_are_not_shown_to_a_model() -> None:
    async def call(*_: Any) -> Any:
        raise AssertionError

    schema = {"type": "object", "properties": {"a\u202e": {"type": "string", "description": "b\x1b[2J\u200bc"}}}
    (tool,) = mcp_tools(
        [OfferedTool(server="s", name="t", description="d\u202ee", schema=schema)], lambda _: True, call
    )
    assert tool.spec.description == "de"
    assert json.dumps(tool.spec.schema) == json.dumps(
        {"type": "object", "properties": {"a": {"type": "string", "description": "bc"}}}
    )
