"""The window keeps the newest messages, fits its budget, and never separates a call from its answer (X-15, JIT-4)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from navigator_kernel.agent_loop.window import HISTORY, TURNS, newest, past, tokens, units
from navigator_kernel.values.chat import ChatMessage, ToolCall

CASES = 10_000


def exchange(number: int, count: int, text: str) -> list[ChatMessage]:
    """An answer with `count` calls, each answered."""
    calls = tuple(ToolCall(id=f"{number}-{at}", name="tool", arguments=text) for at in range(count))
    answers = [ChatMessage(role="tool", text=text, call=call.id, name="tool") for call in calls]
    return [ChatMessage(role="assistant", text=text, calls=calls), *answers]


pieces = st.tuples(st.sampled_from(["user", "assistant", "calls"]), st.integers(1, 4), st.text(max_size=40))


@st.composite
def conversations(draw: st.DrawFn) -> list[ChatMessage]:
    found: list[ChatMessage] = []
    for number, (kind, count, text) in enumerate(draw(st.lists(pieces, max_size=20))):
        if kind == "calls":
            found += exchange(number, count, text)
        else:
            found.append(ChatMessage(role="user" if kind == "user" else "assistant", text=text))
    return found


def is_whole(messages: tuple[ChatMessage, ...]) -> bool:
    """Whether each call is directly followed by its answer, and each answer has its call."""
    open_calls: list[str] = []
    for message in messages:
        if message.role == "tool":
            if message.call not in open_calls:
                return False
            open_calls.remove(message.call)
        elif open_calls:
            return False
        open_calls += [call.id for call in message.calls]
    return not open_calls


@pytest.mark.ci
@pytest.mark.requirement("JIT-4")
@settings(max_examples=CASES, deadline=None)
@given(conversations(), st.integers(0, 400))
def test_no_window_parts_a_call_from_its_answer(messages: list[ChatMessage], budget: int) -> None:
    kept = newest(messages, budget)
    assert is_whole(kept)
    assert sum(map(tokens, kept)) <= budget
    assert not kept or kept == tuple(messages[-len(kept) :])


@pytest.mark.wide
@settings(max_examples=300, deadline=None)
@given(conversations(), st.integers(0, 30))
def test_a_window_over_a_torn_conversation_is_whole(messages: list[ChatMessage], at: int) -> None:
    """After an earlier window left messages out, the rest can begin with answers whose calls are gone."""
    torn = messages[at:]
    while torn and torn[0].role != "tool":
        torn = torn[1:]
    kept = [message for unit in units(newest(torn, 10_000)) for message in unit]
    assert not kept or kept[0].role != "tool"


def test_the_past_is_the_last_turns_from_a_message_of_the_person_on() -> None:
    said = [ChatMessage(role=role, text=f"{role} {at}") for at in range(30) for role in ("user", "assistant")]
    kept = past(said)
    assert (len(kept), kept[0].text, kept[-1].text) == (2 * TURNS, "user 20", "assistant 29")
    assert [one.role for one in past(said[1:])[:1]] == ["user"]


@pytest.mark.parametrize("text", ["word " * 4_000, "字" * 5_000])
def test_the_past_has_a_budget(text: str) -> None:
    said = [ChatMessage(role=role, text=text) for _ in range(5) for role in ("user", "assistant")]
    assert sum(map(tokens, past(said))) <= HISTORY
