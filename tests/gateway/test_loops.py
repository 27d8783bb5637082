"""The server's event loop has priority, turns run one after another, and no wait lasts for ever."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from navigator_kernel.gateway import workers
from navigator_kernel.gateway.workers import PATIENCE, server_loop, turn_loop

ROUNDS = 4


@contextmanager
def busy_server() -> Iterator[None]:
    """A server whose loop is busy with one callback."""
    begun, ends = threading.Event(), threading.Event()

    async def serve() -> None:
        begun.set()
        ends.wait(30)

    def run() -> None:
        with asyncio.Runner(loop_factory=server_loop) as runner:
            runner.run(asyncio.sleep(0.001))
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert begun.wait(30)
        yield
    finally:
        ends.set()
        thread.join()


async def rounds() -> None:
    for _ in range(ROUNDS):
        await asyncio.sleep(0)


def taken() -> float:
    """The seconds that a turn with ROUNDS rounds of its loop takes."""
    began = time.perf_counter()
    with asyncio.Runner(loop_factory=turn_loop) as runner:
        runner.run(rounds())
    return time.perf_counter() - began


@pytest.mark.wide
def test_a_turn_waits_for_a_busy_server_and_continues_all_the_same() -> None:
    with busy_server():
        held = taken()
    assert held >= PATIENCE * 0.9


def test_the_total_wait_of_a_turn_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(workers, "time", SimpleNamespace(monotonic=lambda: sum(waits)))
    monkeypatch.setattr(workers, "_server_is_idle", SimpleNamespace(wait=waits.append))
    taken()
    assert waits[0] == PATIENCE and set(waits[1:]) == {0.0}


def test_a_turn_does_not_wait_once_the_server_has_ended() -> None:
    with busy_server():
        pass
    assert min(taken() for _ in range(5)) < PATIENCE


def test_two_turns_do_not_compute_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PATIENCE", 30)
    computing, most, never = 0, 0, threading.Event()

    async def turn() -> None:
        nonlocal computing, most
        for _ in range(10):
            computing += 1
            most = max(most, computing)
            never.wait(0.001)  # releases the interpreter lock, so that another thread could compute
            computing -= 1
            await asyncio.sleep(0)

    def run() -> None:
        with asyncio.Runner(loop_factory=turn_loop) as runner:
            runner.run(turn())

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (computing, most) == (0, 1)


@pytest.mark.wide
def test_a_turn_that_computes_for_long_does_not_stop_the_others() -> None:
    holds, ends = threading.Event(), threading.Event()

    async def long() -> None:
        holds.set()
        assert ends.wait(30)

    def run() -> None:
        with asyncio.Runner(loop_factory=turn_loop) as runner:
            runner.run(long())

    thread = threading.Thread(target=run)
    thread.start()
    assert holds.wait(30)
    held = taken()
    ends.set()
    thread.join()
    assert held >= PATIENCE * 0.9
