from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dispatch.orders import order, stream
from navigator_kernel import dispatch
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.run_log import RunLog
from navigator_kernel.dispatch import InProcessDispatcher
from navigator_kernel.events import StepStarted
from navigator_kernel.ports import Agent
from navigator_kernel.turn.deliver import DispatchDeps, deliver
from navigator_kernel.values.packet import Packet, Report, packet_from_yaml
from navigator_kernel.values.plan import DispatchPlan, DispatchStep


@dataclass(kw_only=True)
class Speaker:
    """An agent with answers that a test defines; it keeps its prompts."""

    answer: Callable[[str], Awaitable[object]]
    name: str = "speaker"
    aliases: Sequence[str] = ()
    description: str = "for a test"
    prompts: list[str] = field(default_factory=list)

    async def handle(self, prompt: str) -> object:
        self.prompts.append(prompt)
        return await self.answer(prompt)


async def fine(prompt: str) -> object:
    return {"state": "success", "summary": "done", "data": {"thread": threading.current_thread().name}}


def speaker(answer: Any = fine) -> Speaker:
    if isinstance(answer, BaseException):

        async def raises(_: str) -> object:
            raise answer

        return Speaker(answer=raises)
    return Speaker(answer=answer)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the time allowed beyond the limit, so that the test is short."""
    monkeypatch.setattr(dispatch, "GRACE", 0.5)


def dispatcher(**agents: Agent) -> InProcessDispatcher:
    return InProcessDispatcher(agents, SystemClock())


async def sent(held: InProcessDispatcher, packet: Packet) -> Report:
    return await held.result(await held.submit(packet))


def asked(agent: Speaker, **given: Any) -> Report:
    return asyncio.run(sent(dispatcher(speaker=agent), order("speaker", **given)))


@dataclass(kw_only=True)
class Doer(Speaker):
    """An agent that also takes the packet itself."""

    packets: list[Packet] = field(default_factory=list)

    async def act(self, packet: Packet) -> object:
        self.packets.append(packet)
        return await self.answer("")


@pytest.mark.requirement("PKT-1")
def test_an_agent_of_the_process_that_takes_packets_gets_the_packet_itself() -> None:
    agent, packet = Doer(answer=fine), order("speaker")
    assert asyncio.run(sent(dispatcher(speaker=agent), packet)).state == "success"
    assert agent.packets[0] is packet and agent.prompts == []


def test_the_packet_parsed_from_an_agents_prompt_equals_the_one_in_the_log(tmp_path: Path) -> None:
    agent, emit = speaker(), stream(tmp_path)
    packet = order("speaker", text="x\x85\u2028😀\x7f", number=1e30, nested={"a": [None, True]})
    delivery = DispatchDeps(
        dispatcher=dispatcher(speaker=agent),
        clock=SystemClock(),
        offload=lambda packet, text: "",
        describe=lambda name: ("", ""),
    )
    asyncio.run(deliver(DispatchPlan(steps=(DispatchStep(packets=(packet,)),)), delivery, emit))
    log = RunLog(tmp_path, FolderWriter([tmp_path])).read("run-1")
    started = [event.body for event in log if isinstance(event.body, StepStarted)]
    assert packet_from_yaml(agent.prompts[0]).to_dict() == started[0].packet


def test_agents_run_beside_the_kernel_and_not_in_its_thread() -> None:
    assert asked(speaker()).data["thread"] != threading.current_thread().name


@pytest.mark.usefixtures("short")
def test_an_agent_that_sleeps_past_its_limit_is_a_timeout() -> None:
    async def sleeps(_: str) -> object:
        await asyncio.sleep(60)
        return "never"

    began = time.perf_counter()
    report = asked(speaker(sleeps), timeout=0.1)
    assert (report.state, report.data["limit"]) == ("timeout", 0.1)
    assert 0.1 <= report.data["elapsed"] <= time.perf_counter() - began < 30


@pytest.mark.wide
@pytest.mark.usefixtures("short")
def test_an_agent_that_blocks_its_loop_is_a_timeout_and_the_next_agent_still_works() -> None:
    free = threading.Event()

    async def blocks(_: str) -> object:
        free.wait(60)
        return "late"

    async def both() -> tuple[Report, Report]:
        held = dispatcher(bad=speaker(blocks), good=speaker())
        try:
            return await sent(held, order("bad", timeout=0.1)), await sent(held, order("good", timeout=20))
        finally:
            free.set()

    first, second = asyncio.run(both())
    assert (first.state, second.state) == ("timeout", "success")


@pytest.mark.usefixtures("short")
def test_an_agent_that_refuses_to_be_cancelled_is_a_timeout_all_the_same() -> None:
    async def stubborn(_: str) -> object:
        for _n in range(3):
            try:
                await asyncio.sleep(1.5)
            except asyncio.CancelledError:
                continue
        return "late"

    assert asked(speaker(stubborn), timeout=0.1).state == "timeout"


def test_the_kernel_is_not_blocked_while_an_agent_blocks() -> None:
    begun, free = threading.Event(), threading.Event()

    async def blocks(_: str) -> object:
        begun.set()
        return {"state": "success" if free.wait(20) else "error"}

    async def beside() -> Report:
        held = dispatcher(bad=speaker(blocks))
        task = await held.submit(order("bad"))
        assert await asyncio.to_thread(begun.wait, 20)
        free.set()
        return await held.result(task)

    assert asyncio.run(beside()).state == "success"


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), StopIteration(), GeneratorExit()]
)
def test_an_agent_that_calls_for_the_end_is_an_error_and_the_next_works(error: BaseException) -> None:
    async def both() -> tuple[Report, Report]:
        held = dispatcher(bad=speaker(error), good=speaker())
        return await sent(held, order("bad", timeout=20)), await sent(held, order("good", timeout=20))

    first, second = asyncio.run(both())
    assert (first.state, second.state) == ("error", "success")


def test_a_time_out_inside_an_agent_is_not_taken_for_its_own_limit() -> None:
    report = asked(speaker(TimeoutError("the printer")))
    assert (report.state, report.data["type"]) == ("error", "TimeoutError")


def test_an_unknown_agent_is_an_error_not_found() -> None:
    report = asyncio.run(sent(dispatcher(), order("nobody")))
    assert (report.state, report.exit_code, report.agent, report.recoverable) == ("error", 4, "nobody", True)


def test_an_agent_that_raises_is_reported_by_name() -> None:
    told: list[tuple[str, str]] = []
    held = InProcessDispatcher(
        {"bad": speaker(ValueError("odd"))}, SystemClock(), lambda agent, error: told.append((agent, repr(error)))
    )
    asyncio.run(sent(held, order("bad")))
    assert told == [("bad", "ValueError('odd')")]


def test_an_error_whose_str_fails_is_reported_with_its_type() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    held = InProcessDispatcher({"bad": speaker(Mute())}, SystemClock())
    report = asyncio.run(sent(held, order("bad")))
    assert (report.state, report.data["type"], report.summary) == ("error", "Mute", "Mute: <Mute>")


def test_two_who_wait_for_one_key_get_one_act() -> None:
    async def slow(_: str) -> object:
        await asyncio.sleep(0.1)
        return {"state": "success"}

    agent = speaker(slow)

    async def both() -> list[Report]:
        held = dispatcher(speaker=agent)
        return await asyncio.gather(*(sent(held, order("speaker", key="k")) for _ in range(3)))

    reports = asyncio.run(both())
    assert ({report.state for report in reports}, len(agent.prompts)) == ({"success"}, 1)


@pytest.mark.parametrize("steps", range(6))
def test_cancelling_the_turn_counts_in_the_moment_in_which_the_agent_answers(steps: int) -> None:
    """`asyncio.wait_for` of Python 3.11 returns the answer in that case, and the turn would continue."""

    async def turn() -> tuple[bool, bool]:
        held = dispatcher(speaker=speaker())
        key = await held.submit(order("speaker"))
        waiting = asyncio.ensure_future(held.result(key))
        await asyncio.sleep(0)
        while not held.heartbeat(key):  # until the agent has answered; this loop has not noticed it yet
            time.sleep(0.001)  # noqa: ASYNC251 - the loop must not run meanwhile
        for _ in range(steps):
            await asyncio.sleep(0)
        is_over = waiting.done()
        waiting.cancel()
        await asyncio.wait([waiting])
        return is_over, waiting.cancelled()

    is_over, is_cancelled = asyncio.run(turn())
    assert is_cancelled is not is_over


def test_the_thread_of_a_dispatcher_ends_with_it() -> None:
    before = set(threading.enumerate())
    held = dispatcher(speaker=speaker())
    asyncio.run(sent(held, order("speaker")))
    (own,) = [thread for thread in set(threading.enumerate()) - before if thread.name == "navigator-agents"]
    assert own.is_alive()
    del held
    deadline = time.monotonic() + 10
    while own.is_alive() and time.monotonic() < deadline:
        gc.collect()
        own.join(0.01)
    assert not own.is_alive()
