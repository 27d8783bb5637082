"""A turn as a LangGraph `StateGraph`, for applications built on LangGraph (extra `langgraph`; JIT-6, 7, 11).

The nodes are the steps of `navigator_kernel.turn_steps`. The graph interrupts when the turn waits for the person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt
from msgspec import Struct

from navigator_kernel.turn_steps import TurnState, TurnSteps, first_step, next_step, step_after_round
from navigator_kernel.values.request import Said

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

    from navigator_kernel.events import Event
    from navigator_kernel.ports import Kernel

HOPS = 20_000  # graph steps of one run; the limits of a turn end the work long before
PLACES = {"end": END}  # every other step has a node of its name


class State(TurnState, total=False):
    """The state of the turn, and the conversation as LangChain's messages."""

    messages: Annotated[list[AnyMessage], add_messages]


class Nodes(Struct):
    """The nodes of the graph. Each returns its changes to the state."""

    steps: TurnSteps

    async def router(self, state: State, config: RunnableConfig) -> State:
        thread = str(config.get("configurable", {}).get("thread_id", "graph"))
        return _answered(await self.steps.router(state, _said(state), thread))

    async def loader(self, state: State) -> State:
        return _answered(await self.steps.loader(state, _said(state)))

    async def specialist(self, state: State) -> State:
        return _answered(await self.steps.specialist(state, _said(state)))

    async def continue_check(self, state: State) -> State:
        return _answered(await self.steps.continue_check(state, _said(state)))

    async def person(self, state: State) -> State:
        """Asks the person with an interrupt, which is resumed with True, False or words."""
        return _answered(await self.steps.person(state, _said(state), interrupt(state["waits"])))

    async def idle_response(self, state: State) -> State:
        return _answered(await self.steps.idle_response(state, _said(state)))


def state_graph(kernel: Kernel, checkpointer: BaseCheckpointSaver[Any] | None = None) -> CompiledStateGraph[Any]:
    """Compiles the graph (JIT-11). Invoke it with `durability="sync"`, so that each step is stored before the next one
    begins."""

    def hear(event: Event) -> None:
        """Sends an event to LangGraph's `stream_mode="custom"`."""
        get_stream_writer()(event.to_dict())

    def after_round(state: State) -> str:
        step = step_after_round(state)
        return PLACES.get(step, step)

    nodes, graph = Nodes(TurnSteps(kernel, hear)), StateGraph(State)
    graph.add_node("router", nodes.router)
    graph.add_node("loader", nodes.loader)
    graph.add_node("specialist", nodes.specialist)
    graph.add_node("continue_check", nodes.continue_check)
    graph.add_node("person", nodes.person)
    graph.add_node("idle_response", nodes.idle_response)
    graph.add_edge(START, "router")
    graph.add_conditional_edges("router", first_step, ["loader", "idle_response", "person"])
    graph.add_conditional_edges("loader", _next, ["loader", "specialist", "person", END])
    graph.add_conditional_edges("specialist", after_round, ["loader", "continue_check", "person", END])
    graph.add_conditional_edges("continue_check", _next, ["loader", "specialist", END])
    graph.add_conditional_edges("person", _next, ["router", "loader", "specialist", END])
    graph.add_edge("idle_response", END)
    return graph.compile(checkpointer=checkpointer, name="navigator").with_config(recursion_limit=HOPS)


def _next(state: State) -> str:
    step = next_step(state)
    return PLACES.get(step, step)


def _said(state: State) -> list[Said]:
    held = (one for one in state["messages"] if isinstance(one, HumanMessage | AIMessage))
    return [Said(role="user" if isinstance(one, HumanMessage) else "assistant", text=one.text, run="") for one in held]


def _answered(changes: TurnState) -> State:
    """The changes, with what the turn says as a message."""
    new = cast("State", dict(changes))
    if (says := new.pop("says", None)) is not None:
        new["messages"] = [AIMessage(says["text"], additional_kwargs={"state": says["state"]})]
    return new
