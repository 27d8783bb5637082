"""What a turn and a hop to an agent cost in a kernel that is already up."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

import pytest

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import load_settings
from navigator_kernel.dispatch import EventStream, InProcessDispatcher
from navigator_kernel.turn.turn import run_turn
from navigator_kernel.values.packet import Context, Packet, Params, TaskSpec
from navigator_kernel.values.request import Message, Session

pytestmark = pytest.mark.bench

ROUNDS = 400


class NoOp:
    name = "noop"
    aliases = ()
    description = "Does nothing"

    async def handle(self, prompt: str) -> object:
        return {"state": "success", "summary": "done"}


def told(what: str, seconds: list[float], capsys: pytest.CaptureFixture[str]) -> float:
    """The 95th percentile in seconds, printed."""
    p95 = quantiles(seconds, n=20)[-1]
    with capsys.disabled():
        p50 = quantiles(seconds, n=2)[0]
        figures = f"p50 {p50 * 1000:.2f} ms, p95 {p95 * 1000:.2f} ms, {len(seconds)} rounds"
        print(f"\n{what}: {figures}, load {os.getloadavg()[0]:.1f}")
    return p95


def test_a_turn_that_needs_no_skill_costs_under_5_ms(
    many_skills: Callable[[int], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    project = many_skills(200)
    kernel = Project(project, load_settings(project))
    session = Session(id="bench", notice_shown=True)

    async def turns() -> list[float]:
        seconds: list[float] = []
        for number in range(ROUNDS + 20):
            stream = EventStream(run=f"bench-{number}", turn=0, log=kernel.run_log, clock=kernel.clock)
            began = time.perf_counter()
            reply = await run_turn(Message(text=f"why is the sky blue {number}"), session, kernel, stream)
            seconds.append(time.perf_counter() - began)
            assert reply.report.data["reason"] == "no_model"
        return seconds[20:]

    assert told("turn without a skill, 200 skills", asyncio.run(turns()), capsys) < 0.005


def test_a_packet_to_an_agent_that_does_nothing_costs_under_1_ms(capsys: pytest.CaptureFixture[str]) -> None:
    dispatcher = InProcessDispatcher({"noop": NoOp()}, SystemClock())

    async def hops() -> list[float]:
        seconds: list[float] = []
        for number in range(ROUNDS + 20):
            packet = Packet(
                agent="noop",
                task_spec=TaskSpec(intent="nothing", operation="run", target="nothing"),
                params=Params(required={"text": "a few words"}),
                context=Context(run="bench", step=0, idempotency_key=f"bench/{number}"),
            )
            began = time.perf_counter()
            report = await dispatcher.result(await dispatcher.submit(packet))
            seconds.append(time.perf_counter() - began)
            assert report.state == "success"
        return seconds[20:]

    assert told("packet to an agent that does nothing", asyncio.run(hops()), capsys) < 0.001
