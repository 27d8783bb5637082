"""A rolling upgrade with a really older version, from the history of this repository: its worker ends what it has and a
newer one goes on, and its owner's orders are done by a newer worker."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dispatch.nats_broker import Broker
from dispatch.nats_parts import owner, settings
from dispatch.test_nats_failures import noted, task
from navigator_nats.inspection import Cluster

pytestmark = [pytest.mark.ci, pytest.mark.requirement("X-6")]
TOP = Path(__file__).parents[2]
OLDER = "159ee212"  # the first version with `drain`; it sent neither bytes of skills nor files of orders
OWNS = """
import asyncio, sys
from dispatch.nats_parts import owner, settings
from dispatch.orders import order

async def main():
    dispatcher = owner(settings(sys.argv[1]))
    orders = [order(run=f"r{number}", timeout=40, request="sleep 0.2") for number in range(3)]
    tasks = [str(await dispatcher.submit(packet)) for packet in orders]
    print(*[(await dispatcher.result(task)).summary for task in tasks])
    await dispatcher.close()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the older version."""
    argv = ["git", "archive", OLDER, "kernel", "agents", "tests/dispatch"]
    done = subprocess.run(argv, cwd=TOP, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"the clone does not have the commit {OLDER}")
    folder = tmp_path_factory.mktemp("older")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    running = Broker(tmp_path / "store").start()
    yield running
    running.kill()


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(broker: Broker, tmp_path: Path) -> Iterator[Start]:
    """Starts a worker of the version at `top`; its notes are in `tmp_path`."""
    started: list[subprocess.Popen[str]] = []

    def begin(top: Path, name: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "dispatch.nats_worker", broker.url, name, str(tmp_path)]
        started.append(subprocess.Popen(argv, cwd=top, env=environment(top), text=True))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


def environment(top: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{top / 'tests'}:{top / 'kernel'}"}


def test_an_older_worker_ends_what_it_has_and_a_newer_one_goes_on(
    older: Path, broker: Broker, start: Start, tmp_path: Path
) -> None:
    async def upgraded() -> list[str]:
        sender = owner(settings(broker.url))
        try:
            old = start(older, "old")
            under_way = [str(await sender.submit(task(f"r{number}", "sleep 2"))) for number in range(2)]
            await noted(tmp_path / "r1", "old begun")
            async with Cluster.opened(settings(broker.url)) as cluster:
                assert await cluster.drain("old") == ["old"]
            under_way += [str(await sender.submit(task(f"r{number}", "sleep 0.2"))) for number in range(2, 5)]
            start(TOP, "new")
            summaries = [(await sender.result(name)).summary for name in under_way]
            assert await asyncio.to_thread(old.wait, 20) == 0
            return summaries
        finally:
            await sender.close()

    assert asyncio.run(upgraded()) == ["old", "old", "new", "new", "new"]
    assert [(tmp_path / f"r{number}").read_text().count("begun") for number in range(5)] == [1] * 5


def test_a_newer_worker_does_the_orders_of_an_older_owner(older: Path, broker: Broker, start: Start) -> None:
    start(TOP, "new")
    argv = [sys.executable, "-c", OWNS, broker.url]
    done = subprocess.run(argv, cwd=older, env=environment(older), capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["new", "new", "new"], done.stderr
