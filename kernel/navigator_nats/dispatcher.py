"""The dispatcher of the host that owns a turn: packets go to the broker, and the first report of each comes back."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field
from nats.errors import Error as NatsError
from nats.errors import MaxPayloadError
from nats.js.errors import APIError, NotFoundError
from nats.nuid import NUID

from navigator_kernel.errors import Busy, FetchFailed, Interrupted, KernelError, NotFound
from navigator_kernel.events import Event
from navigator_kernel.language.wording import say
from navigator_kernel.text import numbered
from navigator_kernel.values.packet import Meta, Report, packet_from_yaml, report_of, report_to_dict
from navigator_nats import broker, skills
from navigator_nats.broker import CANCEL, DIGEST, EVENTS, GONE, REPORT, REPORTS, TASK, TASKS
from navigator_nats.files import FILES, MADE, WANTED, OwnFiles

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription
    from nats.js import JetStreamContext

    from navigator_kernel.ports import DispatchPorts
    from navigator_kernel.values.packet import Packet

GRACE = 5.0  # seconds beyond a packet's limit for a worker to end its processes; the kernel allows one more
POLL = 1.0  # seconds between looks for a report whose bell was lost
OWNERS_TRIES = 20  # to connect, in five seconds: a broker may be starting again
SUBMIT = 7.0  # seconds for a task to be stored, less than the kernel gives a plugin's call
KEPT = 1_000  # tasks in memory, ended ones included
DONE = b"done"
MISSING = b"missing"  # a worker's question for the bytes of the skill, which is answered when they are there
OWN = (
    "undo:",
    "interrupted:",
    "retry:",
)  # beginnings of subjects, and whole ones, that only the owner's kernel may ask for
WHOLE = {"plan", "repeat"}
GIVEN_UP = "Nav-Given-Up"  # header of a report: the packet stays, for `navigator cluster doctor`


class _Task(Struct):
    packet: Packet
    key: str
    pool: str
    digest: str
    files: OwnFiles
    started: float
    beat: float = 0.0
    sequence: int = 0
    cancelled: bool = False
    report: Report | None = None
    listening: Subscription | None = None
    bell: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def subject(self) -> str:
        return broker.subject_of(TASK, self.packet)

    @property
    def reports(self) -> str:
        return broker.subject_of(REPORT, self.packet)

    @property
    def events(self) -> str:
        return broker.subject_of(EVENTS, self.packet)


class NatsDispatcher:
    """Implements `ports.Dispatcher` over JetStream. Packets of other pools than those of the settings are left to the
    kernel's own. A task is carried out at least once, and has one report: the first."""

    def __init__(self, ports: DispatchPorts, settings: broker.Settings) -> None:
        self.ports, self.settings = ports, settings
        self._tasks: dict[str, _Task] = {}
        self._client: Client | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connecting = asyncio.Lock()
        self._made: set[str] = set()
        self._brought: set[str] = set()  # digests of skills
        self._ids = NUID()

    def hosts(self) -> tuple[list[str], list[str]]:
        """What `navigator cluster status` shows, and what is wrong there, for `navigator doctor` and the page."""
        from navigator_nats.inspection import Cluster, lines_of, problems_of  # which needs this module

        async def asked() -> dict[str, Any]:
            async with Cluster.opened(self.settings) as cluster:
                return await cluster.status()

        with ThreadPoolExecutor(1) as thread:  # the caller may have an event loop
            body = thread.submit(lambda: asyncio.run(asked())).result()
        if len(body["missing"]) == 3:  # owners make the streams with the first order
            body["missing"] = []
        return lines_of(body), problems_of(body)

    async def submit(self, packet: Packet) -> str | None:
        """Stores the packet's task at the broker. Busy if too many wait there, FetchFailed if it cannot be reached."""
        pool, name = broker.pool_of(packet), packet.context.idempotency_key
        if pool not in self.settings.pools:
            return None
        if name in self._tasks:
            return name
        digest, now = self.ports.digest(packet), time.monotonic()
        files = await asyncio.to_thread(OwnFiles.of, self.ports, packet)
        if name in self._tasks:
            return name
        task = _Task(packet=packet, key=broker.key_of(packet), pool=pool, digest=digest, files=files, started=now)
        self._tasks[name] = task
        if len(self._tasks) > KEPT and (ended := next((k for k, t in self._tasks.items() if t.report), "")):
            del self._tasks[ended]
        try:
            await asyncio.wait_for(self._stored(task), SUBMIT)
        except BaseException as error:
            del self._tasks[name]
            await self._close(task)
            if isinstance(error, NatsError | TimeoutError):
                with suppress(TimeoutError):  # it may be stored, and nobody waits for it any more
                    await asyncio.wait_for(self._withdraw(task), 1)
                raise broker.unreachable(self.settings, error) from error
            raise
        return name

    async def events(self, task: str) -> AsyncIterator[Event]:
        """What the worker says meanwhile, until the task has ended."""
        held, client = self._task(task), await broker.connect(self.settings, "events of a task")
        try:
            listening = await client.subscribe(held.events)
            while held.report is None and await broker.last(client.jetstream(), REPORTS, held.reports) is None:
                with suppress(TimeoutError):
                    message = await listening.next_msg(POLL)
                    if message.data.startswith(b"{"):
                        yield msgspec.json.decode(message.data, type=Event)
                    elif message.data == DONE:
                        return
        finally:
            await client.close()

    async def result(self, task: str) -> Report:
        """The report of the task: the worker's; a time-out if none came within the packet's limit."""
        held = self._task(task)
        async with held.waiting:
            if held.report is None:
                try:
                    held.report = await self._reported(held)
                except asyncio.CancelledError:
                    await self._withdraw(held)
                    raise
                finally:
                    await self._close(held)
        return held.report

    async def cancel(self, task: str) -> None:
        """Takes the task from the queue and stops the worker that has it."""
        held = self._task(task)
        held.cancelled = True
        held.bell.set()
        await self._withdraw(held)

    def heartbeat(self, task: str) -> float:
        held = self._task(task)
        return 0.0 if held.report is not None else time.monotonic() - (held.beat or held.started)

    async def close(self) -> None:
        """Ends the connection; tasks under way continue at their workers."""
        if self._client is not None:
            await self._client.close()

    def _task(self, name: str) -> _Task:
        if name not in self._tasks:
            raise NotFound(f"no task is called {name!r}", hint="submit it first")
        return self._tasks[name]

    async def _connected(self) -> JetStreamContext:
        """The connection, made when it is first needed in this event loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the first one, or that before hung
            self._loop, self._connecting, self._client = loop, asyncio.Lock(), None
        async with self._connecting:
            if self._client is None or self._client.is_closed:
                self._client = await broker.connect(self.settings, "navigator", tries=OWNERS_TRIES)
                self._client.options["max_reconnect_attempts"] = -1  # an owner waits for its broker
                self._made = set()
                for subject in (broker.MAX_DELIVERIES, broker.TERMINATED):
                    await self._client.subscribe(f"{subject}.*", cb=self._given_up)
        return self._client.jetstream(timeout=3)

    async def _stored(self, task: _Task) -> None:
        """Publishes the task, unless it has succeeded before; a report of another kind is removed, as the order is
        given again. Streams that are gone are made."""
        jetstream = await self._connected()
        task.listening = await self._connection.subscribe(task.events, cb=partial(self._heard, task))
        if task.pool not in self._made:
            await self._make(jetstream, task)
        for attempt in range(20):
            try:
                earlier = await broker.last(jetstream, REPORTS, task.reports)
                if earlier is not None:
                    task.report = _read(earlier.data, task.packet, self.ports)
                    if task.report.state in broker.SUCCEEDED:
                        return
                    task.report = None
                    await jetstream.purge_stream(REPORTS, subject=task.reports)
                await self._publish(jetstream, task)
            except (TimeoutError, NatsError) as error:
                if attempt == 19 or isinstance(error, MaxPayloadError):
                    raise
                await (self._make(jetstream, task) if isinstance(error, GONE) else asyncio.sleep(0.1))
            else:
                return

    async def _make(self, jetstream: JetStreamContext, task: _Task) -> None:
        """Makes streams and the pool's consumer where they are missing; a broker that has just begun needs a moment."""
        for _ in range(20):
            try:
                self._brought.clear()
                await broker.make_streams(jetstream, self.settings)
                await broker.make_consumer(jetstream, task.pool, self.settings)
            except (*GONE, TimeoutError):
                await asyncio.sleep(0.2)
            else:
                self._made.add(task.pool)
                return
        raise FetchFailed(f"the broker at {self.settings.place!r} has no JetStream", hint="start it with -js")

    @property
    def _connection(self) -> Client:
        assert self._client is not None  # noqa: S101 - `_connected` was called
        return self._client

    async def _publish(self, jetstream: JetStreamContext, task: _Task) -> None:
        """Stores the task, after its skill where workers fetch it; one that is stored already stays. Busy if the queue
        is full. A broker that does not take the skill does not stop the task: a worker may have it."""
        if task.digest and task.digest not in self._brought:
            await self._bring(jetstream, task)
        headers = {"Nats-Msg-Id": f"{task.key}.{self._ids.next().decode()}"}  # for this attempt: a task may come again
        headers |= {DIGEST: task.digest} if task.digest else {}
        headers |= {FILES: json.dumps(task.files.digests)} if task.files.digests else {}
        try:
            stored = await jetstream.publish(task.subject, task.packet.to_yaml().encode(), headers=headers)
            task.sequence = stored.seq
        except MaxPayloadError as error:
            raise KernelError("the order is larger than the broker takes", hint="raise its max_payload") from error
        except APIError as error:
            broker.check_room(self.settings, error)
            if "per subject" in str(error.description):
                return
            if "maximum" in str(error.description):
                waiting = f"as many tasks wait for workers as may: {self.settings.bound}"
                raise Busy(waiting, hint="start workers, or try again later") from error
            raise

    async def _bring(self, jetstream: JetStreamContext, task: _Task) -> None:
        with suppress(NatsError, TimeoutError, KernelError, OSError):
            await asyncio.wait_for(skills.put(jetstream, self.ports, task.packet, task.digest), SUBMIT / 2)
            self._brought.add(task.digest)

    async def _heard(self, task: _Task, message: Msg) -> None:
        """Takes a sign of life of the worker, or puts the bytes that it does not find."""
        task.beat = time.monotonic()
        if message.data == DONE:
            task.bell.set()
        elif message.data == MISSING and task.digest:
            await self._bring(self._connection.jetstream(timeout=3), task)
            with suppress(NatsError):
                await message.respond(b"")
        elif message.data.startswith((WANTED, MADE)):
            answer = await asyncio.to_thread(task.files.answer, message.data)
            with suppress(NatsError):
                await message.respond(answer)

    async def _reported(self, task: _Task) -> Report:
        limit, language, rung = task.packet.constraints.timeout, task.packet.context.language, False
        while True:
            elapsed = time.monotonic() - task.started
            left = limit + (GRACE if task.beat else 0.0) - elapsed
            if task.cancelled:
                return self.ports.failed(task.packet, Interrupted(f"{task.packet.agent} was stopped"), elapsed)
            if left <= 0:
                await self._withdraw(task)
                meta = Meta(agent=task.packet.agent, time=round(elapsed, 3), ts=self.ports.clock.now())
                text = say("agent.timeout", language, seconds=f"{limit:g}")
                return Report(state="timeout", summary=text, meta=meta, data={"elapsed": meta.time, "limit": limit})
            try:
                await asyncio.wait_for(task.bell.wait(), min(POLL, left))
                rung = True
                task.bell.clear()
            except TimeoutError:
                rung = False
            try:
                jetstream = await self._connected()
                found = await broker.last(jetstream, REPORTS, task.reports)
                if found is None and not rung and await broker.last(jetstream, TASKS, task.subject) is None:
                    found = await broker.last(jetstream, REPORTS, task.reports)
                    if found is None and not task.cancelled:  # its stream was lost
                        self._brought.clear()
                        await self._publish(jetstream, task)
                if found is not None:
                    if not rung and GIVEN_UP not in (
                        found.headers or {}
                    ):  # its worker may be gone before it acknowledged
                        await jetstream.purge_stream(TASKS, subject=task.subject)
                    return _read(found.data, task.packet, self.ports)
            except GONE:
                with suppress(NatsError, TimeoutError, KernelError):
                    await self._make(await self._connected(), task)
                    await self._publish(await self._connected(), task)
            except (NatsError, TimeoutError, KernelError):
                continue  # the connection or the room comes back, or the limit ends it

    async def _withdraw(self, task: _Task) -> None:
        with suppress(NatsError, TimeoutError, KernelError):
            jetstream = await self._connected()
            await self._connection.publish(f"{CANCEL}.{task.key}", b"")
            await jetstream.purge_stream(TASKS, subject=task.subject)

    async def _close(self, task: _Task) -> None:
        if task.listening is not None:
            listening, task.listening = task.listening, None
            with suppress(NatsError):
                await listening.unsubscribe()

    async def _given_up(self, message: Msg) -> None:
        """Makes an error report of the broker's advisory; one that the worker has written before wins."""
        with suppress(NatsError, TimeoutError, ValueError, KeyError):
            advisory = json.loads(message.data)
            task = next((t for t in self._tasks.values() if t.sequence == advisory["stream_seq"]), None)
            packet = None if task is None else task.packet
            jetstream = self._connection.jetstream(timeout=3)
            if packet is None:  # the task of another owner, which may be gone
                with suppress(NotFoundError):
                    raw = await jetstream.get_msg(TASKS, seq=advisory["stream_seq"])
                    packet = packet_from_yaml((raw.data or b"").decode())
            if packet is None or advisory.get("reason") in broker.NOT_DEAD:
                return
            if "deliveries" in advisory and "reason" not in advisory:
                times = advisory["deliveries"]
                error = KernelError(f"{numbered(times, 'worker')} began the task and none of them ended it")
            else:
                error = KernelError(f"a worker refused the task: {advisory.get('reason') or 'without a reason'}")
            error.hint = "navigator cluster doctor shows what was given up"
            await report_first(self._connection, packet, self.ports.failed(packet, error, 0), {GIVEN_UP: "yes"})
            await self._connection.publish(broker.subject_of(EVENTS, packet), DONE)


