"""A way to a server on this machine that a test can cut without any side being told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Link:
    """Passes bytes on to the server at `target`; while it `is_cut`, they wait. `port` is where it listens."""

    def __init__(self, target: int) -> None:
        self.target, self.port, self.is_cut = target, 0, False
        self.is_open, self._pipes = threading.Event(), set[asyncio.Task[None]]()

    async def serve(self, end: asyncio.Event) -> None:
        server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self.is_open.set()
        await end.wait()
        server.close()
        for pipe in self._pipes:
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        pipes = [asyncio.ensure_future(self._pipe(*ends)) for ends in ((reader, back), (there, writer))]
        self._pipes.update(pipes)
        await asyncio.wait(pipes, return_when=asyncio.FIRST_COMPLETED)
        for end in (back, writer):
            end.close()

    async def _pipe(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                while self.is_cut:  # noqa: ASYNC110 - bytes that wait
                    await asyncio.sleep(0.02)
                sink.write(data)
                await sink.drain()


@contextmanager
def link_to(target: int) -> Iterator[Link]:
    """A link in a thread of its own, for the block."""
    link, loop, end = Link(target), asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(link.serve(end),))
    thread.start()
    try:
        assert link.is_open.wait(10)
        yield link
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
        loop.close()
