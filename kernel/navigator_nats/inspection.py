"""What the broker keeps, for people: workers, queues, and tasks that it gave up, which can be sent again or dropped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec
from nats.errors import Error as NatsError
from nats.js.errors import NotFoundError

from navigator_kernel.errors import NotFound
from navigator_kernel.text import numbered
from navigator_nats import broker
from navigator_nats.broker import DEAD, HOSTS, REPORT, REPORTS, TASKS
from navigator_nats.files import FILES
from navigator_nats.worker import Answer

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

ANSWER = 0.5  # seconds for workers to answer


class Cluster:
    """A connection that asks the broker. NotFound for a task that was not given up."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.jetstream: JetStreamContext = client.jetstream(timeout=5)

    @classmethod
    @asynccontextmanager
    async def opened(cls, settings: broker.Settings) -> AsyncIterator[Cluster]:
        client = await broker.connect(settings, "status")
        try:
            yield cls(client)
        except (NatsError, TimeoutError) as error:
            raise broker.unreachable(settings, error) from error
        finally:
            await client.close()

    async def status(self) -> dict[str, Any]:
        """`workers`, `pools` with tasks `waiting` and `under_way`, `missing` streams, and `dead`: tasks given up, each
        with `key`, `pool`, `reason` and `sequence`, and whether it can be sent again."""
        missing = []
        for name in (TASKS, REPORTS, DEAD):
            try:
                await self.jetstream.stream_info(name)
            except (NotFoundError, *broker.GONE):
                missing.append(name)
        pools = [] if TASKS in missing else await self.jetstream.consumers_info(TASKS, 0)
        return {
            "workers": [msgspec.structs.asdict(worker) for worker in await self._workers()],
            "pools": [
                {
                    "pool": str(info.config.filter_subject).removeprefix("nav.task.").removesuffix(".*"),
                    "waiting": info.num_pending,
                    "under_way": info.num_ack_pending,
                    "again": info.num_redelivered,
                }
                for info in pools
            ],
            "missing": missing,
            "dead": [] if DEAD in missing else [dead async for dead in self._dead()],
        }

    async def retry(self, key: str) -> None:
        """Sends a task that was given up again, as a new message with all its deliveries."""
        dead = await self._given_up(key)
        try:
            raw = await self.jetstream.get_msg(TASKS, seq=dead["sequence"])
        except NotFoundError:
            raise NotFound(f"the packet of {key!r} is gone", hint="give the order again, and --drop this one") from None
        await self.drop(key)
        headers = {name: value for name, value in (raw.headers or {}).items() if name in {broker.DIGEST, FILES}}
        await self.jetstream.purge_stream(REPORTS, subject=f"{REPORT}.{dead['pool']}.{key}")
        await self.jetstream.publish(str(raw.subject), raw.data or b"", headers=headers or None)

    async def drop(self, key: str) -> None:
        """Deletes a task that was given up."""
        dead = await self._given_up(key)
        with suppress(NotFoundError):
            await self.jetstream.delete_msg(TASKS, dead["sequence"])
        await self.jetstream.delete_msg(DEAD, dead["advisory"])

    async def drain(self, host: str) -> list[str]:
        """Tells the worker of this name, or all workers of the host, to end after their tasks; returns their names."""
        if told := [worker.name for worker in await self._workers(host) if host in {worker.name, worker.host}]:
            return told
        raise NotFound(f"no worker and no host is called {host!r}", hint="navigator cluster status shows the workers")

    async def _workers(self, told: str = "") -> list[Answer]:
        listening = await self.client.subscribe(inbox := self.client.new_inbox())
        await self.client.publish(HOSTS, told.encode(), reply=inbox)
        found, until = list[Answer](), asyncio.get_running_loop().time() + ANSWER
        with suppress(TimeoutError):
            while (left := until - asyncio.get_running_loop().time()) > 0:
                message = await listening.next_msg(left)
                with suppress(ValueError):  # empty if nobody listens
                    found.append(msgspec.json.decode(message.data, type=Answer))
        return sorted(found, key=lambda worker: worker.name)

    async def _given_up(self, key: str) -> dict[str, Any]:
        async for dead in self._dead():
            if dead["key"] == key:
                return dead
        raise NotFound(f"no task {key!r} was given up", hint="navigator cluster doctor lists them")

    async def _dead(self) -> AsyncIterator[dict[str, Any]]:
        """Tasks that the broker gave up. One whose packet is gone has its sequence for a key."""
        state = (await self.jetstream.stream_info(DEAD)).state
        for number in range(max(state.first_seq, 1), state.last_seq + 1):
            try:
                raw = await self.jetstream.get_msg(DEAD, seq=number)
            except NotFoundError:
                continue
            advisory = json.loads(raw.data or b"{}")
            if advisory.get("reason") in broker.NOT_DEAD:
                continue
            sequence, key = advisory["stream_seq"], f"seq-{advisory['stream_seq']}"
            pool, is_kept = str(advisory["consumer"]).replace("_", ".", 1), True
            try:
                packet = await self.jetstream.get_msg(TASKS, seq=sequence)
                key, pool = str(packet.subject).rpartition(".")[2], str(packet.subject)[len("nav.task.") : -65]
            except NotFoundError:
                is_kept = False
            reason = advisory.get("reason") or "it was begun several times and never ended"
            yield {
                "key": key,
                "pool": pool,
                "reason": reason,
                "sequence": sequence,
                "advisory": number,
                "can_retry": is_kept,
            }


def lines_of(body: dict[str, Any]) -> list[str]:
    """Sentences that show a status."""
    lines = [
        f"worker {each['name']}: {' '.join(each['pools'])}, {each['running']} under way, {each['done']} done"
        + (", ends" if each["ending"] else "")
        for each in body["workers"]
    ]
    lines += [
        f"pool {each['pool']}: {each['waiting']} waiting, {each['under_way']} under way" for each in body["pools"]
    ]
    return [*lines, f"{numbered(len(body['dead']), 'task')} given up"]


def problems_of(body: dict[str, Any]) -> list[str]:
    """Sentences that say what is wrong in a status."""
    served = {pool for each in body["workers"] for pool in each["pools"]}
    waits = [each["pool"] for each in body["pools"] if each["pool"] not in served and each["waiting"]]
    return [
        *(f"the stream {name} is missing" for name in body["missing"]),
        *(f"no worker takes tasks of the pool {pool}" for pool in waits),
        *(f"given up: {each['key']} ({each['pool']}): {each['reason']}" for each in body["dead"]),
    ]
