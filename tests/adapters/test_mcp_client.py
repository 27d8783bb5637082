from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.mcp_client.servers import Servers
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.bootstrap.scanning.scanners import suspicions
from navigator_kernel.config.settings import Policy
from navigator_kernel.errors import (
    ConnectionFailed,
    ConsentNeeded,
    InvalidURI,
    NoSandbox,
    NotFound,
    Refused,
    ResourceNotFound,
    UsageProblem,
)
from navigator_kernel.ports import NullAudit
from navigator_kernel.sandbox.consents import ConsentStore
from navigator_kernel.sandbox.contain import ContainedRunner
from navigator_kernel.sandbox.guard import ConsentGate
from navigator_kernel.sandbox.servers import ToolPins, starter
from navigator_kernel.values.mcp import McpServer
from processes import working_in

pytest.importorskip("mcp")

SERVER = Path(__file__).resolve().parents[1] / "agents" / "mcp_server.py"
ONE, TWO = "note://one", "note://two"


def servers(folder: Path, mode: str = "serve", *, agreed: bool = True, **env: str) -> Servers:
    book = ConsentStore(folder / "trust.json", FolderWriter([folder]), SystemClock())
    if agreed:
        book.allow_orders("run-1")
    held = {
        "files": McpServer(command=sys.executable, args=(str(SERVER), mode), env=env),
        "gone": McpServer(command="no-such-program"),
    }
    sandbox = Project(Path(), agents=False).contained
    started = starter(ConsentGate(book, sandbox).check, sandbox.argv, os.environ.get)
    pins = ToolPins(book, Policy(), NullAudit(), suspicions)
    return Servers(
        servers=held,
        started=started,
        workspace=lambda run: folder,
        approve=pins.require,
        secret=os.environ.get,
        keep=lambda run, server, body: folder / "large.json",
    )


def called(held: Servers, operation: str, server: str = "files", **params: Any) -> Mapping[str, Any]:
    try:
        return asyncio.run(held.call(server, operation, params, "run-1"))
    finally:
        held.close()


def dead(folder: Path) -> bool:
    """Whether the server that wrote its pid in `folder` is gone within twenty seconds."""
    assert (folder / "server.pid").exists(), "it was never there"
    end = time.monotonic() + 20
    while (left := working_in(folder)) and time.monotonic() < end:
        time.sleep(0.02)
    return not left


@pytest.mark.requirement("AGT-4")
def test_resources_are_listed(tmp_path: Path) -> None:
    found = called(servers(tmp_path), "list")["resources"]
    assert [item["uri"] for item in found] == [ONE, TWO]
    assert found[0] == {"uri": ONE, "name": "one", "description": "The first", "mime_type": "text/plain"}


@pytest.mark.requirement("AGT-4")
@pytest.mark.parametrize(("uri", "text"), [(ONE, "first note"), (TWO, "第二")])
def test_a_resource_is_read(tmp_path: Path, uri: str, text: str) -> None:
    found = called(servers(tmp_path), "read", uri=uri)
    assert (found["uri"], [item["text"] for item in found["contents"]]) == (uri, [text])


def test_tools_are_listed(tmp_path: Path) -> None:
    (found,) = called(servers(tmp_path), "tools")["tools"]
    assert (found["name"], found["description"]) == ("add", "Adds two numbers")
    assert sorted(found["schema"]["properties"]) == ["a", "b"]


def test_a_tool_is_called_with_its_arguments(tmp_path: Path) -> None:
    found = called(servers(tmp_path), "call", tool="add", args={"a": 2, "b": 3})
    assert ([item["text"] for item in found["content"]], found["is_error"]) == (["5"], False)


def test_a_tool_that_fails_says_so(tmp_path: Path) -> None:
    assert called(servers(tmp_path), "call", tool="add", args={"a": -1, "b": 3})["is_error"] is True


@pytest.mark.requirement("AGT-9")
@pytest.mark.parametrize("uri", ["no uri at all", "", "note:", "note://one two", "//one", "http://[", "a\x1b:b"])
def test_an_invalid_uri_is_reported_before_a_server_is_started(tmp_path: Path, uri: str) -> None:
    with pytest.raises(InvalidURI, match="InvalidURI"):
        called(servers(tmp_path), "read", uri=uri)
    assert not (tmp_path / "server.pid").exists()


@pytest.mark.requirement("AGT-9")
@pytest.mark.parametrize("uri", ["note://three", "note:/one"])
def test_a_resource_that_is_missing_is_not_found_and_names_what_there_is(tmp_path: Path, uri: str) -> None:
    with pytest.raises(ResourceNotFound, match="ResourceNotFound") as caught:
        called(servers(tmp_path), "read", uri=uri)
    assert sorted(caught.value.data["available"]) == [ONE, TWO]


def test_reading_without_a_uri_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="uri"):
        called(servers(tmp_path), "read")


