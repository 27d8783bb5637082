"""The events of runs in progress, for any number of readers: each reader has a position in one list, not a queue."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from navigator_kernel.errors import NotFound
from navigator_kernel.events import RunStarted
from navigator_kernel.gateway.streams.page_events import LAST, Frames

if TYPE_CHECKING:
    from navigator_kernel.adapters.stores.run_log import RunLog
    from navigator_kernel.events import Event


RECENT = 10_000  # events of all runs kept for readers that fell behind
LOOK = 0.3  # seconds between two looks at the log of a run that another process carries out
QUIET = 15.0  # seconds without an event of such a run, after which its readers get a sign of life
SAVING = 3.0  # seconds for another process to save the session after a run's last event


class Feed:
    """The events of one run, in order. `put` is called on the turn's thread, everything else on the loop's thread,
    where `told` is called with each event. `frames` are the frames for readers, by the session's name and the choice of
    events: many readers share them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, told: Callable[[Event], None] = lambda _event: None) -> None:
        self.events: list[Event] = []
        self.ended = False
        self.frames: dict[tuple[str, str], Frames] = {}
        self._last: Event | None = None
        self._told, self._passed = told, 0
        self._loop = loop
        self._is_called = False
        self._waiting: set[asyncio.Future[None]] = set()

    def put(self, event: Event) -> None:
        """Adds an event; the last one is kept back until `end`, so that its readers find the session's final state."""
        if isinstance(event.body, LAST):
            self._last = event
            return
        self.events.append(event)
        self._call()

    def end(self) -> None:
        """Ends the feed; called after the turn has ended and its results are written."""
        if self._last is not None:
            self.events.append(self._last)
        self.ended = True
        self._call()

    def wake(self) -> None:
        """Wakes every reader: for new events, or because its stream has to end or to send a sign of life."""
        self._is_called = False
        while self._passed < len(self.events):
            self._told(self.events[self._passed])
            self._passed += 1
        _release(self._waiting)

    async def read(self) -> AsyncIterator[Sequence[Event]]:
        """All events from the first to the last, in batches; an empty batch from time to time, for a sign of life."""
        at = 0
        while True:
            if news := self.events[at:]:
                at += len(news)
                yield news
                continue
            if self.ended:
                return
            await self.wait()
            if at == len(self.events) and not self.ended:
                yield ()

    async def wait(self) -> None:
        """Waits for the next `wake`. The caller must have read all events before, without an `await` in between."""
        future = self._loop.create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)

    def _call(self) -> None:
        """Schedules one call of `wake` for all events since the last one."""
        if self._is_called:
            return
        self._is_called = True
        try:
            self._loop.call_soon_threadsafe(self.wake)
        except RuntimeError:  # the loop is closed: nobody reads any more
            return


def _release(waiting: set[asyncio.Future[None]]) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)
    waiting.clear()


class Told(NamedTuple):
    """An event with its number among those of all runs, and the session that it belongs to."""

    number: int
    session: str
    event: Event


class Feeds:
    """The feeds of the runs in progress. `is_busy` says whether any process takes a turn of a session."""

    def __init__(self, log: RunLog, is_busy: Callable[[str], bool]) -> None:
        self._log, self._is_busy = log, is_busy
        self._feeds: dict[str, Feed] = {}
        self._recent: deque[Told] = deque(maxlen=RECENT)
        self._count = 0
        self._waiting: set[asyncio.Future[None]] = set()
        self._is_closed = False
        self.epoch = secrets.token_hex(4)

    def open(self, run: str, session: str) -> Feed:
        def note(event: Event) -> None:
            self._count += 1
            self._recent.append(Told(self._count, session, event))
            _release(self._waiting)

        feed = self._feeds[run] = Feed(asyncio.get_running_loop(), note)
        return feed

    @property
    def last(self) -> int:
        """The number of the newest event of all runs; numbers start at 1 in each process, which `epoch` identifies."""
        return self._count

    async def follow_all(self, after: int) -> AsyncIterator[Told | None]:
        """The events of all runs after the number `after`; None from time to time, for a sign of life."""
        while True:
            first = self._count - len(self._recent)
            news = list(islice(self._recent, max(0, after - first), None))
            for told in news:
                yield told
            after = max(after, first) + len(news) if news else max(after, self._count)
            if self._is_closed:
                return
            if after == self._count:
                future = asyncio.get_running_loop().create_future()
                self._waiting.add(future)
                await future
                if after == self._count and not self._is_closed:
                    yield None

    def wake(self) -> None:
        """Lets every reader send a sign of life."""
        for feed in list(self._feeds.values()):
            feed.wake()
        _release(self._waiting)

    def end(self) -> None:
        """Ends the streams that follow all runs."""
        self._is_closed = True
        _release(self._waiting)

    def close(self, run: str, feed: Feed) -> None:
        """Removes the feed of a run that has ended; new readers get its log."""
        if self._feeds.get(run) is feed:
            del self._feeds[run]

    def find(self, run: str) -> Feed | None:
        return self._feeds.get(run)

    async def follow(self, run: str, after: int = -1) -> AsyncIterator[Sequence[Event]]:
        """The events of `run` to its end, in batches as from `Feed.read`: all after the position `after`, and some
        before it. NotFound if there is no such run."""
        feed = self._feeds.get(run)
        if feed is None:
            async for news in self._logged(run):
                yield news
            return
        is_first = True
        async for news in feed.read():
            if news and is_first:
                is_first = False
                if news[0].seq > after + 1:
                    yield await asyncio.to_thread(self._before, run, news[0].seq)
            yield news

    async def _logged(self, run: str) -> AsyncIterator[Sequence[Event]]:
        """The events of a run that has ended, or that another process carries out: to its last one, or as long as that
        process lives. The last one comes when the session is saved, as in `Feed.put`."""
        news = await asyncio.to_thread(self._log.read, run)
        started = news[0].body
        session, at, quiet = started.session if isinstance(started, RunStarted) else "", news[-1].seq, 0.0
        yield news
        while not (news and isinstance(news[-1].body, LAST)) and not self._is_closed:
            is_busy = await asyncio.to_thread(self._is_busy, session)
            news = await asyncio.to_thread(self._log.read, run, at)
            if news:
                at, quiet, end = news[-1].seq, 0.0, asyncio.get_running_loop().time() + SAVING
                while isinstance(news[-1].body, LAST) and is_busy and asyncio.get_running_loop().time() < end:
                    await asyncio.sleep(LOOK)
                    is_busy = await asyncio.to_thread(self._is_busy, session)
                yield news
            elif not is_busy:
                return
            else:
                await asyncio.sleep(LOOK)
                quiet += LOOK
                if quiet >= QUIET:
                    quiet = 0.0
                    yield ()

    def _before(self, run: str, seq: int) -> list[Event]:
        """The events of the run that a killed process logged, those before `seq`; empty if there are none."""
        try:
            return [event for event in self._log.read(run) if event.seq < seq]
        except NotFound:
            return []
