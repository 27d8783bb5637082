"""Turns on their own threads can be stopped at any time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.bootstrap.project import Project
from navigator_kernel.errors import Interrupted, NotFound
from navigator_kernel.gateway.workers import TurnWorkers

LIMIT = 20.0  # seconds


class Preparing:
    """Makes event loops that a turn has to wait for."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def loop(self) -> asyncio.AbstractEventLoop:
        self.begun.set()
        assert self.go.wait(LIMIT)
        return asyncio.SelectorEventLoop()


@pytest.fixture
def preparing() -> Preparing:
    return Preparing()


@pytest.fixture
def workers(tmp_path: Path, preparing: Preparing, monkeypatch: pytest.MonkeyPatch) -> Iterator[TurnWorkers]:
    monkeypatch.setattr("navigator_kernel.gateway.workers.turn_loop", preparing.loop)
    held = TurnWorkers(Project(tmp_path), most=1)
    yield held
    preparing.go.set()
    held.close(0.0)


class Turn:
    """A turn that records whether it ran."""

    ran = False

    async def take(self, _turns: object) -> Any:
        self.ran = True


def test_a_turn_that_is_stopped_while_its_loop_is_made_does_not_run(workers: TurnWorkers, preparing: Preparing) -> None:
    turn = Turn()
    future = workers.start("one", turn.take)
    assert preparing.begun.wait(LIMIT)
    workers.cancel("one")
    preparing.go.set()
    with pytest.raises(Interrupted):
        future.result(LIMIT)
    assert not turn.ran


def test_a_turn_that_waits_for_a_thread_is_stopped_and_the_one_before_it_runs(
    workers: TurnWorkers, preparing: Preparing
) -> None:
    first, second = Turn(), Turn()
    before = workers.start("one", first.take)
    future = workers.start("two", second.take)
    workers.cancel("two")
    preparing.go.set()
    before.result(LIMIT)
    assert (future.cancelled(), first.ran, second.ran) == (True, True, False)


def test_closing_stops_a_turn_whose_loop_is_being_made(
    workers: TurnWorkers, preparing: Preparing, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = Turn()
    future = workers.start("one", turn.take)
    assert preparing.begun.wait(LIMIT)
    shutdown = workers._threads.shutdown

    def shut_down(*, wait: bool, cancel_futures: bool = False) -> None:
        if wait:  # the last step of closing
            preparing.go.set()
        shutdown(wait=wait, cancel_futures=cancel_futures)

    monkeypatch.setattr(workers._threads, "shutdown", shut_down)
    workers.close(0.0)
    with pytest.raises(Interrupted):
        future.result(LIMIT)
    assert not turn.ran


def test_a_turn_that_has_ended_is_not_found(workers: TurnWorkers, preparing: Preparing) -> None:
    preparing.go.set()
    workers.start("one", Turn().take).result(LIMIT)
    for run in ("one", "another"):
        with pytest.raises(NotFound, match=f"no run '{run}' is under way"):
            workers.cancel(run)
