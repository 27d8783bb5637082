"""The events of runs that are under way, for any number of readers: each has a position in one list, and no queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

from navigator_kernel.errors import NotFound

if TYPE_CHECKING:
    from navigator_kernel.events import Event
    from navigator_kernel.ports import RunLog


class Feed:
    """The events of one run, in order. `put` and `end` are called on the turn's thread, all else on the loop's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.events: list[Event] = []
        self.ended = False
        self._loop = loop
        self._is_called = False
        self._waiting: set[asyncio.Future[None]] = set()

    def put(self, event: Event) -> None:
        self.events.append(event)
        self._call()

    def end(self) -> None:
        self.ended = True
        self._call()

    def wake(self) -> None:
        """Lets every reader look: for news, or because its stream is to end or to send a sign of life."""
        self._is_called = False
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def read(self) -> AsyncIterator[Event | None]:
        """All events from the first to the last; None from time to time, for a sign of life."""
        at = 0
        while True:
            while at < len(self.events):
                yield self.events[at]
                at += 1
            if self.ended:
                return
            await self.wait()
            if at == len(self.events) and not self.ended:
                yield None

    async def wait(self) -> None:
        """Until the next `wake`. The caller has looked at everything before it, without an `await` in between."""
        future = self._loop.create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)

    def _call(self) -> None:
        """One call of the loop for all that came since the last one."""
        if self._is_called:
            return
        self._is_called = True
        try:
            self._loop.call_soon_threadsafe(self.wake)
        except RuntimeError:  # the loop is closed: nobody reads any more
            return


class Feeds:
    """The feeds of the runs that are under way."""

    def __init__(self, log: RunLog) -> None:
        self._log = log
        self._feeds: dict[str, Feed] = {}

    def open(self, run: str) -> Feed:
        held = self._feeds[run] = Feed(asyncio.get_running_loop())
        return held

    def close(self, run: str, feed: Feed) -> None:
        """The run has ended: who comes now reads its log."""
        if self._feeds.get(run) is feed:
            del self._feeds[run]

    def find(self, run: str) -> Feed | None:
        return self._feeds.get(run)

    def all(self) -> Iterator[Feed]:
        return iter(list(self._feeds.values()))

    async def follow(self, run: str, after: int = -1) -> AsyncIterator[Event | None]:
        """The events of `run` behind the position `after`, to its end; None from time to time, for a sign of life.
        NotFound where there is no such run."""
        feed = self._feeds.get(run)
        if feed is None:
            for event in await asyncio.to_thread(self._log.read, run):
                if event.seq > after:
                    yield event
            return
        is_first = True
        async for held in feed.read():
            if held is not None and is_first:
                is_first = False
                for older in await asyncio.to_thread(self._before, run, held.seq) if held.seq > after + 1 else ():
                    if older.seq > after:
                        yield older
            if held is None or held.seq > after:
                yield held

    def _before(self, run: str, seq: int) -> list[Event]:
        """What a process that was killed had logged of the run."""
        try:
            return [event for event in self._log.read(run) if event.seq < seq]
        except NotFound:
            return []
