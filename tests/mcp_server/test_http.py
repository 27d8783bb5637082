"""Over HTTP, a client with the token gets the same server; a page of another origin or host name gets nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client

from cli.support import Place, environment, place_in
from mcp import Client
from mcp_server.hosts import called, every
from tables import table

TOKEN = "a-made-up-token-for-this-test"
HELLO = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}'


@pytest.fixture
def here(tmp_path: Path, home: Path) -> Place:
    return place_in(tmp_path)


@contextmanager
def serving(here: Place, token: str = TOKEN) -> Iterator[str]:
    argv = [*here.program, "--root", str(here.root), "mcp", "serve", "--http", "--port", "0", "--json"]
    env = environment({"NAVIGATOR_MCP_TOKEN": token} if token else {})
    with subprocess.Popen(argv, cwd=here.root, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")["url"]
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) in {0, -signal.SIGTERM}
        finally:
            process.kill()


def status(url: str, headers: Mapping[str, str]) -> int:
    said = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, HELLO, said), timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.wide
def test_a_host_with_the_token_gets_what_it_gets_over_stdio(here: Place) -> None:
    async def run(url: str) -> tuple[str, list[str]]:
        said = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=said) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            told, _ = await called(client, "route", message="please review this code")
            return told["entity"], [entry["frontmatter"]["name"] for entry in await every(client)]

    with serving(here) as url:
        entity, names = asyncio.run(asyncio.wait_for(run(url), 30))
    assert entity == "code-review" and "code-review" in names


REFUSED: Sequence[tuple[Mapping[str, str], int]] = table(__file__, "REFUSED")


@pytest.mark.wide
def test_without_the_token_or_from_elsewhere_there_is_nothing(here: Place) -> None:
    with serving(here) as url:
        assert [(headers, status(url, headers)) for headers, _ in REFUSED] == list(REFUSED)


@pytest.mark.wide
def test_a_token_is_made_once_and_only_its_owner_may_read_it(here: Place, home: Path) -> None:
    file = home / ".local" / "state" / "navigator" / "mcp-token"
    with serving(here, "") as url:
        first = file.read_text().strip()
        assert status(url, {"Authorization": f"Bearer {first}", "Origin": "http://evil.example"}) == 403
    assert (len(first) >= 40, stat.S_IMODE(file.stat().st_mode)) == (True, 0o600)
    with serving(here, ""):
        assert file.read_text().strip() == first


@pytest.mark.wide
def test_a_port_in_use_is_reported_as_an_error_without_the_token(here: Place) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = here.run("mcp", "serve", "--http", "--port", port, env={"NAVIGATOR_MCP_TOKEN": TOKEN, **os.environ})
    assert (done.code, "cannot listen" in done.err, TOKEN in done.err + done.out) == (1, True, False)
