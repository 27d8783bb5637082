"""One project, one model of the wire server, and two engines that run turns there: `run_turn` and the state graph."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from models.wire_server import Said, WireServer, serving
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import ModelProvider, Models, Settings
from navigator_kernel.dispatch import EventStream
from navigator_kernel.events import Event
from navigator_kernel.turn.turn import run_turn
from navigator_kernel.values.request import Message, Session
from navigator_kernel.values.request import Said as Entry
from navigator_langgraph import state_graph
from person_state import accept
from specialist.turns import song
from turns.conftest import SHOUT, TEXT, Standing, put


@dataclass(frozen=True)
class Came:
    """The result of one turn."""

    text: str
    state: str
    skill: str = ""


class Engine(Protocol):
    """A conversation that survives its process: each `say` uses a new kernel."""

    events: list[Mapping[str, Any]]

    def say(self, text: str) -> Came: ...

    def agree(self, *, yes: bool) -> Came: ...


def kernel_at(root: Path, server: WireServer, **more: Any) -> Project:
    there = {"there": ModelProvider(server.url)}
    models = Models(**{"default": "there:worker", "providers": there, "retries": 0, **more})
    return Project(root, Settings(models=models, encoder="off"), clock=Standing())


@dataclass
class OwnEngine:
    root: Path
    server: WireServer
    settings: Mapping[str, Any]
    session: Session = field(default_factory=lambda: Session(id="s"))
    events: list[Mapping[str, Any]] = field(default_factory=list)

    def say(self, text: str) -> Came:
        kernel = kernel_at(self.root, self.server, **self.settings)

        def hear(event: Event) -> None:
            self.events.append(event.to_dict())

        stream = EventStream(kernel.ids.new(), 0, kernel.run_log, kernel.clock, [hear], redact=kernel.redact)
        reply = asyncio.run(run_turn(Message(text=text), self.session, kernel, stream))
        said = tuple(Entry(role=one.role, text=one.text, run="") for one in reply.said)
        self.session = msgspec.structs.replace(reply.session, history=(*self.session.history, *said))
        names = getattr(reply.decision.result, "names", ("",))
        return Came(reply.report.raw or reply.report.summary, reply.report.state, names[0])

    def agree(self, *, yes: bool) -> Came:
        return self.say("yes" if yes else "no")


@dataclass
class GraphEngine:
    root: Path
    server: WireServer
    settings: Mapping[str, Any]
    events: list[Mapping[str, Any]] = field(default_factory=list)

    def say(self, text: str) -> Came:
        return asyncio.run(self._turn({"messages": [("user", text)]}))

    def agree(self, *, yes: bool) -> Came:
        return asyncio.run(self._turn(Command(resume=yes)))

    async def _turn(self, given: Any) -> Came:
        kernel = kernel_at(self.root, self.server, **self.settings)
        thread: Any = {"configurable": {"thread_id": "s"}}
        async with AsyncSqliteSaver.from_conn_string(str(self.root.parent / "threads.sqlite")) as saver:
            graph = state_graph(kernel, saver)
            async for event in graph.astream(given, thread, stream_mode="custom", durability="sync"):
                self.events.append(event)
            state = await graph.aget_state(thread)
        if state.interrupts:
            return Came(state.interrupts[0].value["question"], "pending", state.values["current_skill"])
        report = state.values["report"]
        return Came(state.values["messages"][-1].text, report.get("state", ""), state.values["current_skill"])


ENGINES = {"own": OwnEngine, "langgraph": GraphEngine}


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: WireServer) -> Path:
    folder = tmp_path / "project"
    put(folder, "shout-loud", "Shouts a text in capitals", TEXT, SHOUT)
    (folder / ".claude" / "skills" / "song-writer").mkdir()
    (folder / ".claude" / "skills" / "song-writer" / "SKILL.md").write_text(song())
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    accept(folder, "song-writer")
    server.requests.clear()
    server.scripts.clear()
    return folder


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, root: Path, server: WireServer) -> Engine:
    more = getattr(request, "settings", {})
    made: Engine = ENGINES[request.param](root, server, more)
    return made


def says(server: WireServer, *script: Said) -> None:
    """Sets the model's answers, chosen by the number of its own answers since the person's last message."""

    def answer(messages: Sequence[Any], _number: int) -> Said:
        if "router" in str(messages[0]["content"]):
            return Said(text='{"skills": [], "direct": true}')
        last = max((at for at, one in enumerate(messages) if one["role"] == "user"), default=0)
        answered = sum(bool(one["role"] == "assistant") for one in messages[last:])
        return script[min(answered, len(script) - 1)]

    server.scripts["worker"] = answer
