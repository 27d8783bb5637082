"""A skill that needs an MCP server is not taken until that server is set up."""

from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.values.route import NeedClarification, Skills
from routing.place import Routing, routing_at, write_skills

NEEDS = ("Posts messages to Slack channels. Use when the user asks to post to Slack.", "requires:\n  mcp: [rube]\n")
HELD = ("Reads mails of a mailbox. Use when the user asks for mails.", "requires:\n  mcp:\n    - files\n")
SHEET = "Makes and edits spreadsheets and workbooks of Excel. Use when the user asks for a spreadsheet."
SHEET_TOO = (
    "Automates Excel: makes and edits spreadsheets and workbooks of Excel in the cloud.",
    "requires:\n  mcp: rube\n",
)


@pytest.fixture
def routing(tmp_path: Path) -> Routing:
    skills: dict[str, str | tuple[str, str]] = {
        "slack-automation": NEEDS,
        "mail": HELD,
        "xlsx": SHEET,
        "excel-automation": SHEET_TOO,
    }
    others = {f"other{at}": f"Paints picture number {at} of a harbour." for at in range(12)}
    write_skills(tmp_path, skills | others)
    return routing_at(tmp_path)


@pytest.mark.parametrize(
    ("text", "servers"),
    [("mcp: [rube, x]", ("rube", "x")), ("mcp: rube", ("rube",)), ("mcp: {a: 1}", ()), ("bins: [jq]", ())],
)
def test_the_servers_that_a_skill_needs_are_read(tmp_path: Path, text: str, servers: tuple[str, ...]) -> None:
    write_skills(tmp_path, {"one": ("Does one thing.", f"requires:\n  {text}\n")})
    found = routing_at(tmp_path).catalogue.find("one")
    assert found is not None and found.needed_servers == servers


@pytest.mark.requirement("X-45")
def test_a_skill_whose_server_is_missing_is_offered_and_says_so(routing: Routing) -> None:
    decision = routing.decide("post a message to Slack channels")
    assert isinstance(decision.result, NeedClarification) and decision.reason == "no_server"
    assert decision.result.options[0] == "slack-automation"
    assert "slack-automation (needs the MCP server rube, which is not set up)" in decision.result.question
    zh = routing.decide("把消息 post to Slack channels 发出去")
    assert isinstance(zh.result, NeedClarification) and "需要尚未设置的 MCP 服务器 rube" in zh.result.question


@pytest.mark.requirement("X-45")
def test_a_skill_whose_server_is_set_up_is_taken(routing: Routing) -> None:
    decision = routing.decide("read the mails of a mailbox")
    assert isinstance(decision.result, Skills) and decision.result.names == ("mail",)
    routing.router.servers = ("files", "rube")
    decision = routing.decide("post a message to Slack channels")
    assert isinstance(decision.result, Skills) and decision.result.names == ("slack-automation",)


@pytest.mark.requirement("X-45")
def test_a_skill_that_can_work_here_stands_in_for_one_that_cannot(routing: Routing) -> None:
    text = "automate Excel: make spreadsheets and workbooks of Excel"
    decision = routing.decide(text)
    assert isinstance(decision.result, Skills) and decision.result.names == ("xlsx",)


def test_a_skill_that_is_called_by_its_name_is_called(routing: Routing) -> None:
    decision = routing.decide("/slack-automation post hello")
    assert isinstance(decision.result, Skills) and decision.result.names == ("slack-automation",)
