"""Starts, follows and stops the turns that clients ask for; one at a time in each session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from navigator_kernel.errors import Busy, KernelError, NotFound, Refused
from navigator_kernel.events import Listener, RunStarted
from navigator_kernel.gateway.streams.feeds import Feed, Feeds
from navigator_kernel.gateway.streams.page_events import LAST
from navigator_kernel.values.http.endpoint import Caller, HttpProblem
from navigator_kernel.values.owner import owned, owner_of_session

if TYPE_CHECKING:
    from concurrent.futures import Future

    from navigator_kernel.adapters.stores.run_log import RunLog
    from navigator_kernel.adapters.stores.sessions import TurnQueue
    from navigator_kernel.bootstrap.turns import Turns
    from navigator_kernel.gateway.workers import TurnWorkers
    from navigator_kernel.ports import Ids
    from navigator_kernel.turn.answers import Resumed
    from navigator_kernel.values.reply import Reply
    from navigator_kernel.values.request import Message, Session

Asked = Callable[["Turns"], "tuple[Message, Session]"]


class Run(Struct, frozen=True, kw_only=True):
    """A turn that is under way, or waits for a thread."""

    id: str
    session: str
    feed: Feed
    reply: asyncio.Future[Reply]

    async def begun(self) -> None:
        """Waits for the first event; raises the error that kept the turn from beginning."""
        while not self.feed.events and not self.feed.ended:
            await self.feed.wait()
        if not self.feed.events:
            await asyncio.shield(self.reply)


class Runs:
    """The turns of all clients. `log` contains the runs of other processes, too; `queue` has the turns of all."""

    def __init__(
        self,
        workers: TurnWorkers,
        log: RunLog,
        ids: Ids,
        queue: TurnQueue,
        tracing: Callable[[], Listener] | None = None,
    ) -> None:
        self.feeds = Feeds(log, queue.is_busy)
        self._workers, self._log, self._ids, self._queue = workers, log, ids, queue
        self._tracing = tracing
        self._active: dict[str, Run] = {}
        self._busy: dict[str, str] = {}
        self.is_closing = False
        self.ended: dict[str, int] = {}

    def start(self, session: str | None, asked: Asked, allow: Callable[[Resumed], None] = lambda _resumed: None) -> Run:
        """Starts a turn in `session`, or in a new one; `allow` raises an error if the message may not have the effect
        that it has. Busy if one is under way in it, HttpProblem if the server is ending."""
        if self.is_closing:
            headers = {"Retry-After": "5"}
            raise HttpProblem(503, "ending", "the server is about to end", hint="send it again", headers=headers)
        if session is not None and session in self._busy:
            raise Busy(
                f"session {session!r} is busy with run {self._busy[session]}", hint="wait for its end, or stop it"
            )
        name = owned(self._ids.new(), owner_of_session(session or ""))
        feed = self.feeds.open(name, session or name)
        loop = asyncio.get_running_loop()
        reply = loop.create_future()
        run = self._active[name] = Run(id=name, session=session or name, feed=feed, reply=reply)
        self._busy[run.session] = name
        listeners = (feed.put,) if self._tracing is None else (feed.put, self._tracing())

        def missed(error: Busy) -> None:
            logging.getLogger("navigator").warning("%s; this turn is not in its history", error.message)

        async def take(turns: Turns) -> Reply:
            message, session = asked(turns)
            return await turns.take(message, session, listeners, keep="always", run=name, missed=missed, allow=allow)

        def end(done: Future[Reply]) -> None:
            with suppress(RuntimeError):  # the loop is closed: the server has ended
                loop.call_soon_threadsafe(self._ended, run, done)

        self._workers.start(name, take).add_done_callback(end)
        return run

    def stop(self, run: str) -> None:
        """Stops the run, or asks the host that carries it out to; NotFound if it is not under way."""
        if run in self._active or isinstance(self._log.read(run)[-1].body, LAST):
            self._workers.cancel(run)
        elif not self._queue.stop(self.session_of(run), run):
            raise NotFound(f"no run {run!r} is under way", hint="it may have ended")

    def session_of(self, run: str) -> str:
        """The session that `run` belongs to; NotFound if there is no such run."""
        if (active := self._active.get(run)) is not None:  # in one step: runs end in another thread
            return active.session
        first = self._log.read(run)[0].body
        if not isinstance(first, RunStarted):
            raise NotFound(f"no run is called {run!r}", hint="the list of runs shows them")
        return first.session

    def under_way(self) -> tuple[Run, ...]:
        return tuple(self._active.values())

    async def close(self, patience: float) -> None:
        """Waits `patience` seconds for the turns that are under way, then stops them. Their streams end."""
        self.is_closing = True
        await asyncio.to_thread(self._workers.close, patience)
        for _ in range(100):
            if not self._active:
                return
            await asyncio.sleep(0.01)

    def _ended(self, run: Run, done: Future[Reply]) -> None:
        del self._active[run.id], self._busy[run.session]
        run.feed.end()
        self.feeds.close(run.id, run.feed)
        if run.reply.done():
            return
        error = Busy("the run was stopped before it began") if done.cancelled() else done.exception()
        state = done.result().report.state if error is None else type(error).__name__
        self.ended[state] = self.ended.get(state, 0) + 1
        if error is None:
            run.reply.set_result(done.result())
            return
        run.reply.set_exception(error)
        run.reply.exception()  # marks it as retrieved: the run log has it, and maybe nobody waits
        if not isinstance(error, KernelError):
            logging.getLogger("navigator").error("run %s failed", run.id, exc_info=error)


def may_approve(caller: Caller, resumed: Resumed) -> None:
    """Refused for a message that approves without the role for that, or permanently, which is not possible here."""
    if resumed.approved is None or resumed.declined or resumed.approved.subject == "retry":
        return
    if resumed.lasting == "always":
        hint = "navigator skill trust NAME, or approve it once"
        raise Refused("a lasting approval is given at the terminal", hint=hint)
    if not caller.may("approve"):
        raise Refused("this token may not approve", hint="use a token with the role approve", reason="role")
