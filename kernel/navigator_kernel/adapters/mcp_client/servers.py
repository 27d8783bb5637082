"""Calls configured MCP servers with the official SDK, over stdio and streamable HTTP (AGT-4, AGT-9).

All connections run on a thread of their own, whichever thread asks, and end with the process; each has one owner.
"""

from __future__ import annotations

import asyncio
import atexit
import difflib
import json
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct, field

from navigator_kernel.adapters.files.scratch import new_scratch
from navigator_kernel.errors import ConnectionFailed, InvalidURI, NotFound, NotLoadable, UsageProblem
from navigator_kernel.text import numbered

if TYPE_CHECKING:
    from navigator_kernel.adapters.mcp_client.connection import Connection
    from navigator_kernel.values.mcp import McpServer, OfferedTool


# Each operation with its required parameter
OPERATIONS: Mapping[str, str] = {
    "list": "", "read": "uri", "tools": "", "call": "tool", "prompts": "", "prompt": "prompt", "skills": "",
}  # fmt: skip
SAFE = ("list", "read", "tools", "prompts", "prompt", "skills")  # operations that can be repeated
LARGE = 1024 * 1024  # bytes of an answer that are passed on; a file keeps a longer answer as a whole
FAILURES, REST = 3, 30.0  # consecutive failures of a connection, and the seconds without another attempt after them


class _Breaker(Struct):
    failures: int = 0
    until: float = 0.0


class Servers(Struct, frozen=True, kw_only=True):
    """The servers of a project. `started` returns the argv and environment that start a server for a run, in a
    folder of the server's own, and a function that says whether its process is over a limit. It refuses a server that
    nobody agreed to, and confines the others; for a server with an address all of it is empty. `approve` is called
    before a tool; `keep` stores a large answer of a run and returns its path."""

    servers: Mapping[str, McpServer]
    started: Callable[
        [str, McpServer, str, Path, Path], tuple[tuple[str, ...], Mapping[str, str], Callable[[int], str]]
    ]
    workspace: Callable[[str], Path]
    approve: Callable[[str, str, Sequence[OfferedTool]], None]
    secret: Callable[[str], str | None]
    keep: Callable[[str, str, bytes], Path]
    _open: dict[str, Connection] = field(default_factory=dict)
    _breakers: dict[str, _Breaker] = field(default_factory=dict)

    def names(self) -> Sequence[str]:
        return sorted(self.servers)

    async def call(
        self, server: str, operation: str, params: Mapping[str, Any], run: str, progress: Any = None
    ) -> Mapping[str, Any]:
        """`list` → {resources, templates}, `read` → {contents}, `tools` → {tools}, `call` → {content, is_error},
        `prompts` → {prompts}, `prompt` → {messages}, `skills` → {skills}. Over `LARGE` bytes an answer is cut and
        `truncated`; `file` has all of it."""
        _checked(operation, params)
        opened = self._opener(server, run)

        def approve(tool: str, tools: Sequence[OfferedTool]) -> None:
            self.approve(run, tool, tools)

        async def asked() -> dict[str, Any]:
            # Runs on the connections' thread. If a connection fails, an operation in `SAFE` is asked once more
            from navigator_kernel.adapters.mcp_client.connection import perform

            for again in (operation in SAFE, False):
                link, client = await self._connected(server, opened)
                try:
                    answer = await perform(link, client, operation, params, approve, progress)
                except asyncio.CancelledError:
                    thread().aside(link.still_there(client))
                    raise
                except ConnectionFailed:
                    self._failed(server)
                    if not again:
                        raise
                    continue
                self._breakers.pop(server, None)
                return answer
            raise AssertionError("the second time raises")

        answer = await thread().run(asked())
        body = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
        if len(body) <= LARGE:
            return answer
        file = self.keep(run, server, body)
        return {**_shortened(answer, [LARGE]), "truncated": True, "size": len(body), "file": str(file)}

    async def watch(self, server: str, uri: str, run: str) -> AsyncGenerator[Mapping[str, Any], None]:
        """Yields the contents of a resource, now and after each change that the server reports."""
        _checked("read", {"uri": uri})
        opened = self._opener(server, run)
        connection = await thread().run(self._subscribed(server, opened, uri))
        try:
            while True:
                yield await self.call(server, "read", {"uri": uri}, run)
                await thread().run(_changed(connection, uri))
        finally:
            connection.changed.pop(uri, None)

    def close(self) -> None:
        """Ends every server that this object started."""
        connections = tuple(self._open.values())
        self._open.clear()
        if connections:
            thread().close(connections)

    def _opener(self, server: str, run: str) -> Callable[[Any], Any]:
        """Returns the function that opens the transport; `started` refuses a server that nobody agreed to."""
        configured = self.servers.get(server)
        if configured is None:
            names = list(self.names())
            nearest = difflib.get_close_matches(server, names, 1)
            hint = f"configured: {', '.join(nearest + [name for name in names if name not in nearest]) or 'none'}"
            raise NotFound(f"no MCP server is called {server!r}", hint=hint, available=names)
        folder = self.workspace(f"mcp-{server}")
        scratch = new_scratch()
        argv, env, exceeded = self.started(server, configured, run, folder, scratch)
        try:
            from navigator_kernel.adapters.mcp_client import connection
        except ImportError as error:
            hint = "pip install 'navigator-kernel[mcp]'"
            raise NotLoadable("MCP needs the extra 'mcp', which is not installed", hint=hint) from error
        if configured.url:
            return lambda state: connection.address_of(configured.resolved(self.secret), state)
        return lambda state: connection.process_of(connection.StdioParams(argv, env, folder, scratch, exceeded), state)

    async def _connected(self, server: str, opened: Callable[[Any], Any]) -> tuple[Connection, Any]:
        from navigator_kernel.adapters.mcp_client.connection import Connection

        link = self._open.get(server)
        if link is None or not link.alive:
            breaker = self._breakers.get(server, _Breaker())
            if breaker.failures >= FAILURES and (rest := breaker.until - time.monotonic()) > 0:
                message = f"the MCP server {server!r} failed {breaker.failures} times one after another"
                raise ConnectionFailed(message, hint=f"it will not be contacted for {numbered(round(rest), 'second')}")
            limit = self.servers[server].connect
            link = Connection(name=server, opened=opened, limit=limit, running=thread().open)
            self._open[server] = link
        try:
            return link, await link.client()
        except ConnectionFailed:
            if self._open.get(server) is link:  # of several waiting callers, only the first counts the failure
                del self._open[server]
                self._failed(server)
            raise

    async def _subscribed(self, server: str, opened: Callable[[Any], Any], uri: str) -> Connection:
        from navigator_kernel.adapters.mcp_client.connection import subscribe

        link, client = await self._connected(server, opened)
        link.changed[uri] = asyncio.Event()
        await subscribe(link, client, uri)
        return link

    def _failed(self, server: str) -> None:
        breaker = self._breakers.setdefault(server, _Breaker())
        breaker.failures += 1
        breaker.until = time.monotonic() + REST


