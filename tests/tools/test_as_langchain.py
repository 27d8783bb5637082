"""A kernel tool in a LangChain graph: same schema, same errors, and nothing happens without consent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel

from navigator_kernel.errors import NotLoadable
from navigator_kernel.tools.factory import ToolFactory


class Sail(BaseModel):
    colour: str


def paint(name: str, sails: list[Sail]) -> str:
    if not sails:
        raise ValueError("no sails")
    return f"{name}: {', '.join(sail.colour for sail in sails)}"


def called(arguments: dict[str, Any], tool: Any) -> str:
    """The answer of a LangGraph ToolNode to one call."""
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([tool]))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    call = AIMessage("", tool_calls=[{"name": tool.name, "args": arguments, "id": "1"}])
    state = asyncio.run(graph.compile().ainvoke({"messages": [call]}))
    return str(state["messages"][-1].content)


@pytest.mark.requirement("TOL-2", "TOL-5")
def test_it_runs_in_a_tool_node_with_nested_arguments() -> None:
    tool = ToolFactory().from_crud(paint, "paint", "Paints", effects=("refresh:boats",))
    made = tool.as_langchain()
    schema: Any = made.args_schema
    assert (made.name, made.description, (made.metadata or {})["effects"]) == ("paint", "Paints", ["refresh:boats"])
    assert schema.model_json_schema() == tool.spec.schema
    assert called({"name": "Ann", "sails": [{"colour": "red"}, {"colour": "blue"}]}, made) == "Ann: red, blue"


@pytest.mark.requirement("TOL-4")
def test_a_tool_exception_becomes_a_failed_message_in_langgraph() -> None:
    assert (
        called({"name": "Ann", "sails": []}, ToolFactory().from_crud(paint, "paint", "Paints").as_langchain())
        == "failed: no sails"
    )


@pytest.mark.requirement("JIT-12")
@pytest.mark.parametrize(("agreed", "words"), [(True, "Ann: red"), (False, "nobody agreed")])
def test_one_that_asks_is_done_only_where_somebody_agrees(agreed: bool, words: str) -> None:
    asked: list[Any] = []

    def agree(question: str, arguments: Any) -> bool:
        asked.append((question, dict(arguments)))
        return agreed

    tool = ToolFactory().from_crud(paint, "paint", "Paints", confirm="Paint {name}?")
    given = {"name": "Ann", "sails": [{"colour": "red"}]}
    assert words in called(given, tool.as_langchain(agree))
    assert asked == [("Paint Ann?", given)]
    with pytest.raises(NotLoadable):
        tool.as_langchain()
