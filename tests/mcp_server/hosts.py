"""Hosts that talk to `navigator mcp serve`: the official SDK's client, and the methods of the Skills extension."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict

from cli.support import Place, environment
from mcp import Client, StdioServerParameters

T = TypeVar("T")
ERAS = ("auto", "legacy")  # the protocol of 2026-07-28, and earlier versions


class AnyParams(types.RequestParams):
    """The parameters of a method of the extension."""

    uri: str | None = None
    cursor: str | None = None


class AnyRequest(types.Request[AnyParams, Literal["skills/list", "skills/get", "resources/directory/read"]]):
    """A request for a method of the extension."""

    method: Literal["skills/list", "skills/get", "resources/directory/read"]
    params: AnyParams


class AnyResult(types.Result):
    """Any result."""

    model_config = ConfigDict(extra="allow")


def hosted(here: Place, asking: Callable[[Client], Awaitable[T]], era: str = "auto", seconds: float = 60) -> T:
    """The result of `asking` a server that the host starts for the project."""
    program, *words = here.program
    argv = [*words, "--root", str(here.root), "mcp", "serve"]
    params = StdioServerParameters(command=program, args=argv, env=environment(), cwd=here.root)

    async def run() -> T:
        async with asyncio.timeout(seconds):
            async with Client(params, mode=era) as client:
                return await asking(client)

    return asyncio.run(run())


async def called(client: Client, tool: str, **arguments: Any) -> tuple[dict[str, Any], bool]:
    """The structured content of the answer, which equals its text, and whether it is an error."""
    answer = await client.call_tool(tool, arguments)
    (content,) = answer.content
    assert isinstance(content, types.TextContent)
    assert json.loads(content.text) == answer.structured_content
    return dict(answer.structured_content), answer.is_error


def call(here: Place, tool: str, **arguments: Any) -> tuple[dict[str, Any], bool]:
    return hosted(here, lambda client: called(client, tool, **arguments))


async def asked(client: Client, method: Any, **params: Any) -> dict[str, Any]:
    """The result of a method of the extension, as it came over the wire."""
    request = AnyRequest(method=method, params=AnyParams(**params))
    return (await client.session.send_request(request, AnyResult)).model_dump(mode="json", exclude_none=True)


async def every(client: Client) -> list[dict[str, Any]]:
    """All entries, read page by page."""
    found: list[dict[str, Any]] = []
    page = await asked(client, "skills/list")
    found += page["skills"]
    while "nextCursor" in page:
        page = await asked(client, "skills/list", cursor=page["nextCursor"])
        found += page["skills"]
    return found


async def refused(asking: Awaitable[object]) -> int:
    """The protocol's error code for a refused request."""
    with pytest.raises(MCPError) as caught:
        await asking
    return caught.value.error.code


def digest(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
