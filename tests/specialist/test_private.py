"""Data that tools returned before a yes stays private after it, in another run and in another process (X-43)."""

from __future__ import annotations

from typing import Any

import pytest

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.agent_loop.specialist import Specialist
from navigator_kernel.values.chat import ChatMessage
from navigator_kernel.values.packet import Context, Packet, Params, TaskSpec
from navigator_kernel.values.request import Said
from navigator_kernel.values.work import PROGRESS, AgentState

pytestmark = pytest.mark.requirement("X-43")


def order(**optional: str) -> Packet:
    return Packet(
        agent="skills",
        task_spec=TaskSpec(intent="go on", operation="run", target="sailor"),
        params=Params(optional=optional),
        context=Context(run="another", step=0, idempotency_key="k"),
    )


def is_private(packet: Packet) -> bool:
    nothing: Any = None  # `assigned` uses none of these
    return (
        Specialist(models=nothing, catalogue=nothing, tools=nothing, clock=SystemClock()).assigned(packet, None).private
    )


@pytest.mark.parametrize(("role", "private"), [("tool", True), ("assistant", False)])
def test_saved_progress_makes_a_packet_private_only_if_it_contains_a_tool_message(role: Any, private: bool) -> None:
    before = AgentState(messages=(ChatMessage(role=role, text="hunter2"),))
    assert is_private(order(**{PROGRESS: before.kept()})) is private


def test_an_order_that_begins_is_not_private_and_one_that_cannot_be_read_is() -> None:
    assert not is_private(order()) and is_private(order(**{PROGRESS: "{"}))


def test_the_text_of_another_skill_is_not_the_persons_data() -> None:
    before = AgentState(messages=(ChatMessage(role="tool", name="skill", text="Rhyme every line."),))
    assert not is_private(order(**{PROGRESS: before.kept()}))


@pytest.mark.parametrize("name", ["files", "memory", "previous"])
def test_a_packet_with_files_memory_or_previous_output_is_private(name: str) -> None:
    assert is_private(order(**{name: "x"}))


@pytest.mark.parametrize(
    ("read", "role", "private"), [(True, "assistant", True), (True, "user", False), (False, "assistant", False)]
)
def test_answers_of_a_session_in_which_data_was_read_are_private_to_a_message_without_a_skill(
    read: bool, role: Any, private: bool
) -> None:
    nothing: Any = None
    before = (Said(role=role, text="hunter2", run="run-1"),)
    held = Specialist(
        models=nothing, catalogue=nothing, tools=nothing, clock=SystemClock(), history=before, private=read
    )
    assert held.assigned(order(), None).private is private
