"""What holds for every dispatcher: in this process, and over a real broker with a worker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from dispatch.nats_broker import Broker
from dispatch.nats_parts import owner, ports_of, settings, worker
from dispatch.orders import order
from navigator_kernel.errors import Busy, ConsentNeeded, KernelError, NotFound, TimedOut
from navigator_kernel.ports import Dispatcher
from navigator_kernel.values.packet import Packet, Report, packet_from_yaml

pytestmark = [pytest.mark.ci, pytest.mark.wide]


@dataclass(kw_only=True)
class Speaker:
    """An agent called `skills` with an answer that a test defines; it keeps its prompts."""

    answer: Callable[[str], Awaitable[object]]
    name: str = "skills"
    aliases: tuple[str, ...] = ()
    description: str = "for a test"
    prompts: list[str] = field(default_factory=list)

    async def handle(self, prompt: str) -> object:
        self.prompts.append(prompt)
        return await self.answer(prompt)


def saying(answer: object) -> Speaker:
    async def says(_: str) -> object:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return Speaker(answer=says)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    held = Broker(tmp_path_factory.mktemp("broker")).start()
    yield held
    held.kill()


@pytest.fixture(params=["in process", "nats"])
def dispatching(request: pytest.FixtureRequest) -> Any:
    """Opens a dispatcher whose packets reach the given agent."""

    @asynccontextmanager
    async def local(agent: Speaker) -> AsyncIterator[Dispatcher]:
        yield ports_of({"skills": agent}).local()

    @asynccontextmanager
    async def over_nats(agent: Speaker) -> AsyncIterator[Any]:
        broker = request.getfixturevalue("broker")
        held = settings(broker.url)
        sender, working = owner(held), worker(held, {"skills": agent}, broker.folder / "state")
        serving = asyncio.ensure_future(working.run())
        try:
            yield sender
        finally:
            await working.stop()
            await working.stop()
            await serving
            await sender.close()

    return local if request.param == "in process" else over_nats


@pytest.fixture
def sent(dispatching: Any, request: pytest.FixtureRequest) -> Callable[..., Report]:
    """The report on a packet that the given agent got."""

    def send(agent: Speaker, packet: Packet) -> Report:
        async def run() -> Report:
            async with dispatching(agent) as dispatcher:
                report: Report = await dispatcher.result(await dispatcher.submit(packet))
                return report

        return asyncio.run(run())

    return send


def named(request: pytest.FixtureRequest, **given: Any) -> Packet:
    """A packet of this test only: the broker keeps reports between tests."""
    return order(key=request.node.nodeid, **given)


@pytest.mark.requirement("PKT-1")
def test_an_agent_gets_the_yaml_of_its_packet_byte_for_byte(sent: Any, request: pytest.FixtureRequest) -> None:
    agent, packet = (
        saying("done"),
        named(request, text="a\n需求 x\x85\u2028😀", number=1e30, nested={"a": [None, True]}),
    )
    sent(agent, packet)
    assert agent.prompts == [packet.to_yaml()]
    assert packet_from_yaml(agent.prompts[0]) == packet


@pytest.mark.parametrize(
    "answer",
    [
        {
            "state": "success",
            "summary": "done",
            "data": {"n": 1.5, "t": "é\n", "list": [None, True]},
            "raw": "all of it",
        },
        {"state": "partial", "summary": "half", "effects": ["wrote a"], "recoverable": True},
        "garbage",
        None,
        RuntimeError("脚本执行失败"),
        NotFound("x", hint="look"),
        Busy("x"),
        TimedOut("x"),
        ConsentNeeded("run it", subject="s@sha256:1", also=["t"]),
    ],
    ids=repr,
)
@pytest.mark.requirement("RET-1", "RET-10")
def test_the_report_is_the_one_of_a_single_machine(sent: Any, request: pytest.FixtureRequest, answer: object) -> None:
    packet = named(request)
    report = sent(saying(answer), packet)

    async def here() -> Report:
        local = ports_of({"skills": saying(answer)}).local()
        return await local.result(str(await local.submit(packet)))

    own = asyncio.run(here())
    measured = {**own.to_dict()["meta"], "time": report.meta.time, "ts": report.meta.ts}
    assert report.to_dict() == {**own.to_dict(), "meta": measured}
    assert (report.subject, report.also) == (own.subject, own.also)


def test_the_same_key_acts_once(dispatching: Any, request: pytest.FixtureRequest) -> None:
    agent = saying({"state": "success"})

    async def twice() -> tuple[Report, Report]:
        async with dispatching(agent) as dispatcher:
            tasks = [await dispatcher.submit(named(request)), await dispatcher.submit(named(request, other=1))]
            assert tasks[0] == tasks[1]
            first, second = await asyncio.gather(*map(dispatcher.result, tasks))
            return first, second

    first, second = asyncio.run(twice())
    assert first == second and len(agent.prompts) == 1


def endless() -> tuple[Speaker, threading.Event]:
    """An agent that does not end by itself, and whether it was stopped."""
    stopped = threading.Event()

    async def sleeps(_: str) -> object:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()
        return "never"

    return Speaker(answer=sleeps), stopped


async def begun(agent: Speaker) -> None:
    for _ in range(1_000):
        await asyncio.sleep(0.01)  # also, the task that waits for the agent's answer must have begun
        if agent.prompts:
            return
    raise AssertionError("the agent did not begin")


def test_a_cancelled_task_stops_its_agent_and_has_a_report(dispatching: Any, request: pytest.FixtureRequest) -> None:
    agent, stopped = endless()

    async def cancelled() -> Report:
        async with dispatching(agent) as dispatcher:
            task = await dispatcher.submit(named(request))
            await begun(agent)
            await dispatcher.cancel(task)
            report: Report = await dispatcher.result(task)
            assert await asyncio.to_thread(stopped.wait, 20)
            return report

    report = asyncio.run(cancelled())
    assert (report.state, report.data["type"], report.exit_code) == ("error", "Interrupted", 130)


def test_cancelling_the_turn_stops_the_agent(dispatching: Any, request: pytest.FixtureRequest) -> None:
    agent, stopped = endless()

    async def cancelled() -> None:
        async with dispatching(agent) as dispatcher:
            turn = asyncio.ensure_future(dispatcher.result(await dispatcher.submit(named(request))))
            await begun(agent)
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            assert await asyncio.to_thread(stopped.wait, 20)

    asyncio.run(cancelled())


def test_a_task_gives_signs_of_life_until_it_has_ended(dispatching: Any, request: pytest.FixtureRequest) -> None:
    async def beats() -> tuple[float, list[object], float]:
        async with dispatching(saying("done")) as dispatcher:
            task = await dispatcher.submit(named(request))
            before = dispatcher.heartbeat(task)
            events = [event async for event in dispatcher.events(task)]
            await dispatcher.result(task)
            return before, events, dispatcher.heartbeat(task)

    before, events, after = asyncio.run(beats())
    assert before >= 0 and events == [] and after >= 0


def test_a_task_that_nobody_submitted_is_not_found(dispatching: Any) -> None:
    async def asked() -> None:
        async with dispatching(saying("done")) as dispatcher:
            with pytest.raises(NotFound):
                dispatcher.heartbeat("nothing")
            for ask in (dispatcher.result("nothing"), dispatcher.cancel("nothing")):
                with pytest.raises(KernelError):
                    await ask

    asyncio.run(asked())
