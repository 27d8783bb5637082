"""Talks to configured MCP servers over stdio with the official SDK (AGT-4); one connection a call for now."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from navigator_kernel.errors import FetchFailed, KernelError, NotFound, NotLoadable, UsageProblem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp import Client
    from navigator_kernel.settings import McpServer


OPERATIONS: Mapping[str, str] = {"list": "", "read": "uri", "tools": "", "call": "tool"}  # with what each needs


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioServers:
    """Implements `ports.McpServers`. `started` is asked for the argv that starts a server for a run, in a folder of the
    server's own: it refuses what nobody agreed to, and contains the rest."""

    servers: Mapping[str, McpServer]
    started: Callable[[str, McpServer, str, Path], tuple[str, ...]]
    workspace: Callable[[str], Path]

    def names(self) -> Sequence[str]:
        return sorted(self.servers)

    async def call(self, server: str, operation: str, params: Mapping[str, Any], run: str) -> Mapping[str, Any]:
        """`list` → {resources}, `read` → {contents}, `tools` → {tools}, `call` → {content, is_error}."""
        held = self.servers.get(server)
        if held is None:
            names = list(self.names())
            hint = f"configured: {', '.join(names) or 'none'}"
            raise NotFound(f"no MCP server is called {server!r}", hint=hint, available=names)
        _checked(operation, params)
        folder = self.workspace(f"mcp-{server}")
        argv = self.started(server, held, run, folder)
        async with _connected(server, argv, held.env, folder) as client:
            return await _perform(client, server, operation, params)


def _checked(operation: str, params: Mapping[str, Any]) -> None:
    """UsageProblem for an operation that is none, or that lacks what it needs, before anything is started."""
    if operation not in OPERATIONS:
        raise _unknown(operation)
    needed = OPERATIONS[operation]
    if needed and not isinstance(params.get(needed), str):
        raise UsageProblem(f"the MCP operation {operation!r} needs {needed!r}", hint=f"name the {needed}")


def _unknown(operation: str) -> UsageProblem:
    return UsageProblem(f"no MCP operation is called {operation!r}", hint=f"one of: {', '.join(OPERATIONS)}")


@asynccontextmanager
async def _connected(name: str, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> AsyncIterator[Client]:
    try:
        from mcp import Client, StdioServerParameters, stdio_client
    except ImportError as error:
        hint = "pip install 'navigator-kernel[mcp]'"
        raise NotLoadable("MCP needs the extra 'mcp', which is not installed", hint=hint) from error
    own = {"HOME": str(cwd), "TMPDIR": str(cwd)}  # the person's is not there
    params = StdioServerParameters(command=argv[0], args=list(argv[1:]), env={**own, **env}, cwd=cwd)
    with _nowhere() as nowhere:
        try:
            async with Client(stdio_client(params, errlog=nowhere), mode="legacy") as client:
                yield client
        except BaseExceptionGroup as group:
            raise _first(group, name) from group
        except OSError as error:
            message = f"the MCP server {name!r} cannot be started: {error}"
            raise FetchFailed(message, hint="check its command") from error


def _nowhere() -> TextIO:
    """Where a server's own log goes for now."""
    return Path(os.devnull).open("w", encoding="utf-8")


async def _perform(client: Client, server: str, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
    from mcp import MCPError

    try:
        match operation:
            case "list":
                found = await client.list_resources()
                names = ("uri", "name", "description", "mime_type")
                return {"resources": [_plain(item, names) for item in found.resources]}
            case "tools":
                tools = await client.list_tools()
                return {"tools": [_plain(item, ("name", "description")) for item in tools.tools]}
            case "read":
                read = await client.read_resource(params["uri"])
                return {"uri": params["uri"], "contents": [item.model_dump(mode="json") for item in read.contents]}
            case "call":
                answer = await client.call_tool(params["tool"], dict(params.get("args", {})))
                content = [item.model_dump(mode="json", exclude_none=True) for item in answer.content]
                return {"tool": params["tool"], "content": content, "is_error": bool(answer.is_error)}
            case _:
                raise _unknown(operation)
    except MCPError as error:
        await _explained(client, server, operation, params, error)


async def _explained(
    client: Client, server: str, operation: str, params: Mapping[str, Any], error: Exception
) -> NoReturn:
    """AGT-9: what is there instead of what was not found."""
    if operation == "read":
        available = [str(item.uri) for item in (await client.list_resources()).resources]
        raise NotFound(f"ResourceNotFound: {params.get('uri')!r} on {server!r}", hint=str(error), available=available)
    raise FetchFailed(f"the MCP server {server!r} refused {operation!r}: {error}", hint="see its documentation")


def _plain(item: Any, names: Sequence[str]) -> dict[str, Any]:
    return {name: str(value) for name in names if (value := getattr(item, name, None)) is not None}


def _first(group: BaseExceptionGroup[BaseException], name: str) -> BaseException:
    """The one exception that a task group wrapped; a KernelError as it is."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, KernelError) or not isinstance(error, Exception):
        return error
    return FetchFailed(f"ConnectionFailed: the MCP server {name!r}: {error}", hint="check its command and its log")
