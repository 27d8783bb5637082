"""Takes several turns of one project at once, each on a thread with an event loop, both of which later turns reuse."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from selectors import DefaultSelector, SelectorKey
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.stores.underway import ENDED
from navigator_kernel.bootstrap.turns import MOST, Turns
from navigator_kernel.errors import Interrupted, NotFound

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.values.reply import Reply


Take = Callable[["Turns"], Coroutine[Any, Any, "Reply"]]


class TurnWorkers:
    """Runs at most `most` turns at once; others wait. A thread is started when a turn finds no idle one."""

    def __init__(self, project: Project, *, most: int = MOST) -> None:
        self.turns = Turns(project)
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="navigator-turn")
        self._loops: list[asyncio.Runner] = []  # that no turn uses now
        self._running: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Task[Reply]]] = {}
        self._waiting: dict[str, Future[Reply]] = {}
        self._cancelled: set[str] = set()  # a subset of `_waiting`
        self._guard = threading.Lock()

    def start(self, run: str, take: Take) -> Future[Reply]:
        """Takes the turn called `run` when a thread is free. The future raises Interrupted if a running turn is
        cancelled."""
        with self._guard:
            future = self._threads.submit(self._take, run, take)
            self._waiting[run] = future

        def forget(_: Future[Reply]) -> None:
            with self._guard:
                self._waiting.pop(run, None)
                self._cancelled.discard(run)

        future.add_done_callback(forget)
        return future

    def cancel(self, run: str) -> None:
        """Stops the turn and its processes, or removes it from the queue. NotFound if it is not under way."""
        waiting = self._waiting.get(run)
        if waiting is None or not (waiting.cancel() or self._stop(run, "")):
            raise NotFound(f"no run {run!r} is under way", hint="it may have ended")

    def _stop(self, run: str, reason: str) -> bool:
        """Cancels a turn that has a thread, now or as soon as it begins. False if it has ended."""
        with self._guard:
            waiting = self._waiting.get(run)
            if waiting is None or waiting.done():
                return False
            self._cancelled.add(run)
            if running := self._running.get(run):
                loop, task = running
                loop.call_soon_threadsafe(task.cancel, reason)
            return True

    @property
    def under_way(self) -> tuple[str, ...]:
        """The turns that have a thread or wait for one."""
        with self._guard:
            return tuple(self._waiting)

    def close(self, patience: float) -> None:
        """Takes no more turns, waits `patience` seconds for those that run, and stops the rest."""
        with self._guard:
            held = list(self._waiting.values())
        self._threads.shutdown(wait=False, cancel_futures=True)
        _, late = wait(held, patience)
        for run in self.under_way if late else ():
            self._stop(run, ENDED)
        self._threads.shutdown(wait=True)
        models = self.turns.project.models
        while self._loops:
            with self._loops.pop() as runner:
                if models is not None:
                    runner.run(models.close(ends=True))

    def _take(self, run: str, take: Take) -> Reply:
        """Runs the turn on a thread of the pool."""
        try:
            runner = self._loops.pop()
        except IndexError:
            runner = asyncio.Runner(loop_factory=turn_loop)

        async def follow() -> Reply:
            task = asyncio.ensure_future(take(self.turns))
            with self._guard:
                self._running[run] = asyncio.get_running_loop(), task
                if run in self._cancelled:
                    task.cancel()
            return await task

        try:
            return runner.run(follow())
        except asyncio.CancelledError as error:
            raise Interrupted("the run was stopped", hint="nothing is half-written") from error
        finally:
            with self._guard:
                self._running.pop(run, None)
            self._loops.append(runner)


# Event loops of a process that serves streams and takes turns: the server goes first, then one turn after another.
#
# The threads of a Python process take turns to compute, and the interpreter prefers none of them: while twenty turns
# began, the last of a thousand streams got its first byte .2 to .4 s later than without them.

PATIENCE = 1.0  # total seconds that a turn waits for other turns and the server; then it runs beside them
SWITCH = 0.0005  # seconds after which a computing thread lets another one run; Python's default is 0.005

_server_is_idle = threading.Event()
_server_is_idle.set()
_computing = threading.Lock()  # held by the turn that computes


class _ServerSelector(DefaultSelector):
    """Signals when the server's loop has nothing to do."""

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        if (found := super().select(0)) or timeout == 0:
            return found
        _server_is_idle.set()
        found = super().select(timeout)
        _server_is_idle.clear()
        return found

    def close(self) -> None:
        _server_is_idle.set()
        super().close()


class _TurnSelector(DefaultSelector):
    """Waits for other turns, then for the server, before the callbacks of a turn run."""

    _holds = False

    def __init__(self) -> None:
        super().__init__()
        self.patience = PATIENCE  # seconds left

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        self.release()
        found = super().select(timeout)
        began = time.monotonic()
        self._holds = _computing.acquire(timeout=self.patience)
        _server_is_idle.wait(self._left(began))
        self.patience = self._left(began)
        return found

    def _left(self, began: float) -> float:
        return max(0.0, self.patience - (time.monotonic() - began))

    def close(self) -> None:
        self.release()
        super().close()

    def release(self) -> None:
        if self._holds:
            self._holds = False
            _computing.release()


class _TurnLoop(asyncio.SelectorEventLoop):
    """Each turn has its own patience."""

    def __init__(self, selector: _TurnSelector) -> None:
        super().__init__(selector)
        self._turns = selector

    def run_until_complete(self, future: Any) -> Any:
        if isinstance(future, asyncio.Task):  # a turn; the end of the loop waits for nobody
            self._turns.patience = PATIENCE
        try:
            return super().run_until_complete(future)
        finally:
            self._turns.release()


def server_loop() -> asyncio.AbstractEventLoop:
    """The loop of the server."""
    sys.setswitchinterval(SWITCH)
    return asyncio.SelectorEventLoop(_ServerSelector())


def turn_loop() -> asyncio.AbstractEventLoop:
    """The loop of turns, one after another, on a thread of its own."""
    return _TurnLoop(_TurnSelector())
