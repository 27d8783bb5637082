"""What the loop of phase 2 costs over the plain SDK call, beside LangGraph, against a model that answers at once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest
from langgraph.graph import END, START, MessagesState, StateGraph
from openai import AsyncOpenAI

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.models.chat_model import WireModel
from navigator_kernel.agent_loop.loop import AgentLoop
from navigator_kernel.agent_loop.window import tokens
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import ModelProvider, Models, Settings
from navigator_kernel.dispatch import EventStream
from navigator_kernel.events import Body, Event, StepStarted
from navigator_kernel.turn.turn import run_turn
from navigator_kernel.values.chat import Asked, ChatMessage, Completion, Spent, ToolCall
from navigator_kernel.values.packet import Packet, packet_from
from navigator_kernel.values.request import Message, Session
from navigator_langgraph import state_graph
from specialist.at_work import WORK, Table
from specialist.turns import song

pytestmark = pytest.mark.bench

ROUNDS = 300
TEXT = "It is 384,400 km away."


@pytest.fixture
def url() -> Iterator[str]:
    """Of a server in a process of its own."""
    here = Path(__file__)
    argv = [sys.executable, str(here.with_name("loop_server.py")), TEXT]
    env = {**os.environ, "PYTHONPATH": str(here.parents[1])}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None and process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project" / ".claude" / "skills" / "song-writer"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(song())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


Ways = dict[str, Callable[[], Awaitable[Any]]]


def _peers(client: AsyncOpenAI) -> Ways:
    """The plain call, and a graph of one node that makes it."""

    async def sdk() -> str:
        said: Any = [{"role": "user", "content": WORK.request}]
        stream = await client.chat.completions.create(model="worker", messages=said, stream=True)
        return "".join([piece.choices[0].delta.content or "" async for piece in stream if piece.choices])

    async def node(_state: MessagesState) -> dict[str, Any]:
        return {"messages": [("assistant", await sdk())]}

    plain: Any = StateGraph(MessagesState)
    plain.add_node("node", node)
    plain.add_edge(START, "node")
    plain.add_edge("node", END)
    graph = plain.compile()

    async def langgraph() -> str:
        return str((await graph.ainvoke({"messages": [("user", WORK.request)]}))["messages"][-1].text)

    return {"plain SDK": sdk, "LangGraph, one node": langgraph}


def _ours(model: WireModel, kernel: Project, order: Packet) -> Ways:
    events: list[Event] = []
    graph = state_graph(kernel)

    def emit(body: Body, *, step: int | None = None, parent: int | None = None) -> Event:
        events.append(Event(run="run-1", turn=0, step=step, seq=len(events), ts="", parent=parent, body=body))
        return events[-1]

    async def loop() -> str:
        held = AgentLoop(work=WORK, model=model, tools=Table(), clock=SystemClock(), emit=emit)
        return (await held.run())[0].text

    async def kept() -> str:
        """As in a turn of a session: what would be left of it by a killed process is on file."""
        held = AgentLoop(work=WORK, model=model, tools=Table(), clock=SystemClock(), emit=emit)
        run, underway = order.context.run, kernel.underway
        assert underway is not None
        held.keep = partial(underway.note, run)
        with underway.kept(run, Session(id="s"), ()):
            underway.start(order, 0)
            return (await held.run())[0].text

    async def turn() -> str:
        stream = EventStream(kernel.ids.new(), 0, kernel.run_log, kernel.clock)
        session = Session(id="s", notice_shown=True)
        return (await run_turn(Message(text="/song-writer the moon"), session, kernel, stream)).report.raw or ""

    async def our_graph() -> str:
        return str((await graph.ainvoke({"messages": [("user", "/song-writer the moon")]}))["messages"][-1].text)

    return {"our loop": loop, "our loop, kept": kept, "whole turn": turn, "our nodes on LangGraph": our_graph}


async def _order(kernel: Project) -> Packet:
    """The one of a turn with the skill."""
    stream = EventStream(kernel.ids.new(), 0, kernel.run_log, kernel.clock)
    reply = await run_turn(Message(text="/song-writer the moon"), Session(id="s"), kernel, stream)
    began = next(event.body for event in kernel.run_log.read(reply.run) if isinstance(event.body, StepStarted))
    return packet_from(began.packet)


async def _measured(url: str, project: Path) -> dict[str, list[float]]:
    """Milliseconds of one streamed answer to one message, one way after another; connections stay open but between
    whole turns."""
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    models = Models(default="there:worker", providers={"there": ModelProvider(url)}, retries=0)
    model = WireModel("there:worker", models)
    kernel = Project(project, Settings(models=models, encoder="off"))
    ways = {**_peers(client), **_ours(model, kernel, await _order(kernel))}
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(ROUNDS + 20):
        for name, way in ways.items():
            began = time.perf_counter()
            assert await way() == TEXT
            if number >= 20:
                taken[name].append((time.perf_counter() - began) * 1000)
    await client.close()
    await model.close()
    return taken


def test_the_loop_costs_at_most_5_ms_over_the_plain_call(
    url: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = asyncio.run(_measured(url, project))
    base = taken["plain SDK"]
    over = {name: [one - sdk for one, sdk in zip(held, base, strict=True)] for name, held in taken.items()}
    with capsys.disabled():
        print(f"\n{ROUNDS} rounds, load {os.getloadavg()[0]:.1f}")
        for name, held in taken.items():
            cuts, more = quantiles(held, n=20), quantiles(over[name], n=20)
            figures = (
                f"p50 {cuts[9]:.1f} ms, p95 {cuts[-1]:.1f} ms, over the plain SDK p50 {more[9]:.1f}, p95 {more[-1]:.1f}"
            )
            print(f"{name}: {figures}")
    assert quantiles(over["our loop"], n=20)[-1] <= 5.0
    assert quantiles(over["our loop, kept"], n=20)[-1] <= 5.0


LONG_ROUNDS = 60
RESULT = "The moon is 384,400 km away, and moves 3.8 cm further each year. " * 60  # 4,000 characters


def test_a_work_of_sixty_rounds_costs_at_most_5_ms_of_cpu_a_round_and_keeps_the_beginning_of_its_requests(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Over a plain client that sends the same requests, in CPU time of this process without the model's server. The
    share of a request that equals the one before it is what a provider can read from its cache."""
    requests: list[Asked] = []

    class Still:
        """A model that answers at once, and keeps what it was asked."""

        name, context = "there:worker", 200_000

        async def complete(self, asked: Asked, _told: Callable[[str], None] | None = None) -> Completion:
            requests.append(asked)
            call = ToolCall(id=str(len(requests)), name="look_up", arguments=f'{{"word": "{len(requests)}"}}')
            calls = () if len(requests) > LONG_ROUNDS else (call,)
            message = ChatMessage(role="assistant", text="" if calls else TEXT, calls=calls)
            return Completion(message=message, model=self.name, spent=Spent(requests=1, input=1, output=1))

        async def close(self) -> None:
            return

    def emit(body: Body, *, step: int | None = None, parent: int | None = None) -> Event:
        return Event(run="run-1", turn=0, step=step, seq=0, ts="", parent=parent, body=body)

    words = {str(number): f"{number}: {RESULT}" for number in range(1, LONG_ROUNDS + 1)}  # other work in each round
    began = time.process_time()
    loop = AgentLoop(work=WORK, model=Still(), tools=Table(words), clock=SystemClock(), emit=emit)
    progress, end = asyncio.run(loop.run())
    each = (time.process_time() - began) * 1000 / LONG_ROUNDS
    assert (end, progress.rounds) == ("done", LONG_ROUNDS)
    same = all_tokens = 0
    for before, after in pairwise(request.messages for request in requests):
        equal = next(
            (at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), len(before)
        )
        same += sum(map(tokens, before[:equal]))
        all_tokens += sum(map(tokens, before))
    with capsys.disabled():
        print(f"\n{LONG_ROUNDS} rounds: {each:.2f} ms of CPU a round, {same / all_tokens:.1%} of the tokens as before")
    assert each <= 5.0
    assert same / all_tokens >= 0.95
