"""Each misbehaving server causes a typed report in time, leaves no process, and does not affect the others."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agents.conftest import Place
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.values.mcp import McpServer, OfferedTool
from processes import working_in
from tables import table

pytest.importorskip("mcp")
pytestmark = [pytest.mark.ci, pytest.mark.timeout(300)]

SERVER = Path(__file__).with_name("hostile_server.py")
PATIENT, SHORT, MORE = 40.0, 1.0, 20.0  # seconds for a call, for one meant to time out, and from there to its report

# Mode, operation, state of the report (two if the sandbox decides), and a part of its data's type, summary or raw text
CASES: list[tuple[str, str, str, str]] = list(table(__file__, "CASES"))


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Place]:
    """A project with a good server, to which a test adds `bad`; both run in the sandbox."""
    (tmp_path / "project").mkdir()
    place = Place(root=tmp_path / "project", contained=Project(Path(), agents=False).contained.argv)
    place.servers["good"] = McpServer(command=sys.executable, args=(str(SERVER), "good"))
    place.consents.allow_orders("run-1")
    yield place
    place.close()


def called(place: Place, server: str, operation: str = "call", *, key: str = "", timeout: float = PATIENT) -> Any:
    given = {"tool": "echo", "args": {"words": "hello"}} if operation == "call" else {}
    return place.ask("mcp", server, operation, key=key, timeout=timeout, server=server, **given)


def left(place: Place, server: str) -> set[int]:
    """The processes of a server that are still running after up to 20 s."""
    folder, end = place.workspace(f"mcp-{server}"), time.monotonic() + 20
    while (found := working_in(folder)) and time.monotonic() < end:
        time.sleep(0.02)
    return found


@pytest.mark.requirement("AGT-9")
@pytest.mark.parametrize(("mode", "operation", "state", "told"), CASES, ids=[case[0] for case in CASES])
def test_each_hostile_server_gives_a_typed_report_in_time_and_leaves_no_process(
    beside: Place, mode: str, operation: str, state: str, told: str
) -> None:
    beside.servers["bad"] = McpServer(command=sys.executable, args=(str(SERVER), mode))
    assert called(beside, "good").raw == "hello"
    began, limit = time.monotonic(), SHORT if "timeout" in state else PATIENT
    report = called(beside, "bad", operation, timeout=limit)
    assert time.monotonic() - began < limit + MORE
    assert report.state in state.split(), report
    assert told in f"{report.data.get('type', '')} {report.summary} {report.raw}"
    again = called(beside, "good", key="again")
    assert (again.state, again.raw) == ("success", "hello"), again
    beside.close()
    assert (left(beside, "bad"), left(beside, "good")) == (set(), set())


@pytest.mark.requirement("AGT-9")
def test_a_tool_that_is_not_as_the_protocol_has_it_is_completed_or_left_out_and_does_not_cost_the_others(
    beside: Place, caplog: pytest.LogCaptureFixture
) -> None:
    beside.servers["bad"] = McpServer(command=sys.executable, args=(str(SERVER), "some_odd_tools"))
    tools = {tool["name"]: tool for tool in called(beside, "bad", "tools").data["tools"]}
    assert list(tools) == ["bare", "loose", "odd_title", "echo"]
    assert tools["bare"]["schema"] == {"type": "object"} and "$ref" in tools["loose"]["schema"]
    assert "the MCP server 'bad': 2 tools left out" in caplog.text and "It has no name" in caplog.text


def test_fifty_concurrent_calls_to_one_server_process_each_get_their_own_answer(beside: Place) -> None:
    client = beside.client()

    async def all_of_them() -> list[Any]:
        asked = ({"tool": "echo", "args": {"words": f"number {at}"}} for at in range(50))
        answers: list[Any] = await asyncio.gather(*(client.call("good", "call", params, "run-1") for params in asked))
        return answers

    found = asyncio.run(all_of_them())
    assert [one["content"][0]["text"] for one in found] == [f"number {at}" for at in range(50)]
    assert len(list((beside.workspace("mcp-good")).glob("started.*"))) == 1


def test_a_killed_server_is_restarted_by_the_next_call(beside: Place) -> None:
    assert called(beside, "good").raw == "hello"
    connection = beside.client()._open["good"]
    for process in working_in(beside.workspace("mcp-good")):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    assert left(beside, "good") == set()
    end = time.monotonic() + 20
    while connection.alive and time.monotonic() < end:
        time.sleep(0.02)
    assert called(beside, "good", key="again").raw == "hello"


def test_a_server_that_fails_three_times_is_left_alone_for_a_while(beside: Place) -> None:
    beside.servers["bad"] = McpServer(command=sys.executable, args=(str(SERVER), "crash_init"))
    told = [called(beside, "bad", "tools", key=f"try {at}") for at in range(4)]
    assert [one.data["type"] for one in told] == ["ConnectionFailed"] * 4
    assert ["no disk" in one.summary for one in told] == [True, True, True, False]
    assert "failed 3 times one after another" in told[-1].summary


def test_a_large_result_is_truncated_and_kept_whole_in_a_file(beside: Place) -> None:
    beside.servers["bad"] = McpServer(command=sys.executable, args=(str(SERVER), "large"))
    report = called(beside, "bad")
    whole = json.loads(Path(report.data["file"]).read_text())
    assert (report.data["truncated"], len(whole["content"][0]["text"])) == (True, 64 * 1024 * 1024)
    assert 1_000_000 < len(report.data["content"][0]["text"]) <= 1024 * 1024


@pytest.mark.parametrize(("mode", "why"), [("changed_tool", "it has changed since"), ("injection", "ignore")])
def test_blanket_consent_does_not_cover_a_changed_or_suspicious_tool(beside: Place, mode: str, why: str) -> None:
    beside.servers["bad"] = McpServer(command=sys.executable, args=(str(SERVER), mode))
    if mode == "changed_tool":
        tools = asyncio.run(beside.client().call("bad", "tools", {}, "run-1"))["tools"]
        old = OfferedTool(server="bad", name="echo", description=tools[0]["description"], schema=tools[0]["schema"])
        beside.consents.trust(old.subject, note="a test")
        assert called(beside, "bad").state == "success"  # from here on, the server offers a changed tool
    report = called(beside, "bad", key="again")
    assert (report.state, report.exit_code) == ("pending", 9)
    assert why in report.summary.lower()
    beside.consents.allow("run-1", report.subject)
    assert called(beside, "bad", key="with a yes").raw == "hello"


def test_a_tool_with_the_name_of_one_that_was_agreed_to_wants_a_yes_of_its_own(beside: Place) -> None:
    tool = OfferedTool(server="other", name="Echo", description="x")
    beside.consents.trust(tool.subject, note="a test")
    report = called(beside, "good")
    assert (report.state, "the name of other__Echo" in report.summary) == ("pending", True)
