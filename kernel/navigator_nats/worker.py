"""The worker: takes packets of its pools from the broker, carries them out in this machine's sandbox, and reports.

It has no access to the journal of the owner. It keeps a task only while the broker confirms it: where that fails for
three quarters of the acknowledgement limit, it stops the task before another worker gets it. The report of a task that
succeeded lies in the worker's state until the broker has it.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field
from nats.errors import Error as NatsError
from nats.errors import MaxPayloadError
from nats.js.errors import APIError

from navigator_kernel.commands import dispatch_ports
from navigator_kernel.errors import FetchFailed, IntegrityMismatch, KernelError, UsageProblem
from navigator_kernel.values.packet import Packet, Report, packet_from_yaml, report_of, report_to_dict
from navigator_nats import broker
from navigator_nats.broker import CANCEL, DELIVERIES, DIGEST, EVENTS, HOSTS, TASKS
from navigator_nats.dispatcher import DONE, MISSING, report_first
from navigator_nats.files import FILES, brought, has, returned
from navigator_nats.skills import fetched, folder_of

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

    from navigator_kernel.ports import Dispatcher, DispatchPorts

FETCH = 1.0  # seconds that one request for a task waits at the broker
PAUSE = 0.5  # seconds after a refusal, so that another worker can take the task
ASK = 5.0  # seconds for an owner to put a skill again
KNOWN = 1_000  # tasks that one dispatcher of this process remembers
KEPT = 100  # skills of other hosts that are open
KEEP = 0.75  # of the acknowledgement limit: the most that a task continues without a confirmed renewal
AGAIN = 1.0  # seconds before a task is begun again, for the worker that had it to hand in its report
LATE = 0.2  # seconds between two tries to hand in a report that the broker could not take


class _Running(Struct):
    dispatcher: Dispatcher
    task: str
    began: float
    claim: str  # see `Worker._claim`; empty if it was made
    lost: bool = False


class Answer(Struct):
    """What a worker says of itself: how many tasks are `running` and `done`, and whether it takes no more."""

    name: str
    pools: list[str]
    slots: int
    running: int
    done: int
    ending: bool = False  # a worker of an earlier version does not say this, nor its host
    host: str = ""


class _Queue(Struct, frozen=True):
    """What the broker says of a pool's queue: its acknowledgement limit, and `ahead`, the seconds that the broker's
    clock is ahead of this process's monotonic one. A worker's own clock may be wrong."""

    ack_wait: float
    ahead: float


class Worker(Struct, kw_only=True):
    """Carries out tasks of `pools`, `slots` of each at once, until `stop` is called. One that `agrees` says yes in
    advance to what its host's own rules allow."""

    ports: DispatchPorts
    settings: broker.Settings
    name: str
    pools: tuple[str, ...]
    host: str = field(default_factory=socket.gethostname)
    slots: int = 1
    tell: Callable[[str], None] = lambda _line: None
    done: int = 0
    _running: dict[str, _Running] = field(default_factory=dict)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _client: Client | None = None
    _since: float = 0.0  # when the connection was made, or was cut or came back last
    agrees: bool = False
    _fetched: dict[str, DispatchPorts] = field(default_factory=dict)
    _queues: dict[str, _Queue] = field(default_factory=dict)

    async def run(self) -> None:
        """Works until `stop`; tasks under way are ended first."""
        if not self.settings.knows_strangers:
            message = f"the broker at {self.settings.place!r} takes orders from anybody"
            raise UsageProblem(message, hint="set NAVIGATOR_NATS_SEED to a key of: navigator cluster init FOLDER")
        connected = broker.connect(self.settings, self.name, waits=self.tell, changed=self._note_change)
        connecting = asyncio.ensure_future(connected)
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait((connecting, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not connecting.done():
            connecting.cancel()
            await asyncio.wait((connecting,))
            return
        self._client = client = connecting.result()
        await self._note_change()
        await client.subscribe(f"{CANCEL}.*", cb=self._cancelled)
        await client.subscribe(HOSTS, cb=self._asked)
        await client.flush()
        self.tell(f"worker {self.name} takes {' '.join(self.pools)} from {self.settings.place}")
        late = asyncio.ensure_future(self._hand_in_late())
        try:
            await asyncio.gather(*(self._serve(pool) for pool in self.pools for _ in range(self.slots)))
        finally:
            late.cancel()
            await client.close()

    async def _note_change(self) -> None:
        self._since = time.monotonic()

    async def stop(self) -> None:
        """Takes no more tasks. Called again, it also ends those under way, which go to other workers."""
        if self._stopping.is_set():
            for running in list(self._running.values()):
                await self._lose(running)
        self._stopping.set()

    @property
    def _connection(self) -> Client:
        assert self._client is not None  # noqa: S101 - `run` was called
        return self._client

    async def _serve(self, pool: str) -> None:
        """One slot: a task after another. Where there is no queue yet, it waits for one."""
        jetstream, local, known = self._connection.jetstream(timeout=3), self.ports.local(), set[str]()
        queue = await jetstream.pull_subscribe_bind(consumer=broker.consumer_of(pool), stream=TASKS)
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                (message,) = await queue.fetch(1, timeout=FETCH)
            except (NatsError, TimeoutError):
                if time.monotonic() - began < FETCH / 2:
                    await asyncio.sleep(PAUSE)
                continue
            if message.subject in known or len(known) == KNOWN:
                local = self.ports.local()  # one that did the task before would only repeat its report
                known.clear()
            known.add(message.subject)
            try:
                await self._carry_out(message, pool, local, time.monotonic())
            except Exception as error:  # noqa: BLE001 - a packet may cause anything; another worker gets the task
                self.tell(f"a task was left: {error or type(error).__name__}")

    async def _carry_out(self, message: Msg, pool: str, local: Dispatcher, began: float) -> None:
        key = message.subject.rpartition(".")[2]
        try:
            packet = packet_from_yaml(message.data.decode())
            if broker.key_of(packet) != key or broker.pool_of(packet) != pool:
                raise ValueError("it is not the task that its subject names")
        except Exception as error:  # noqa: BLE001 - a packet may be anything
            self.tell(f"a task that cannot be read was refused: {error}")
            await self._refuse(message, f"its packet cannot be read: {type(error).__name__}")
            return
        queue = await self._queue(pool, message, packet.constraints.timeout)
        if queue is None:  # its owner has given it up, or is gone; another one that continues its run sends it again
            await self._refuse(message, broker.EXPIRED)
            return
        # A broker that was killed may have forgotten that it delivered a task, or that the task has ended
        is_old = time.monotonic() - _age(message, queue) < self._since
        if is_old or message.metadata.num_delivered > 1:
            since = self._since if message.metadata.num_delivered == 1 else time.monotonic()
            await asyncio.sleep(since + min(AGAIN, queue.ack_wait / 3) - time.monotonic())
            if key in self._running or (refused := await self._claim(_claim_of(message, packet))) == broker.HAS_BEGUN:
                return
            if refused:
                await message.ack()
                return
        place = self.ports.project.state / "tasks" / key
        try:
            ports = await self._placed(await self._ports_for(message, packet), message, packet, place)
            if ports is not self.ports:
                local = ports.local()
        except KernelError as problem:
            self.tell(str(problem))
            if message.metadata.num_delivered < DELIVERIES:
                await message.nak(delay=PAUSE * 4 ** (message.metadata.num_delivered - 1))
                return
            await report_first(self._connection, packet, self.ports.failed(packet, problem, 0))
            await self._refuse(message, str(problem))
            await self._ring(packet)
            return
        if self.agrees:
            ports.agree(packet.context.run)
        try:
            await self._work(message, packet, ports, local, began, queue.ack_wait)
        finally:
            if ports.root == place:
                await asyncio.to_thread(ports.project.writer.remove, place)

    async def _ports_for(self, message: Msg, packet: Packet) -> DispatchPorts:
        """The ports of a project whose skill has the owner's bytes: this host's own, or with a skill that it fetches,
        which the owner puts at the broker again if it is not there. IntegrityMismatch if there is none."""
        digest = (message.headers or {}).get(DIGEST, "")
        if not digest and packet.agent != "skills":
            return self.ports
        with suppress(KernelError):
            if self.ports.digest(packet) == digest:
                return self.ports
        if (ports := self._fetched.get(digest)) is None or ports.digest(packet) != digest:
            jetstream = self._connection.jetstream(timeout=3)
            try:
                ports = await fetched(jetstream, self.ports, packet, digest)
            except IntegrityMismatch:  # the broker may have lost it
                await message.in_progress()
                with suppress(NatsError, TimeoutError):  # an owner that is gone, or of an earlier version
                    await self._ask(packet, MISSING)
                ports = await fetched(jetstream, self.ports, packet, digest)
            self._fetched[digest] = ports
            if len(self._fetched) > KEPT:
                del self._fetched[next(iter(self._fetched))]
        return ports

    async def _placed(self, ports: DispatchPorts, message: Msg, packet: Packet, place: Path) -> DispatchPorts:
        """The same ports, if the project's folder has the files that the packet names; else those of the folder
        `place`, into which they are brought."""
        digests = msgspec.json.decode((message.headers or {}).get(FILES, "{}"), type=dict[str, str])
        if not digests or await asyncio.to_thread(has, ports.root, digests):
            return ports
        await asyncio.to_thread(ports.project.writer.make_folder, place / "mybox")
        try:
            await brought(lambda question: self._ask(packet, question), digests, place, ports)
        except (NatsError, TimeoutError) as error:
            raise FetchFailed(f"the owner does not answer for {packet.task_spec.target!r}") from error
        folder = folder_of(ports, (message.headers or {}).get(DIGEST, "")) if ports is not self.ports else None
        return await asyncio.to_thread(dispatch_ports, ports.root, folder, place)

    async def _ask(self, packet: Packet, question: bytes) -> bytes:
        """The owner's answer; NoRespondersError if it is not there."""
        answer = await self._connection.request(broker.subject_of(EVENTS, packet), question, timeout=ASK)
        return bytes(answer.data)

    async def _return(self, packet: Packet, report: Report, ports: DispatchPorts, began: float) -> Report:
        """Gives the owner the files that the report names; the report is an error if it does not take them in time."""
        while True:
            try:
                await returned(lambda question: self._ask(packet, question), report, ports, packet.context.run)
                return report
            except KernelError as error:
                return self.ports.failed(packet, error, time.monotonic() - began)
            except (NatsError, TimeoutError) as error:
                if time.monotonic() - began > packet.constraints.timeout:
                    late = FetchFailed(f"the owner does not answer for the files of {packet.task_spec.target!r}")
                    return self.ports.failed(packet, late, time.monotonic() - began)
                await asyncio.sleep(0.2 if isinstance(error, NatsError) else 0)

    async def _work(
        self, message: Msg, packet: Packet, ports: DispatchPorts, local: Dispatcher, began: float, limit: float
    ) -> None:
        """`began` is when the task came, by this process's clock, and `limit` its acknowledgement limit."""
        client, key = self._connection, broker.key_of(packet)
        await client.publish(broker.subject_of(EVENTS, packet), b"")
        name = await local.submit(packet)
        running = _Running(dispatcher=local, task=name, began=began, claim=_claim_of(message, packet))
        self._running[key] = running
        renewing = asyncio.ensure_future(self._renew(message, packet, running, began, limit))
        telling = asyncio.ensure_future(self._pass_on(packet, local, name))
        try:
            report = await local.result(name)
            if running.lost and report.state not in broker.SUCCEEDED:
                self.tell(f"{packet.task_spec.target} was stopped: the broker did not confirm it")
                if self._stopping.is_set():
                    await message.nak()
                return
            report = await self._return(packet, report, ports, began)
            if report.state in broker.SUCCEEDED:
                stored = msgspec.json.encode((packet.to_yaml(), report_to_dict(report)))
                with suppress(KernelError):  # its disk is full, and the broker may have room
                    self.ports.project.writer.overwrite(self._reports / key, stored)
            while True:
                try:
                    await report_first(client, packet, report)
                    break
                except MaxPayloadError:
                    error = KernelError("the report is larger than the broker takes", hint="raise its max_payload")
                    report = self.ports.failed(packet, error, time.monotonic() - began)
                except (NatsError, TimeoutError):
                    if renewing.done():  # it belongs to another worker, unless `_hand_in_late` comes first
                        return
                    await asyncio.sleep(0.1)
            self.ports.project.writer.remove(self._reports / key, durable=False)
            await message.ack()
            await self._ring(packet)  # after it: an owner that hears the bell need not take the task from the queue
            self.done += 1
        finally:
            renewing.cancel()
            telling.cancel()
            self._running.pop(key, None)

    @property
    def _reports(self) -> Path:
        return self.ports.project.state / "reports"

    async def _hand_in_late(self) -> None:
        """After a cut, claims the tasks that are under way; hands in, again and again, the reports that the broker
        could not take when their tasks ended, also those of a process that was killed."""
        while True:
            await asyncio.sleep(LATE)
            if not self._connection.is_connected:
                continue
            for running in list(self._running.values()):
                if running.began < self._since and running.claim:
                    with suppress(NatsError, TimeoutError):
                        if await self._claim(running.claim):
                            await self._lose(running)
                        running.claim = ""
            for file in await asyncio.to_thread(sorted, self._reports.glob("*")):
                with suppress(NatsError, TimeoutError, KernelError):
                    await self._hand_in(file)

    async def _claim(self, claim: str) -> int:
        """Claims a delivery of a task: a broker that was killed may have forgotten it and deliver it again. Returns 0,
        or HAS_BEGUN if another worker has the claim, or HAS_REPORT, which a worker may not read."""
        headers = {
            "Nats-Msg-Id": f"{claim} {self.name}",
            "Nats-Expected-Last-Subject-Sequence-Subject": claim.rsplit("-", 2)[0],
            "Nats-Expected-Last-Subject-Sequence": "0",
        }
        try:
            await self._connection.jetstream(timeout=3).publish(claim, b"", headers=headers)
        except APIError as error:
            if error.err_code not in {broker.HAS_REPORT, broker.HAS_BEGUN}:
                raise
            return error.err_code
        return 0

    @staticmethod
    async def _lose(running: _Running) -> None:
        running.lost = True
        await running.dispatcher.cancel(running.task)

    async def _hand_in(self, file: Path) -> None:
        """Hands in the report of a task that is not under way here, which is then removed, as is one that is a day old
        or cannot be read."""
        if file.name in self._running:
            return
        with suppress(ValueError, KeyError, TypeError, OSError, MaxPayloadError):
            stored = await asyncio.to_thread(file.read_bytes)
            written, report = msgspec.json.decode(stored, type=tuple[str, dict[str, Any]])
            packet = packet_from_yaml(written)
            if broker.pool_of(packet) not in self.pools:
                return
            if time.time() - (await asyncio.to_thread(file.stat)).st_mtime < broker.DAY:
                await report_first(self._connection, packet, report_of(report))
                await self._ring(packet)
        self.ports.project.writer.remove(file, durable=False)

    async def _ring(self, packet: Packet) -> None:
        await self._connection.publish(broker.subject_of(EVENTS, packet), DONE)

    async def _queue(self, pool: str, message: Msg, seconds: float) -> _Queue | None:
        """The pool's queue; None if the message has been in it for more than `seconds`. The broker's clock may have
        been set since it was asked, so what seems to be over is asked about again."""
        if (queue := self._queues.get(pool)) is None or _age(message, queue) > seconds:
            answer = await self._connection.request(
                f"$JS.API.CONSUMER.INFO.{TASKS}.{broker.consumer_of(pool)}", timeout=3
            )
            info = msgspec.json.decode(answer.data)
            ahead = datetime.fromisoformat(info["ts"]).timestamp() - time.monotonic()
            self._queues[pool] = queue = _Queue(info["config"]["ack_wait"] / 1e9, ahead)
        return None if _age(message, queue) > seconds else queue

    async def _renew(self, message: Msg, packet: Packet, running: _Running, confirmed: float, limit: float) -> None:
        """Renews the task at a third of the limit, and stops it if nothing was confirmed for too long."""
        pause = limit / 3
        while True:
            await asyncio.sleep(max(min(pause, confirmed + KEEP * limit - time.monotonic()), 0))
            sent = time.monotonic()
            left = confirmed + KEEP * limit - sent
            if left <= 0:
                await self._lose(running)
                return
            try:
                await self._connection.request(message.reply, b"+WPI", timeout=min(limit / 6, left))
                confirmed, pause = sent, limit / 3
                await self._connection.publish(broker.subject_of(EVENTS, packet), b"")
            except (NatsError, TimeoutError):
                pause = limit / 20

    async def _pass_on(self, packet: Packet, local: Dispatcher, task: str) -> None:
        async for event in local.events(task):
            await self._connection.publish(broker.subject_of(EVENTS, packet), msgspec.json.encode(event))

    async def _refuse(self, message: Msg, reason: str) -> None:
        """Ends the task for every worker; the broker's advisory has the reason."""
        await self._connection.publish(message.reply, b"+TERM " + reason.encode()[:500])
        await self._connection.flush()

    async def _cancelled(self, message: Msg) -> None:
        if (running := self._running.get(message.subject.rpartition(".")[2])) is not None:
            await running.dispatcher.cancel(running.task)

    async def _asked(self, message: Msg) -> None:
        """Says who works here; a worker that the message names takes no more tasks and ends after those it has."""
        if message.data.decode(errors="replace") in {self.name, self.host}:
            self.tell(f"worker {self.name} was told to take no more tasks")
            self._stopping.set()
        if message.reply:
            is_ending = self._stopping.is_set()
            answer = Answer(
                self.name, list(self.pools), self.slots, len(self._running), self.done, is_ending, self.host
            )
            with suppress(NatsError):
                await self._connection.publish(message.reply, msgspec.json.encode(answer))


def _age(message: Msg, queue: _Queue) -> float:
    """The seconds since the broker stored the message."""
    return time.monotonic() + queue.ahead - message.metadata.timestamp.timestamp()


def _claim_of(message: Msg, packet: Packet) -> str:
    """The subject under which the first worker that begins this delivery of the task stores an empty message."""
    metadata = message.metadata
    return f"{broker.subject_of(broker.REPORT, packet)}-{metadata.sequence.stream}-{metadata.num_delivered}"
