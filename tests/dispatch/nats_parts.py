"""A dispatcher, and workers in this process or in others, for tests of dispatch over a real broker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.dispatch import InProcessDispatcher, failure
from navigator_kernel.ports import Agent, DispatchPorts, ProjectPorts
from navigator_kernel.values.packet import Meta, Packet, Report
from navigator_nats.broker import Settings
from navigator_nats.dispatcher import NatsDispatcher
from navigator_nats.worker import Worker

NOWHERE = Path("/nonexistent")


class TickingClock(SystemClock):
    """Each look at it is a second later than the last: what is measured twice differs."""

    def __init__(self) -> None:
        self._seconds = count()

    def monotonic(self) -> float:
        return float(next(self._seconds))


def ports_of(agents: Mapping[str, Agent], digest: str = "", state: Path = NOWHERE) -> DispatchPorts:
    """The ports of a host with these agents, whose skills all have `digest`; a worker needs a folder for its state."""
    clock = TickingClock()

    def failed(packet: Packet, error: BaseException, seconds: float) -> Report:
        meta = Meta(agent=packet.agent, time=round(seconds, 3), ts=clock.now())
        return failure(error, meta, packet.context.language)

    return DispatchPorts(
        root=Path(),
        clock=clock,
        local=lambda: InProcessDispatcher(agents, clock),
        digest=lambda _packet: digest,
        failed=failed,
        files=lambda _packet: {},
        agree=lambda _run: None,
        named=lambda _packet: {},
        keep=lambda _run, name, _data: name,
        made=lambda _run, _name, _limit: b"",
        project=ProjectPorts(root=Path(), state=state, writer=FolderWriter([state]), encoder=lambda: None),
    )


def settings(
    url: str, *, pools: tuple[str, ...] = ("skills",), ack_wait: float = 3.0, bound: int = 100, seed: str = ""
) -> Settings:
    return Settings(url=url, pools=pools, ack_wait=ack_wait, bound=bound, seed=seed)


def owner(held: Settings, digest: str = "") -> NatsDispatcher:
    return NatsDispatcher(ports_of({}, digest), held)


def worker(
    held: Settings,
    agents: Mapping[str, Agent],
    state: Path = NOWHERE,
    *,
    digest: str = "",
    name: str = "w",
    slots: int = 1,
) -> Worker:
    return Worker(ports=ports_of(agents, digest, state), settings=held, name=name, pools=held.pools, slots=slots)


def started_worker(root: Path, url: str, *more: str, **environment: str) -> subprocess.Popen[str]:
    """`navigator worker` in a process of its own, which prints to stderr when it takes tasks."""
    argv = [sys.executable, "-m", "navigator_kernel.cli.main", "worker", "--url", url, *more]
    return subprocess.Popen(
        argv, cwd=root, env={**os.environ, **environment}, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