def _checked(operation: str, params: Mapping[str, Any]) -> None:
    """UsageProblem for an unknown operation, or for one that lacks its parameter, before anything is started."""
    if operation not in OPERATIONS:
        raise UsageProblem(f"no MCP operation is called {operation!r}", hint=f"one of: {', '.join(OPERATIONS)}")
    needed = OPERATIONS[operation]
    if needed and not isinstance(params.get(needed), str):
        raise UsageProblem(f"the MCP operation {operation!r} needs {needed!r}", hint=f"name the {needed}")
    if operation == "read":
        uri = params["uri"]
        try:
            split = urlsplit(uri)
            well = bool(split.scheme and (split.netloc or split.path)) and uri.isprintable() and " " not in uri
        except ValueError:
            well = False
        if not well:
            raise InvalidURI(f"InvalidURI: {uri!r} is not a URI", hint="scheme:path, such as file:///notes/one.md")


def _shortened(value: Any, room: list[int]) -> Any:
    """The beginning of `value`, in `room` bytes or a little more."""
    if isinstance(value, str):
        text = value[: max(room[0], 0)]
        room[0] -= len(text.encode("utf-8", "replace"))
        return text
    room[0] -= 8
    if isinstance(value, Mapping):
        return {name: _shortened(item, room) for name, item in value.items() if room[0] > 0}
    if isinstance(value, list):
        return [_shortened(item, room) for item in value if room[0] > 0]
    return value


async def _changed(connection: Connection, uri: str) -> None:
    """Returns when the server reports a change; ConnectionFailed if the server goes away."""
    changed = connection.changed[uri]
    ends = [asyncio.ensure_future(event.wait()) for event in (changed, connection.state.gone)]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for end in ends:
            end.cancel()
    if not changed.is_set():
        raise connection.lost()
    changed.clear()


# The event loop of all MCP connections of this process, in a thread of its own.

T = TypeVar("T")
CLOSING = 6.0  # seconds in which all servers together must exit


class Thread:
    """Runs the event loop, from its first use on. `open` are the connections whose processes may still be running."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.open: set[Connection] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        threading.Thread(target=self.loop.run_forever, name="navigator-mcp", daemon=True).start()
        atexit.register(lambda: self.close(tuple(self.open)))  # daemon threads still run then

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` in the thread; cancelling the caller cancels it, too."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def aside(self, work: Coroutine[Any, Any, None]) -> None:
        """Starts `work` from within the thread, without waiting for it."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self, connections: Iterable[Connection]) -> None:
        """Ends the connections; returns when their processes have ended, or after `CLOSING` seconds."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_all_left(tuple(connections)), self.loop).result(CLOSING)


@cache
def thread() -> Thread:
    return Thread()


async def _all_left(connections: Iterable[Connection]) -> None:
    await asyncio.gather(*(connection.left() for connection in connections))
