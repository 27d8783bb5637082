"""The turns of one session wait for each other, in order, and never for a process that is gone."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores import sessions
from navigator_kernel.adapters.stores.sessions import TurnQueue
from navigator_kernel.errors import Busy
from navigator_postgres.stores import PostgresStores

HOLD = """
import asyncio, sys, pathlib
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.sessions import TurnQueue
from navigator_postgres.plugin import kernel_register_stores
async def hold():
    folder = pathlib.Path(sys.argv[1])
    async with TurnQueue(folder, FolderWriter([folder]), kernel_register_stores(None)).turn("s", print):
        print("holds", flush=True)
        sys.stdin.read()
asyncio.run(hold())
"""


@pytest.fixture
def queue(tmp_path: Path, shared: PostgresStores | None) -> TurnQueue:
    return TurnQueue(tmp_path, FolderWriter([tmp_path]), shared)


def places(queue: TurnQueue) -> list[str]:
    """What is there for the turns that run and wait, on a machine's disk or in the database."""
    if queue.shared is None:
        return sorted(path.name for path in queue.folder.iterdir() if path.name != "lock")
    with queue.shared.open("places", (), beside=True) as database:
        return [str(place) for (place,) in database.execute("SELECT place FROM places ORDER BY place")]


def holder(queue: TurnQueue) -> subprocess.Popen[bytes]:
    """Another process, which takes a turn in session `s` until its stdin ends."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(queue.folder)], stdin=pipe, stdout=pipe)
    assert process.stdout is not None and process.stdout.readline() == b"holds\n"
    return process


def process_named(queue: TurnQueue, process: int) -> str:
    return f"process {process}" if queue.shared is None else f"process {process} on {socket.gethostname()}"


async def taken(queue: TurnQueue, name: str, done: list[str], told: list[str]) -> None:
    async with queue.turn("s", told.append):
        done.append(name)
        await asyncio.sleep(0.05)


def test_turns_are_taken_in_the_order_in_which_they_came(queue: TurnQueue) -> None:
    async def all_at_once() -> None:
        async with queue.turn("s", told.append):
            tasks = [asyncio.ensure_future(taken(queue, str(number), done, told)) for number in range(12)]
            await asyncio.sleep(0.1)
            assert done == []
        await asyncio.gather(*tasks)

    done, told = list[str](), list[str]()
    asyncio.run(all_at_once())
    assert done == [str(number) for number in range(12)]
    assert places(queue) == []


def test_another_session_does_not_wait(queue: TurnQueue) -> None:
    async def both() -> None:
        async with queue.turn("s", print), queue.turn("t", print) as waited:
            assert not waited

    asyncio.run(asyncio.wait_for(both(), 10))


def test_a_turn_that_waits_says_for_which_process_and_comes_after_it(queue: TurnQueue) -> None:
    async def wait() -> None:
        task = asyncio.ensure_future(taken(queue, "mine", done, told))
        await asyncio.sleep(1.5)
        assert told and done == []
        other.communicate()
        await task

    done, told = list[str](), list[str]()
    with holder(queue) as other:
        asyncio.run(wait())
    assert (done, told) == (
        ["mine"],
        [f"waiting for {process_named(queue, other.pid)}, which is taking a turn in session 's'"],
    )


def test_a_killed_process_holds_up_nobody(queue: TurnQueue) -> None:
    with holder(queue) as other:
        other.kill()
    done = list[str]()
    asyncio.run(asyncio.wait_for(taken(queue, "mine", done, []), 10))
    assert done == ["mine"] and places(queue) == []


def test_after_the_stated_time_the_session_is_busy_with_its_holder(
    queue: TurnQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "PATIENCE", 0.2)
    with holder(queue) as other:
        with pytest.raises(Busy, match=f"session 's' is busy: process {other.pid}.* for 0.2 seconds"):
            asyncio.run(taken(queue, "mine", [], []))
        other.communicate()


def test_a_full_queue_refuses_at_once(queue: TurnQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    async def one_too_many() -> None:
        async with queue.turn("s", print):
            waiting = asyncio.ensure_future(taken(queue, "waits", [], []))
            await asyncio.sleep(0.05)
            with pytest.raises(Busy, match=f"process {os.getpid()}.*and 1 turns wait"):
                await taken(queue, "mine", [], [])
        await waiting

    monkeypatch.setattr(sessions, "MOST", 1)
    asyncio.run(one_too_many())


def test_a_turn_that_is_stopped_while_it_waits_leaves_the_queue(queue: TurnQueue) -> None:
    async def stopped() -> None:
        async with queue.turn("s", print):
            waiting = asyncio.ensure_future(taken(queue, "waits", [], []))
            await asyncio.sleep(0.1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert len(places(queue)) == 1

    asyncio.run(stopped())