async def report_first(client: Client, packet: Packet, report: Report, headers: dict[str, str] | None = None) -> None:
    """Stores the report, unless the task has one already."""
    body = msgspec.json.encode(report_to_dict(report))
    try:
        await client.jetstream(timeout=3).publish(broker.subject_of(REPORT, packet), body, headers=headers)
    except APIError as error:
        if "per subject" not in str(error.description):
            raise


def _read(body: bytes | None, packet: Packet, ports: DispatchPorts) -> Report:
    """The worker's report; of the kernel's own notes only what it waits for, as from an agent of this process."""
    try:
        raw: dict[str, Any] = msgspec.json.decode(body or b"")
        report = report_of(raw)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return ports.failed(packet, KernelError(f"a worker's report cannot be read: {error}"), 0)
    if any(subject.startswith(OWN) or subject in WHOLE for subject in (report.subject, *report.also)):
        return ports.failed(packet, KernelError(f"a worker cannot ask for {report.subject!r}"), 0)
    plain = Report(
        state=report.state,
        summary=report.summary,
        meta=msgspec.structs.replace(report.meta, agent=packet.agent),
        data=report.data,
        raw=report.raw,
        recoverable=report.recoverable,
        effects=report.effects,
    )
    if report.state != "pending":
        return plain
    return msgspec.structs.replace(plain, subject=report.subject, also=report.also)
