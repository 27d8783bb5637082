"""The event loop of all MCP connections of this process, in a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from functools import cache
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
CLOSING = 6.0  # seconds in which all servers together must exit


class Connection(Protocol):
    """A connection to a server, which can be ended."""

    async def left(self) -> None:
        """Ends the connection; returns when its process has ended."""


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
