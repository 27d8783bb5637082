"""Runs an agent loop against a model of the wire server, and returns the result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from models.wire_server import Said, WireServer
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.models.chat_model import WireModel
from navigator_kernel.agent_loop.loop import AgentLoop, Budget, End
from navigator_kernel.config.settings import ModelProvider, Models
from navigator_kernel.events import Body, Event
from navigator_kernel.values.chat import ToolCall, ToolSpec
from navigator_kernel.values.work import AgentState, AgentTask, ToolAnswer

WORK = AgentTask(run="run-1", step=0, request="How far is the moon?", language="en")


@dataclass
class Table:
    """Implements `ports.Tools`: one tool that answers from a table, and fails if there is no entry."""

    answers: Mapping[str, str] = field(default_factory=lambda: {"moon": "384,400 km"})
    called: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def admit(self, work: AgentTask) -> None:
        return

    def offered(self, work: AgentTask) -> tuple[ToolSpec, ...]:
        schema = {"type": "object", "properties": {"word": {"type": "string"}}}
        return (ToolSpec(name="look_up", description="Looks a word up", schema=schema),)

    async def call(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> ToolAnswer:
        name = call.name
        self.called.append((name, arguments))
        found = self.answers.get(str(arguments.get("word"))) if name == "look_up" else None
        return ToolAnswer(text=found or f"no {name}", failed=found is None)


@dataclass
class Worked:
    progress: AgentState
    end: End
    events: list[Event]
    tools: Table

    def heard(self, kind: str) -> list[Body]:
        return [event.body for event in self.events if type(event.body).__name__ == kind]


def worked(
    server: WireServer,
    script: Sequence[Said],
    *,
    work: AgentTask = WORK,
    budget: Budget | None = None,
    tools: Table | None = None,
    context: int = 0,
) -> Worked:
    """Runs the loop. `script` holds the model's answers, in order; the last one repeats."""
    server.requests.clear()
    server.scripts["worker"] = lambda _messages, number: script[min(number, len(script)) - 1]
    models = Models(providers={"there": ModelProvider(server.url, context=context)}, retries=0)
    events: list[Event] = []
    held = tools or Table()

    def emit(body: Body, *, step: int | None = None, parent: int | None = None) -> Event:
        event = Event(run="run-1", turn=0, step=step, seq=len(events), ts="", parent=parent, body=body)
        events.append(event)
        return event

    async def run() -> tuple[AgentState, End]:
        model = WireModel("there:worker", models)
        loop = AgentLoop(work=work, model=model, tools=held, clock=SystemClock(), emit=emit, budget=budget or Budget())
        try:
            return await loop.run()
        finally:
            await model.close()

    progress, end = asyncio.run(run())
    return Worked(progress, end, events, held)


def with_skill(name: str, guide: str = "Be kind.") -> AgentTask:
    return replace(WORK, skill=name, digest=f"sha256:{abs(hash(name)):x}", guide=guide)
