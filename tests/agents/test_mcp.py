from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.values.mcp import McpServer

pytest.importorskip("mcp")

SERVER = Path(__file__).with_name("mcp_server.py")


@pytest.fixture
def files(place: Any) -> Any:
    """The project with a server that is approved for `run-1`."""
    return serving(place, "serve")


def serving(place: Any, mode: str) -> Any:
    place.servers["files"] = McpServer(command=sys.executable, args=(str(SERVER), mode))
    place.consents.allow_orders("run-1")
    return place


def asked(place: Any, operation: str, **given: Any) -> Any:
    return place.ask("mcp", "files", operation, server="files", **given)


def dead(place: Any) -> bool:
    path = Path("/proc") / (place.workspace("mcp-files") / "server.pid").read_text()
    end = time.monotonic() + 20
    while path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return not path.exists()


@pytest.mark.requirement("AGT-4")
def test_the_resources_of_a_server_are_listed(files: Any) -> None:
    report = asked(files, "list")
    assert (report.state, [item["uri"] for item in report.data["resources"]]) == (
        "success",
        ["note://one", "note://two"],
    )


@pytest.mark.requirement("AGT-4")
def test_a_resource_is_read_and_its_text_is_the_raw_output(files: Any) -> None:
    report = asked(files, "read", uri="note://two")
    assert (report.state, report.raw, report.data["uri"]) == ("success", "第二", "note://two")


def test_a_tool_is_called_with_its_arguments(files: Any) -> None:
    report = asked(files, "call", tool="add", args={"a": 2, "b": 3})
    assert (report.state, report.raw) == ("success", "5")


def test_a_tool_that_fails_is_an_error(files: Any) -> None:
    report = asked(files, "call", tool="add", args={"a": -1, "b": 3})
    assert (report.state, report.data["is_error"], "add" in report.raw) == ("error", True, True)


def test_a_missing_resource_is_an_error_that_names_what_there_is(files: Any) -> None:
    report = asked(files, "read", uri="note://three")
    assert (report.state, report.exit_code) == ("error", 4)
    assert sorted(report.data["available"]) == ["note://one", "note://two"]


def test_a_server_that_nobody_agreed_to_is_pending_and_was_not_started(files: Any) -> None:
    report = asked(files, "list", run="run-2")
    assert (report.state, report.exit_code) == ("pending", 9)
    assert list(files.root.rglob("server.pid")) == []


@pytest.mark.wide
@pytest.mark.requirement("RET-10")
def test_a_server_that_hangs_is_a_timeout_with_its_uri_and_leaves_no_process(place: Any) -> None:
    report = asked(serving(place, "hang"), "read", uri="note://one", timeout=5)
    assert (report.state, report.data["uri"], report.data["elapsed"]) == ("timeout", "note://one", 5)
    place.close()
    assert dead(place)
