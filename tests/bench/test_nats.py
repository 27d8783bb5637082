"""What a packet costs from its order to its report: in this process, and over a real broker with a worker of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import quantiles

import nats
import pytest
from nats.js.api import StorageType

from dispatch.nats_broker import Broker
from dispatch.nats_parts import owner, ports_of, settings
from dispatch.orders import order
from navigator_kernel.ports import Dispatcher
from navigator_nats import broker as names
from navigator_nats.dispatcher import NatsDispatcher

pytestmark = pytest.mark.bench

ROUNDS, WARM = 400, 20
TESTS = Path(__file__).parents[1]


class Nothing:
    name, aliases, description = "skills", (), "Does nothing"

    async def handle(self, prompt: str) -> object:
        return {"state": "success", "summary": "done"}


async def hops(dispatcher: Dispatcher | NatsDispatcher) -> list[float]:
    """Seconds of each round, sorted; a packet has 1.4 kB."""
    seconds: list[float] = []
    for number in range(ROUNDS + WARM):
        packet = order(run=f"bench-{number}", request="nothing", text="word " * 210)
        began = time.perf_counter()
        report = await dispatcher.result(str(await dispatcher.submit(packet)))
        seconds.append(time.perf_counter() - began)
        assert report.state == "success"
    return sorted(seconds[WARM:])


async def over(broker: Broker, storage: StorageType) -> list[float]:
    """The same over the broker, with streams of this storage."""
    held = settings(broker.url)
    client = await nats.connect(broker.url)
    await names.make_streams(client.jetstream(), held, storage)
    await client.close()
    sender = owner(held)
    try:
        return await hops(sender)
    finally:
        await sender.close()


def started(broker: Broker, folder: Path) -> subprocess.Popen[bytes]:
    """A worker in another process."""
    argv = [sys.executable, "-m", "dispatch.nats_worker", broker.url, "w", str(folder)]
    return subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent / 'kernel'}"})


def test_a_packet_over_a_broker_costs_milliseconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = {"in process": asyncio.run(hops(ports_of({"skills": Nothing()}).local()))}
    ways = [("memory", StorageType.MEMORY, ""), ("file", StorageType.FILE, "")]
    ways.append(("file, sync always", StorageType.FILE, "sync_interval: always"))
    for name, storage, more in ways:
        folder = tmp_path / name.replace(", ", "-").replace(" ", "-")
        folder.mkdir()
        configuration = folder / "nats.conf"
        configuration.write_text(f'jetstream: {{ store_dir: "{folder / "store"}"\n {more} }}\n')
        broker = Broker(folder, configuration).start()
        worker = started(broker, folder)
        try:
            measured[f"NATS, {name}"] = asyncio.run(over(broker, storage))
        finally:
            worker.kill()
            worker.wait()
            broker.kill()
    with capsys.disabled():
        for name, seconds in measured.items():
            p99 = quantiles(seconds, n=100)[-1] * 1000
            p50 = seconds[len(seconds) // 2] * 1000
            print(
                f"\n{name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, {ROUNDS} rounds, load {os.getloadavg()[0]:.1f}", end=""
            )
        print()
    half = {name: seconds[len(seconds) // 2] for name, seconds in measured.items()}
    assert half["in process"] < half["NATS, memory"]
    assert half["NATS, file"] < 0.05  # the goal on a quiet machine is 1.5 ms
