"""Runs an MCP server's process as a transport of the SDK.

The SDK's own transport copies a long line with every piece of it, keeps no log, and leaves processes that left the
process group. Here a line has a limit, the end of stderr is kept in memory, and no process of the tree outlives the
connection.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter
from msgspec import Struct, field

from navigator_kernel.adapters.files.scratch import make_scratch, remove_scratch_aside
from navigator_kernel.adapters.processes.process import MARK, kill_tree
from navigator_kernel.text import clean, shorten

LINE = 128 * 1024 * 1024  # bytes of one message; a longer one ends the connection
LOG = 64 * 1024  # bytes of stderr that are kept
UNASKED = 10_000  # requests and notifications between two answers
UNREADABLE = 100  # lines that are not messages
LOOK = 0.5  # seconds between two checks of a server's resource use
PATIENCE = 1.0  # seconds in which a server can exit by itself, and again after SIGTERM


class StdioParams(NamedTuple):
    """How a server is started: in `cwd`, its own folder, with a scratch folder made for this process; consent to that
    was checked before. `exceeded` returns the limit that the process with the given id exceeds, or an empty string."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    scratch: Path
    exceeded: Callable[[int], str]


class ServerState(Struct):
    """Facts about a server besides its answers: the end of its stderr, why its connection ended, and whether it refused
    access."""

    why: str = ""
    refused: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    _log: bytearray = field(default_factory=bytearray)

    def hear(self, chunk: bytes) -> None:
        self._log += chunk
        del self._log[:-LOG]

    def last_words(self) -> str:
        """The last line of the log that is not blank."""
        written = (clean(line).strip() for line in reversed(self._log.decode("utf-8", "replace").splitlines()))
        return shorten(next((line for line in written if line), ""), 300)


@asynccontextmanager
async def process_of(start: StdioParams, state: ServerState) -> AsyncIterator[tuple[Any, Any]]:
    """The two streams for the SDK's client; OSError if the process cannot be started."""
    mark = secrets.token_hex(16)
    lock = make_scratch(start.scratch)
    try:
        async with _running(start, mark, state) as streams:
            yield streams
    finally:
        await remove_scratch_aside(start.scratch, lock)


@asynccontextmanager
async def _running(start: StdioParams, mark: str, state: ServerState) -> AsyncIterator[tuple[Any, Any]]:
    process: Any = await asyncio.create_subprocess_exec(
        *start.argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=start.cwd,
        env={**start.env, MARK: mark},
        limit=LINE,
        start_new_session=True,
    )
    try:
        heard, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, said = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as group:
            group.start_soon(_hear, process.stdout, heard, state)
            group.start_soon(_say, process.stdin, said, state)
            group.start_soon(_drain, process.stderr, state.hear)
            group.start_soon(_watch, start, process.pid, mark, state)
            try:
                yield incoming, outgoing
            finally:
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _ended(process, mark)


async def _hear(lines: asyncio.StreamReader, heard: Any, state: ServerState) -> None:
    """Passes on each line as a message, and sets `state.gone` when there will be no more."""
    unasked = unreadable = 0
    try:
        async with heard:
            while line := await lines.readline():
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except (ValueError, RecursionError):
                    unreadable += 1
                    if unreadable > UNREADABLE:
                        state.why = f"{unreadable} lines from it are not messages"
                        return
                    await asyncio.sleep(0)
                    continue
                unasked = unasked + 1 if isinstance(message, JSONRPCNotification | JSONRPCRequest) else 0
                if unasked > UNASKED:
                    state.why = f"it sent {unasked} messages that nobody asked for"
                    return
                await heard.send(SessionMessage(message))
    except ValueError:
        state.why = f"it sent a message of more than {LINE // 1024**2} MiB"
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        return  # the session has ended
    finally:
        state.gone.set()


async def _say(stdin: asyncio.StreamWriter, said: Any, state: ServerState) -> None:
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with said:
            async for message in said:
                line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(line.encode() + b"\n")
                await stdin.drain()
        return
    state.gone.set()


async def _watch(start: StdioParams, pid: int, mark: str, state: ServerState) -> None:
    """Kills a server that exceeds a limit, without asking it to end first. The checks take at most a twentieth of the
    time, however many files there are."""
    limit = ""
    while not limit:
        began = time.monotonic()
        limit = await asyncio.to_thread(start.exceeded, pid)
        await asyncio.sleep(0 if limit else max(LOOK, 19 * (time.monotonic() - began)))
    state.why = f"it went over its limit of {limit}; its files are in {str(start.cwd)!r}"
    await asyncio.to_thread(kill_tree, pid, mark)


async def _drain(stream: asyncio.StreamReader, kept: Any) -> None:
    while chunk := await stream.read(65_536):
        kept(chunk)


async def _ended(process: Any, mark: str) -> None:
    """Ends the process with its children: closes its input, then sends SIGTERM, then kills it."""
    process.stdin.close()
    rest = asyncio.ensure_future(_drain(process.stdout, lambda _chunk: None))  # a full pipe would block its exit
    try:
        for ask in (None, signal.SIGTERM):
            if ask is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, ask)
            if await _exited(process):
                break
        kill_tree(process.pid, mark)
        await _exited(process)
    finally:
        rest.cancel()
        with suppress(asyncio.CancelledError, OSError):
            await rest
        transport = getattr(process, "_transport", None)  # another process that holds a pipe keeps it open
        if transport is not None:
            transport.close()


async def _exited(process: Any) -> bool:
    """Whether the process has exited within PATIENCE; not by `wait`, which also waits for the pipes."""
    end = time.monotonic() + PATIENCE
    while True:
        if process.returncode is not None or time.monotonic() >= end:
            return process.returncode is not None
        await asyncio.sleep(0.01)
