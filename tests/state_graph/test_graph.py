"""What the state graph adds to a turn: nodes by the documents' names, checkpoints between them, questions as interrupts."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from models.wire_server import HELLO, Said, WireServer
from navigator_langgraph import state_graph
from specialist.turns import of_phase_two
from state_graph.conftest import kernel_at, says
from state_graph.test_both_engines import CREATE, rows

THREAD: Any = {"configurable": {"thread_id": "t"}}


@pytest.mark.requirement("JIT-7")
def test_its_nodes_are_those_of_the_documents(root: Path, server: WireServer) -> None:
    graph = state_graph(kernel_at(root, server))
    names = {"router", "loader", "specialist", "continue_check", "idle_response"}
    assert names <= set(graph.get_graph().nodes)
    edges = {(edge.source, edge.target) for edge in graph.get_graph().edges}
    assert {("__start__", "router"), ("router", "idle_response"), ("idle_response", "__end__")} <= edges


@pytest.mark.requirement("JIT-6")
def test_its_state_names_the_current_work(root: Path, server: WireServer) -> None:
    says(server, Said(calls=[("skill", '{"name": "song-writer"}')]), HELLO)
    seen: list[dict[str, Any]] = []

    async def run() -> None:
        graph = state_graph(kernel_at(root, server), InMemorySaver())
        given = {"messages": [("user", "/song-writer a song about rain")]}
        seen.extend([state async for state in graph.astream(given, THREAD, stream_mode="values", durability="sync")])

    asyncio.run(run())
    loaded = next(state for state in seen if state.get("current_skill"))
    built_in = ["read", "list", "glob", "grep", "write", "edit", "deliver", "run"]
    assert (loaded["current_skill"], loaded["available_tools"]) == ("song-writer", ["skill", *built_in])
    assert "Rhyme every line." in loaded["skill_sop"]
    assert [message.type for message in seen[-1]["messages"]] == ["human", "ai"]


@pytest.mark.requirement("JIT-11")
def test_a_run_that_was_killed_continues_and_does_nothing_twice(root: Path, server: WireServer) -> None:
    file, gone = str(root.parent / "threads.sqlite"), threading.Event()
    again = threading.Event()

    def first_time(messages: Sequence[Any], _number: int) -> Said:
        if messages[-1]["role"] == "tool":
            again.set()
            gone.wait(20)
        return CREATE

    server.scripts["worker"] = first_time

    async def killed() -> None:
        async with AsyncSqliteSaver.from_conn_string(file) as saver:
            graph = state_graph(kernel_at(root, server), saver)
            given = {"messages": [("user", "/task_manager tea tomorrow at three")]}
            task = asyncio.ensure_future(graph.ainvoke(given, THREAD, durability="sync"))
            await asyncio.to_thread(again.wait, 20)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def goes_on() -> dict[str, Any]:
        async with AsyncSqliteSaver.from_conn_string(file) as saver:
            state: dict[str, Any] = await state_graph(kernel_at(root, server), saver).ainvoke(
                None, THREAD, durability="sync"
            )
            return state

    asyncio.run(killed())
    gone.set()
    assert rows(root) == [(1, "tea")]
    says(server, CREATE, Said(text="Done."))
    state = asyncio.run(goes_on())
    assert (state["messages"][-1].text, rows(root), len(of_phase_two(server))) == ("Done.", [(1, "tea")], 3)


@pytest.mark.parametrize("model", ["", "there:worker"])
def test_a_question_is_an_interrupt_and_its_answer_continues(root: Path, server: WireServer, model: str) -> None:
    skills = root / ".claude" / "skills"
    for name in ("ada-painter", "bob-painter"):
        (skills / name).mkdir()
        (skills / name / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: Paints watercolours of boats at sea\n---\nPaint.\n"
        )

    def answer(messages: Sequence[Any], _number: int) -> Said:
        """The model's choice: first a question, then the skill that the person named."""
        if "router" not in str(messages[0]["content"]):
            return HELLO
        said = "ada-painter" in str(messages[-1]["content"])
        return Said(text='{"skills": ["ada-painter"]}' if said else '{"question": "ada-painter or bob-painter?"}')

    server.scripts["worker"] = answer

    async def run() -> tuple[dict[str, Any], dict[str, Any]]:
        graph = state_graph(kernel_at(root, server, default=model), InMemorySaver())
        asked = await graph.ainvoke({"messages": [("user", "paint a watercolour of boats at sea")]}, THREAD)
        return asked, await graph.ainvoke(Command(resume="ada-painter"), THREAD)

    asked, told = asyncio.run(run())
    assert "ada-painter" in asked["__interrupt__"][0].value["question"]
    state = "success" if model else "pending"
    assert (told["report"]["data"]["skill"], told["report"]["state"]) == ("ada-painter", state)
    assert (told["messages"][-1].text == HELLO.text) == bool(model)


def test_no_secret_is_kept_by_a_checkpointer(root: Path, server: WireServer) -> None:
    secret = "AKIA" + "ABCDEFGHIJKLMNOP"
    says(server, Said(text=f"I saw {secret} there.", calls=[("skill", '{"name": "song-writer"}')]), HELLO)
    file = root.parent / "threads.sqlite"

    async def run() -> None:
        async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
            given = {"messages": [("user", "/song-writer a song")]}
            await state_graph(kernel_at(root, server), saver).ainvoke(given, THREAD, durability="sync")

    asyncio.run(run())
    with sqlite3.connect(file) as database:
        kept = b"".join(bytes(one[0]) for one in database.execute("SELECT checkpoint FROM checkpoints"))
    assert (secret.encode() in kept, b"[redacted]" in kept) == (False, True)
