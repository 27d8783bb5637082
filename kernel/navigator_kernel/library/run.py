"""One running turn: its events and its reply."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from typing import Any

from navigator_kernel.errors import Interrupted, UsageProblem
from navigator_kernel.events import Event, Listener
from navigator_kernel.values.reply import Reply

Take = Callable[[Listener], Coroutine[Any, Any, Reply]]


class Run:
    """`async for event in run` gives the events, the last of which is RunCompleted, RunError or RunCancelled;
    afterwards, or instead, `await run` gives the reply. The turn begins with whichever comes first. Leaving the loop
    early, or calling `aclose()`, ends the turn with its processes."""

    def __init__(self, name: str, take: Take) -> None:
        self.id = name
        self._take = take
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._task: asyncio.Task[Reply] | None = None
        self._heard = False

    async def __aiter__(self) -> AsyncIterator[Event]:
        if self._heard:
            hint = "the run log keeps them: navigator why"
            raise UsageProblem(f"the events of {self.id} can be read only once", hint=hint)
        self._heard, task = True, self._begun()
        try:
            while (event := await self._events.get()) is not None:
                yield event
            if not task.cancelled():
                task.result()  # raises the turn's error after its last event
        finally:
            await self.aclose()

    def __await__(self) -> Generator[Any, None, Reply]:
        async def reply() -> Reply:
            task = self._begun()
            try:
                await asyncio.wait({task})
            finally:
                await self.aclose()
            if task.cancelled():
                raise Interrupted("the run was cancelled", hint="nothing is half-written")
            return task.result()

        return reply().__await__()

    async def aclose(self) -> None:
        """Ends the turn if it is under way, and waits until it has ended."""
        if self._task is None or self._task.done():
            return
        self._task.cancel()
        await asyncio.wait({self._task})

    def _begun(self) -> asyncio.Task[Reply]:
        if self._task is None:
            self._task = asyncio.ensure_future(self._take(self._events.put_nowait))
            self._task.add_done_callback(lambda _task: self._events.put_nowait(None))
        return self._task