def test_calling_without_a_tool_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="tool"):
        called(servers(tmp_path), "call")


def test_a_missing_tool_is_reported_by_name(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound, match="subtract") as caught:
        called(servers(tmp_path), "call", tool="subtract")
    assert caught.value.data["available"] == ["add"]


def test_an_unknown_operation_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="explode"):
        called(servers(tmp_path), "explode")


def test_a_server_that_is_not_configured_is_not_found_and_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        called(servers(tmp_path), "list", "nothing")
    assert caught.value.data["available"] == ["files", "gone"]


def test_without_consent_nothing_is_started(tmp_path: Path) -> None:
    with pytest.raises(ConsentNeeded) as caught:
        called(servers(tmp_path, agreed=False), "list")
    assert caught.value.data["subject"].startswith("mcp_server:files@sha256:")
    assert not (tmp_path / "server.pid").exists()


def test_consent_is_bound_to_the_whole_command_line(tmp_path: Path) -> None:
    with pytest.raises(ConsentNeeded) as first:
        called(servers(tmp_path, agreed=False), "list")
    with pytest.raises(ConsentNeeded) as second:
        called(servers(tmp_path, "other", agreed=False), "list")
    assert first.value.data["subject"] != second.value.data["subject"]


def test_the_server_sees_what_it_was_given_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    called(servers(tmp_path, GIVEN="yes"), "tools")
    names = (tmp_path / "server.env").read_text().split()
    assert ("GIVEN" in names, "OPENAI_API_KEY" in names) == (True, False)


def test_the_server_is_gone_after_the_call(tmp_path: Path) -> None:
    called(servers(tmp_path), "tools")
    assert dead(tmp_path)


def test_a_program_that_is_not_there_is_a_failed_connection(tmp_path: Path) -> None:
    with pytest.raises(ConnectionFailed, match="gone"):
        called(servers(tmp_path), "list", "gone")


def test_a_server_that_dies_at_once_is_a_failed_connection(tmp_path: Path) -> None:
    with pytest.raises(ConnectionFailed, match="files"):
        called(servers(tmp_path, "crash"), "list")


@pytest.mark.wide
@pytest.mark.parametrize(
    ("mode", "operation", "params"), [("hang", "list", {}), ("slow", "call", {"tool": "add", "args": {"a": 1, "b": 2}})]
)
def test_a_server_that_hangs_is_gone_when_the_call_is_cancelled(
    tmp_path: Path, mode: str, operation: str, params: dict[str, Any]
) -> None:
    held = servers(tmp_path, mode)

    async def bounded() -> None:
        async with asyncio.timeout(5):
            await held.call("files", operation, params, "run-1")

    with pytest.raises(TimeoutError):
        asyncio.run(bounded())
    held.close()
    assert dead(tmp_path)


def peeked(tmp_path: Path, *, network: bool) -> Mapping[str, str]:
    """What a server could do besides its work."""
    outside, folder = tmp_path / "outside" / "dear.txt", tmp_path / "own"
    outside.parent.mkdir()
    folder.mkdir()
    outside.write_text("dear")
    held = servers(folder, "peek", OUTSIDE=str(outside)).servers["files"]._replace(network=network)
    called(replace(servers(folder), servers={"files": held}), "tools")
    assert outside.read_text() == "dear"
    told: Mapping[str, str] = json.loads((folder / "peek.json").read_text())
    return told


@pytest.mark.requirement("SAF-1", "SAF-2")
def test_a_server_reaches_nothing_but_its_own_folder(tmp_path: Path) -> None:
    told = peeked(tmp_path, network=False)
    assert "done" not in (told["read"], told["write"], told["socket"])
    assert Path(told["home"]).name == "home" and not Path(told["home"]).exists()  # its own home, removed after the call


@pytest.mark.requirement("SAF-1")
def test_a_server_has_the_network_where_its_settings_say_so(tmp_path: Path) -> None:
    assert peeked(tmp_path, network=True)["socket"] == "done"


@pytest.mark.requirement("SAF-1")
def test_a_server_is_not_started_where_servers_are_denied(tmp_path: Path) -> None:
    book = ConsentStore(tmp_path / "trust.json", FolderWriter([tmp_path]), SystemClock())
    book.allow_orders("run-1")
    gate = ConsentGate(book, Project(Path(), agents=False).contained, Policy(deny=frozenset({"mcp"})))
    held = replace(
        servers(tmp_path), started=starter(gate.check, Project(Path(), agents=False).contained.argv, os.environ.get)
    )
    with pytest.raises(Refused, match="may not run"):
        called(held, "tools")
    assert not (tmp_path / "server.pid").exists()


@pytest.mark.requirement("SAF-1")
def test_without_a_sandbox_no_server_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ContainedRunner, "rung", lambda _: None)
    with pytest.raises(NoSandbox):
        called(servers(tmp_path), "tools")
