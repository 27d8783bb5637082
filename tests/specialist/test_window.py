"""The window keeps the newest messages, fits its budget, and never separates a call from its answer (X-15, JIT-4)."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from navigator_kernel.agent_loop.window import (
    HISTORY,
    MOST,
    TURNS,
    WORK,
    fitting,
    newest,
    past,
    room_for_work,
    shown,
    tokens,
    units,
)
from navigator_kernel.values.chat import ChatMessage, Cut, ToolCall

pytestmark = pytest.mark.timeout(300)  # seconds; a busy machine needs more than the usual ones for so many cases
CASES = int(os.environ.get("WINDOW_CASES", "2000"))  # 10,000 take minutes


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


def rounds(count: int, size: int) -> list[ChatMessage]:
    """Answers with one call each, whose argument and result have `size` characters."""
    text = json.dumps({"text": "x" * size})
    return [
        message
        for at in range(count)
        for message in (
            ChatMessage(role="assistant", calls=(ToolCall(id=str(at), name="tool", arguments=text),)),
            ChatMessage(role="tool", text=text, call=str(at), name="tool"),
        )
    ]


@pytest.mark.ci
@pytest.mark.requirement("JIT-4")
@settings(max_examples=CASES // 4, deadline=None)
@given(conversations(), st.integers(10, 400))
def test_work_that_is_shortened_is_whole_and_ends_with_its_newest_message(
    messages: list[ChatMessage], room: int
) -> None:
    if not messages:
        return
    cut = fitting(messages, Cut(), room, "en")
    sent = shown(messages, cut, room, "en")
    assert is_whole(sent)
    assert (sent[-1].role, sent[-1].call) == (messages[-1].role, messages[-1].call)


def test_a_long_work_is_shortened_in_few_steps_and_its_beginning_stays_the_same_between_them() -> None:
    """The bytes that a request shares with the one before it are those that a provider's cache can have."""
    messages, room = rounds(120, 4_000), 40_000
    cut, steps, shared, all_tokens = Cut(), 0, 0, 0
    before: tuple[ChatMessage, ...] = ()
    for count in range(2, len(messages) + 1, 2):
        newer = fitting(messages[:count], cut, room, "en")
        steps += newer != cut
        cut = newer
        sent = shown(messages[:count], cut, room, "en", "/there")
        assert sum(map(tokens, sent)) <= room * 1.02
        same = next((at for at, (new, old) in enumerate(zip(sent, before, strict=False)) if new != old), len(before))
        shared += sum(map(tokens, sent[:same]))
        all_tokens += sum(map(tokens, sent))
        before = sent
    assert steps <= 12
    assert shared / all_tokens > 0.85


def test_an_older_result_says_where_the_whole_of_it_is_and_a_call_keeps_the_beginning_of_its_text() -> None:
    messages = rounds(10, 4_000)
    cut = fitting(messages, Cut(), 10_000, "en")
    call, result, *_ = shown(messages, cut, 10_000, "en", "/there")
    assert result.text.startswith("(the result of tool, 4,012 characters,") and "/there/" in result.text
    assert call.calls[0].arguments.startswith('{"text": "xxx') and len(call.calls[0].arguments) < 300
    assert shown(messages, cut, 10_000, "zh")[1].text.startswith("（为节省空间，这里略去了 tool 的结果")


def test_messages_that_do_not_fit_even_in_short_are_left_out_with_a_line_in_their_place() -> None:
    messages = rounds(400, 300)
    cut = fitting(messages, Cut(), 4_000, "en")
    sent = shown(messages, cut, 4_000, "en")
    assert cut.left_out > 0 and sent[0].role == "user"
    assert f"the first {cut.left_out} messages" in sent[0].text


@pytest.mark.parametrize(("context", "room"), [(0, WORK), (8_000, 5_980), (1_000_000, MOST), (1_000, 730)])
def test_the_room_for_work_follows_the_context_of_the_model(context: int, room: int) -> None:
    opening = [ChatMessage(role="system", text="x" * 64)]
    assert room_for_work(context, opening) == room
    assert room_for_work(8_000, [ChatMessage(role="system", text="x" * 80_000)]) == 2_000
