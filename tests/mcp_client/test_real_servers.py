"""Public servers from the registries, each in its own environment, started in the sandbox as the kernel starts them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agents.conftest import Place
from cli.support import place_in
from models.wire_server import Said, serving
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.errors import ConnectionFailed, InputNeeded, PermissionDenied, ResourceNotFound
from navigator_kernel.values.mcp import McpServer
from ports import free_port
from processes import working_in
from specialist.turns import settings
from tables import cases

pytest.importorskip("mcp")
pytestmark = [pytest.mark.ci, pytest.mark.timeout(600), pytest.mark.requirement("AGT-4")]

PYTHON = ("mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19")
NODE = ("everything@2026.8.31", "filesystem@2026.8.31", "memory@2026.8.31")
KINDS = ("stdio", "http")
TEXT = "demo://resource/dynamic/text/1"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the programs of the servers from PyPI."""
    folder = tmp_path_factory.mktemp("python")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    subprocess.run([folder / "bin" / "pip", "install", "--quiet", *PYTHON], check=True, timeout=300)
    return folder / "bin"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the servers from npm."""
    folder = tmp_path_factory.mktemp("node")
    names = [f"@modelcontextprotocol/server-{name}" for name in NODE]
    subprocess.run(
        ["npm", "install", "--silent", "--no-fund", "--no-audit", *names], cwd=folder, check=True, timeout=300
    )
    return folder / "node_modules" / "@modelcontextprotocol"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "project").mkdir()
    place = Place(root=tmp_path / "project", contained=Project(Path(), agents=False).contained.argv)
    place.consents.allow_orders("run-1")
    yield place
    place.close()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "a.txt").write_text("hello\n")
    who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "the first"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def script(node: Path, name: str, *words: str, **env: str) -> McpServer:
    return McpServer(command="node", args=(str(node / f"server-{name}" / "dist" / "index.js"), *words), env=env)


@pytest.fixture
def everything(here: Place, node: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """The project with the reference server as `it`, over stdio or over streamable HTTP."""
    server = script(node, "everything", "stdio")
    if getattr(request, "param", "stdio") == "stdio":
        here.servers["it"] = server
        yield here
        return
    port = free_port()
    words = [server.command, server.args[0], "streamableHttp"]
    process = subprocess.Popen(words, env={**os.environ, "PORT": str(port)}, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        here.servers["it"] = McpServer(url=f"http://127.0.0.1:{port}/mcp")
        yield here
        here.close()
    finally:
        process.kill()
        process.wait()


def asked(place: Place, server: str, operation: str, progress: Any = None, **params: Any) -> Any:
    return asyncio.run(place.client().call(server, operation, params, "run-1", progress))


def called(place: Place, server: str, tool: str, **args: Any) -> Any:
    return asked(place, server, "call", tool=tool, args=args)


@pytest.mark.requirement("JIT-5", "JIT-12")
def test_a_message_without_a_skill_gets_the_time_of_a_server_that_was_approved(
    tmp_path: Path, home: Path, python: Path
) -> None:
    """As the server declares: without a question if the tool only reads, after a yes otherwise."""
    asked_for = ("time__get_current_time", '{"timezone": "Asia/Tokyo"}')
    with serving() as model:
        file = home / ".config" / "navigator" / "config.toml"
        file.parent.mkdir(parents=True)
        file.write_text(f'router = "local_only"\n{settings(model)}')
        model.scripts["worker"] = lambda messages, _number: (
            Said(text=str(messages[-1]["content"])) if messages[-1]["role"] == "tool" else Said(calls=[asked_for])
        )
        cli = place_in(tmp_path)
        cli.said("mcp", "add", "time", "--", str(python / "mcp-server-time"))
        cli.said("mcp", "approve", "time")
        told = cli.json("ask", "--session", "s", "what time is it in Tokyo right now?")["report"]
        kept = json.loads((home / ".local/state/navigator/mcp-tools.json").read_text())
        (tool,) = (one for one in kept["tools"] if one["name"] == "get_current_time")
        only_reads = tool.get("more", {}).get("annotations", {}).get("read_only_hint") is True
        assert (told["state"] == "success") == only_reads, told
        told = told if only_reads else cli.json("ask", "--session", "s", "yes")["report"]
    assert told["state"] == "success" and "Asia/Tokyo" in told["raw"]


def test_the_time_server_tells_the_time(here: Place, python: Path) -> None:
    here.servers["time"] = McpServer(command=str(python / "mcp-server-time"))
    assert "get_current_time" in [tool["name"] for tool in asked(here, "time", "tools")["tools"]]
    assert (
        called(here, "time", "get_current_time", timezone="Asia/Shanghai")["structured"]["timezone"] == "Asia/Shanghai"
    )
    assert called(here, "time", "get_current_time", timezone="Nowhere/At_All")["is_error"] is True


def test_the_git_server_reads_a_repository(here: Place, python: Path, repository: Path) -> None:
    here.servers["git"] = McpServer(command=str(python / "mcp-server-git"), args=("--repository", str(repository)))
    assert "the first" in called(here, "git", "git_log", repo_path=str(repository))["content"][0]["text"]


@pytest.mark.requirement("AGT-9", "SAF-1")
def test_the_filesystem_server_reads_what_it_was_given_and_nothing_else(
    here: Place, node: Path, repository: Path
) -> None:
    here.servers["files"] = script(node, "filesystem", str(repository))
    assert called(here, "files", "read_text_file", path=str(repository / "a.txt"))["content"][0]["text"] == "hello\n"
    with pytest.raises(PermissionDenied, match="outside allowed directories"):
        called(here, "files", "read_text_file", path="/etc/hostname")
    with pytest.raises(PermissionDenied, match="read-only"):
        called(here, "files", "write_file", path=str(repository / "b.txt"), content="x")
    assert sorted(path.name for path in repository.iterdir()) == [".git", "a.txt"]


def test_the_memory_server_keeps_its_graph_in_its_own_folder(here: Place, node: Path) -> None:
    here.servers["memory"] = script(node, "memory", MEMORY_FILE_PATH="${SERVER_FOLDER}/memory.jsonl")
    thing = {"name": "tea", "entityType": "drink", "observations": ["green"]}
    called(here, "memory", "create_entities", entities=[thing])
    here.close()
    assert called(here, "memory", "read_graph")["structured"]["entities"] == [thing]
    assert (here.workspace("mcp-memory") / "memory.jsonl").exists()


@pytest.mark.parametrize("everything", KINDS, indirect=True)
def test_it_lists_reads_prompts_and_calls(everything: Place) -> None:
    listed = asked(everything, "it", "list")
    assert len(listed["resources"]) >= 7
    assert [one["uri_template"] for one in listed["templates"]] == [
        "demo://resource/dynamic/text/{resourceId}",
        "demo://resource/dynamic/blob/{resourceId}",
    ]
    assert "Resource 1" in asked(everything, "it", "read", uri=TEXT)["contents"][0]["text"]
    assert "simple-prompt" in [one["name"] for one in asked(everything, "it", "prompts")["prompts"]]
    (message,) = asked(everything, "it", "prompt", prompt="args-prompt", args={"city": "Oslo"})["messages"]
    assert "Oslo" in message["content"]["text"]
    assert called(everything, "it", "get-sum", a=2, b=3)["content"][0]["text"].endswith("5.")


@pytest.mark.requirement("AGT-9")
@pytest.mark.parametrize("everything", KINDS, indirect=True)
@cases("operation, params, nearest")
def test_a_name_that_is_not_there_comes_with_the_nearest(
    everything: Place, operation: str, params: dict[str, str], nearest: str
) -> None:
    with pytest.raises(ResourceNotFound) as caught:
        asked(everything, "it", operation, **params)
    assert caught.value.data["available"][0] == nearest


@pytest.mark.parametrize("everything", KINDS, indirect=True)
def test_the_progress_of_a_tool_call_is_reported(everything: Place) -> None:
    seen: list[tuple[float, float | None]] = []

    async def progress(done: float, of: float | None, _message: str | None) -> None:
        seen.append((done, of))

    asked(everything, "it", "call", progress, tool="trigger-long-running-operation", args={"duration": 1, "steps": 4})
    assert seen == [(float(at), 4.0) for at in range(1, 5)]


@pytest.mark.parametrize("everything", KINDS, indirect=True)
def test_fifty_calls_side_by_side(everything: Place) -> None:
    client = everything.client()

    async def all_of_them() -> list[Any]:
        calls = ({"tool": "echo", "args": {"message": f"number {at}"}} for at in range(50))
        answers: list[Any] = await asyncio.gather(*(client.call("it", "call", params, "run-1") for params in calls))
        return answers

    texts = [one["content"][0]["text"] for one in asyncio.run(all_of_them())]
    assert texts == [f"Echo: number {at}" for at in range(50)]


@pytest.mark.requirement("AGT-9")
def test_killed_while_it_works_it_is_a_failed_connection_and_there_again(everything: Place) -> None:
    folder, client, begun = everything.workspace("mcp-it"), everything.client(), threading.Event()

    async def progress(_done: float, _of: float | None, _message: str | None) -> None:
        begun.set()

    async def killed() -> None:
        params = {"tool": "trigger-long-running-operation", "args": {"duration": 120, "steps": 120}}
        call = asyncio.create_task(client.call("it", "call", params, "run-1", progress))
        assert await asyncio.to_thread(begun.wait, 60)
        for process in working_in(folder):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        await call

    with pytest.raises(ConnectionFailed):
        asyncio.run(killed())
    assert called(everything, "it", "echo", message="again")["content"][0]["text"] == "Echo: again"


@pytest.mark.requirement("AGT-9", "RET-10")
def test_one_that_falls_silent_is_a_timeout_and_is_ended(everything: Place) -> None:
    folder = everything.workspace("mcp-it")
    assert called(everything, "it", "echo", message="x")["is_error"] is False
    for process in working_in(folder):
        os.kill(process, signal.SIGSTOP)
    report = everything.ask("mcp", "it", "call", server="it", tool="echo", args={"message": "y"}, timeout=1)
    assert (report.state, report.data["elapsed"]) == ("timeout", 1)
    end = time.monotonic() + 10
    while working_in(folder) and time.monotonic() < end:
        time.sleep(0.05)
    assert working_in(folder) == set()
    assert called(everything, "it", "echo", message="again")["content"][0]["text"] == "Echo: again"


def test_a_flood_of_its_log_does_no_harm(everything: Place) -> None:
    called(everything, "it", "toggle-simulated-logging")
    for at in range(100):
        assert called(everything, "it", "echo", message=str(at))["content"][0]["text"] == f"Echo: {at}"


@pytest.mark.parametrize("everything", KINDS, indirect=True)
def test_a_watched_resource_is_read_again_after_an_update_notification(everything: Place) -> None:
    client = everything.client()

    async def twice() -> list[Any]:
        seen = []
        watched = client.watch("it", TEXT, "run-1")
        async for read in watched:
            seen.append(read)
            if len(seen) == 2:
                break
            await client.call("it", "call", {"tool": "toggle-subscriber-updates"}, "run-1")
        await watched.aclose()
        return seen

    first, second = asyncio.run(asyncio.wait_for(twice(), 30))
    assert (first["uri"], second["uri"]) == (TEXT, TEXT)
    assert all("plaintext resource" in read["contents"][0]["text"] for read in (first, second))


@pytest.mark.requirement("AGT-9")
def test_one_that_dies_while_it_is_watched_is_a_failed_connection(everything: Place) -> None:
    client, folder = everything.client(), everything.workspace("mcp-it")

    async def watched() -> None:
        async for _ in client.watch("it", TEXT, "run-1"):
            for process in working_in(folder):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    with pytest.raises(ConnectionFailed):
        asyncio.run(asyncio.wait_for(watched(), 30))


@pytest.mark.parametrize("everything", KINDS, indirect=True)
def test_an_elicitation_request_asks_the_person_and_the_answer_reaches_the_server(everything: Place) -> None:
    with pytest.raises(InputNeeded) as caught:
        called(everything, "it", "trigger-elicitation-request")
    key = caught.value.data["key"]
    assert "name" in caught.value.data["fields"]
    answers = {key: {"name": "Ann"}}
    told = asked(everything, "it", "call", tool="trigger-elicitation-request", args={}, answers=answers)
    assert "Ann" in str(told["content"])


def test_tools_that_need_sampling_are_not_offered(everything: Place) -> None:
    names = [tool["name"] for tool in asked(everything, "it", "tools")["tools"]]
    assert ("echo" in names, [name for name in names if "sampling" in name]) == (True, [])
