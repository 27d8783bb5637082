"""The protocol over stdin and stdout: one JSON message a line, and nothing else on stdout."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from acp import run_agent

from navigator_kernel.errors import UsageProblem

if TYPE_CHECKING:
    from navigator_acp.agent import KernelAgent

LONGEST = 16 * 1024 * 1024  # bytes of a message


class Lines:
    """Implements the library's `Transport`. Input that is not a message gets a JSON-RPC error and is skipped."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._closed = False

    async def send(self, message: dict[str, Any]) -> None:
        """Sends a message, or drops it after `close`, when nobody reads any more."""
        if not self._closed:
            self._writer.write(f"{json.dumps(message, separators=(',', ':'))}\n".encode())
            await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        while True:
            try:
                line = await self._reader.readline()
                if not line:
                    return None
                if not line.strip():
                    continue
                message = json.loads(line)
            except (ValueError, RecursionError):  # too long, or not JSON
                await self._refuse(-32700, "Parse error")
                continue
            if isinstance(message, dict) and _is_message(message):
                return message
            await self._refuse(-32600, "Invalid request")

    async def close(self) -> None:
        self._closed = True
        self._writer.close()

    async def _refuse(self, code: int, text: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}})


def _is_message(value: dict[str, Any]) -> bool:
    """Whether the library can process it; one that it cannot process would end the library's loop."""
    if not isinstance(value.get("id"), (str, int, float, type(None))) or not isinstance(value.get("method", ""), str):
        return False
    return "method" in value or ("id" in value and isinstance(value.get("error"), (dict, type(None))))


async def serve(agent: KernelAgent) -> None:
    """Answers until stdin ends or SIGTERM or SIGHUP arrives; then all work in progress ends, with its processes.

    UsageProblem if stdin or stdout is neither a pipe nor a socket.
    """
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, cast("asyncio.Task[Any]", task).cancel)
    with suppress(asyncio.CancelledError):  # a signal ends the process
        incoming, outgoing = _own_pipes()
        reader = asyncio.StreamReader(limit=LONGEST)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(incoming, "rb"))
        flow = asyncio.StreamReaderProtocol(asyncio.StreamReader())  # its flow control waits for a slow reader
        transport, _ = await loop.connect_write_pipe(lambda: flow, os.fdopen(outgoing, "wb"))
        await run_agent(cast("Any", agent), Lines(reader, asyncio.StreamWriter(transport, flow, None, loop)))


def _own_pipes() -> tuple[int, int]:
    """Copies stdin and stdout for the protocol alone. Other output to stdout then goes to stderr, and other readers
    find stdin empty."""
    out = sys.stdout.fileno()  # 1, or what is kept from plugins
    if not all(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in (os.fstat(0).st_mode, os.fstat(out).st_mode)):
        hint = "an editor starts this command: docs/guides/editors.md"
        raise UsageProblem("stdin and stdout have to be pipes", hint=hint)
    sys.stdout.flush()
    pipes = os.dup(0), os.dup(out)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return pipes
