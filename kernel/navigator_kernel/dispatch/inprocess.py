"""The dispatcher for one machine: each agent at work has an event loop of its own, so that none can block the kernel or
another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from threading import Lock

from msgspec import Struct, field

from navigator_kernel.dispatch.answer import failure, report_from
from navigator_kernel.errors import Interrupted, KernelError, NotFound
from navigator_kernel.events import Event
from navigator_kernel.guard import PluginLoop
from navigator_kernel.language.wording import say
from navigator_kernel.ports import Agent, Clock
from navigator_kernel.values.packet import Packet
from navigator_kernel.values.report import Meta, Report

# Seconds beyond the packet's limit for an agent to end its processes and report its own time-out: the MCP SDK
# takes 4.5 s to end a server that does not react.
GRACE = 6.0
KEPT = 1_000  # tasks in memory, ended ones included: 10 kB each


class _Task(Struct):
    packet: Packet
    future: Future[object]
    started: float
    loop: PluginLoop | None
    report: Report | None = None


class InProcessDispatcher(Struct):
    """Implements `ports.Dispatcher`. A key that was submitted before is the same task, which acts once. Several threads
    may use it."""

    agents: Mapping[str, Agent]
    clock: Clock
    observe: Callable[[str, BaseException], None] | None = None
    _tasks: dict[str, _Task] = field(default_factory=dict)
    _idle: list[PluginLoop] = field(default_factory=list)
    _guard: Lock = field(default_factory=Lock)

    async def submit(self, packet: Packet) -> str:
        """Starts the packet's task and returns its idempotency key. An unknown agent gets a report of NotFound."""
        key = packet.context.idempotency_key
        with self._guard:
            if key in self._tasks:
                return key
            agent, loop = self.agents.get(packet.agent), None
            future: Future[object]
            if agent is None:
                future = Future()
                future.set_exception(NotFound(say("agent.missing", packet.context.language, name=packet.agent)))
            else:
                loop = self._idle.pop() if self._idle else PluginLoop("navigator-agents")
                future = loop.start(lambda: agent.handle(packet.to_yaml()))
            self._tasks[key] = _Task(packet=packet, future=future, started=self.clock.monotonic(), loop=loop)
            if len(self._tasks) > KEPT and (ended := next((k for k, t in self._tasks.items() if t.report), "")):
                del self._tasks[ended]
        return key

    async def events(self, task: str) -> AsyncIterator[Event]:
        """Yields nothing: agents here report once, and have no events of their own yet."""
        self._held(task)
        nothing: tuple[Event, ...] = ()
        for event in nothing:
            yield event

    async def result(self, task: str) -> Report:
        held = self._held(task)
        if held.report is None:
            held.report = await self._finished(held)
            if held.loop is not None and held.future.done() and not held.future.cancelled():
                self._idle.append(held.loop)  # else an agent may still block it
            held.loop = None
        return held.report

    async def cancel(self, task: str) -> None:
        self._held(task).future.cancel()

    def heartbeat(self, task: str) -> float:
        held = self._held(task)
        return 0.0 if not held.future.done() else self.clock.monotonic() - held.started

    async def _finished(self, held: _Task) -> Report:
        packet = held.packet
        limit = packet.constraints.timeout
        waiting = asyncio.wrap_future(held.future)
        try:
            # Python 3.11's `wait_for` ignores a cancellation of the turn at the moment of the answer
            await asyncio.wait([waiting], timeout=limit + GRACE)
            if not waiting.done():
                held.future.cancel()
                return self._timeout(held)
            answer = waiting.result()
        except asyncio.CancelledError:
            held.future.cancel()
            if (turn := asyncio.current_task()) is not None and turn.cancelling():
                raise
            return failure(Interrupted(f"{packet.agent} was stopped"), self._meta(held), packet.context.language)
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything; it is named and isolated
            report = failure(error, self._meta(held), packet.context.language)
            if self.observe is not None and not isinstance(error, KernelError):
                self.observe(packet.agent, error)
            return report
        return report_from(answer, self._meta(held), packet.context.language)

    def _timeout(self, held: _Task) -> Report:
        seconds = held.packet.constraints.timeout
        text = say("agent.timeout", held.packet.context.language, seconds=f"{seconds:g}")
        data = {"elapsed": round(self.clock.monotonic() - held.started, 3), "limit": seconds}
        return Report(state="timeout", summary=text, meta=self._meta(held), data=data)

    def _meta(self, held: _Task) -> Meta:
        elapsed = round(self.clock.monotonic() - held.started, 3)
        return Meta(agent=held.packet.agent, time=elapsed, ts=self.clock.now())

    def _held(self, task: str) -> _Task:
        if task not in self._tasks:
            raise NotFound(f"no task is called {task!r}", hint="submit it first")
        return self._tasks[task]
