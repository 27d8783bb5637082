"""The loop asks the model, carries out its calls and asks again, and ends at a limit with the results so far."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from models.wire_server import Said, WireServer, serving
from navigator_kernel.agent_loop.loop import CONTINUATIONS, FAILURES, ROUNDS, Budget
from navigator_kernel.errors import ModelFailed, TimedOut
from navigator_kernel.events import RunContent
from navigator_kernel.values.chat import ToolCall
from navigator_kernel.values.work import AgentTask, ToolAnswer, progress_of
from specialist.at_work import LOOPS, Table, worked

LOOK = Said(calls=[("look_up", '{"word": "moon"}')])
FAR = Said(text="It is 384,400 km away.")


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


def test_an_answer_without_a_tool_is_one_request(server: WireServer) -> None:
    done = worked(server, [FAR])
    assert (done.end, done.progress.text, len(server.requests)) == ("done", FAR.text, 1)


@pytest.mark.requirement("JIT-10", "EVT-7")
def test_a_tool_is_called_and_its_answer_goes_back(server: WireServer) -> None:
    done = worked(server, [LOOK, FAR])
    assert (done.end, done.progress.text, done.tools.called) == ("done", FAR.text, [("look_up", {"word": "moon"})])
    told = server.requests[1].body["messages"][-2:]
    assert told[0]["tool_calls"][0]["id"] == told[1]["tool_call_id"]
    assert told[1]["content"] == "384,400 km"
    names = [type(event.body).__name__ for event in done.events]
    assert names[:3] == ["Usage", "ToolCallStarted", "ToolCallCompleted"] and names[-1] == "Usage"


def test_text_is_streamed_in_pieces_that_never_end_inside_a_word(server: WireServer) -> None:
    done = worked(server, [Said(text="One two-hundred\nthree，四五。六")])
    pieces = [body.text for body in done.heard("RunContent") if isinstance(body, RunContent)]
    assert len(pieces) > 2 and "".join(pieces) == "One two-hundred\nthree，四五。六"
    assert [piece for piece in pieces[:-1] if piece[-1] not in " \n，。"] == []


@pytest.mark.parametrize("text", ["", "Let me see."])
def test_an_endless_loop_of_tools_ends_after_ten_rounds(server: WireServer, text: str) -> None:
    done = worked(server, [Said(text=text, calls=LOOK.calls)])
    assert (done.end, len(done.tools.called), len(server.requests)) == ("rounds", ROUNDS, ROUNDS + 1)
    answered = {message.call for message in done.progress.messages if message.role == "tool"}
    assert {call.id for message in done.progress.messages for call in message.calls} == answered


@pytest.mark.requirement("SAF-5")
@pytest.mark.parametrize(
    "call", [("no_such_tool", "{}"), ("look_up", "{broken"), ("look_up", '{"word": "sun"}'), ("look_up", "[1]")]
)
def test_two_failures_in_a_row_end_it(server: WireServer, call: tuple[str, str]) -> None:
    done = worked(server, [Said(calls=[call])])
    assert (done.end, len(server.requests), done.progress.failures) == ("failures", FAILURES, FAILURES)


def test_a_failure_between_successes_does_not(server: WireServer) -> None:
    wrong = Said(calls=[("look_up", "{broken")])
    assert worked(server, [wrong, LOOK, wrong, LOOK, FAR]).end == "done"


@pytest.mark.parametrize("times", [1, CONTINUATIONS])
def test_an_answer_that_was_cut_continues(server: WireServer, times: int) -> None:
    cut = Said(text="one ", finish="length")
    done = worked(server, [*[cut] * times, Said(text="two")])
    assert (done.end, done.progress.text, done.progress.continuations) == ("done", "one " * times + "two", times)


def test_one_that_is_always_cut_ends(server: WireServer) -> None:
    done = worked(server, [Said(text="one ", finish="length")])
    assert (done.end, len(server.requests)) == ("length", CONTINUATIONS + 1)


@pytest.mark.requirement("JIT-7")
@pytest.mark.parametrize(("verdict", "requests"), [("true", 5), ("false", 3), ("garbage", 3)])
def test_a_model_that_announces_more_work_is_asked_to_continue(server: WireServer, verdict: str, requests: int) -> None:
    check = Said(text=f'{{"continue": {verdict}}}')
    done = worked(
        server, [LOOK, Said(text="Found it. Next I will write it down."), check, Said(text=" Written."), check]
    )
    assert (done.end, len(server.requests)) == ("done", min(requests, 4))
    asked = server.requests[2].body
    assert "tools" not in asked and asked["temperature"] == 0.1


@pytest.mark.parametrize("budget", [Budget(tokens=200), Budget(tokens=132)])
def test_a_budget_ends_the_turn_before_the_next_request(server: WireServer, budget: Budget) -> None:
    with pytest.raises(ModelFailed) as caught:
        worked(server, [LOOK], budget=budget)
    assert caught.value.data["kind"] == "over_budget"
    assert len(server.requests) == (2 if budget.tokens == 200 else 1)


def test_the_turn_has_a_time_limit(server: WireServer) -> None:
    class Slow(Table):
        async def call(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> ToolAnswer:
            await asyncio.sleep(30.0)
            return await super().call(work, call, arguments)

    with pytest.raises(TimedOut):
        worked(server, [LOOK, Said(text="late")], budget=Budget(seconds=0.5), tools=Slow())


@pytest.mark.requirement("JIT-6")
def test_how_far_it_came_is_one_value_that_can_be_written_down(server: WireServer) -> None:
    progress = worked(server, [Said(text="Look. ", calls=LOOK.calls), FAR]).progress
    assert progress_of(progress.kept()) == progress
    assert [message.role for message in progress.messages] == ["assistant", "tool", "assistant"]


@pytest.mark.wide
def test_tool_results_from_before_a_timeout_are_kept(server: WireServer) -> None:
    class Slow(Table):
        async def call(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> ToolAnswer:
            if self.called:
                await asyncio.sleep(30.0)
            return await super().call(work, call, arguments)

    with pytest.raises(TimedOut):
        worked(server, [Said(calls=[*LOOK.calls] * 3)], budget=Budget(seconds=5), tools=Slow())
    (loop,) = LOOPS[-1:]
    assert [message.text for message in loop.progress.messages[1:2]] == ["384,400 km"]
    assert len(loop.progress.open_calls) < 3


def test_several_calls_at_once_are_all_answered_in_order(server: WireServer) -> None:
    both = Said(calls=[("look_up", '{"word": "moon"}'), ("look_up", '{"word": "sun"}')])
    done = worked(server, [both, FAR])
    told = server.requests[1].body["messages"][-2:]
    assert [one["content"] for one in told] == ["384,400 km", "no look_up"]
    assert done.end == "done"


@pytest.mark.parametrize("size", [2_000, 60_000])
def test_a_long_loop_never_sends_a_call_without_its_answer(server: WireServer, size: int) -> None:
    tools = Table({"moon": "x" * size})
    worked(server, [*[LOOK] * 9, FAR], tools=tools)
    for request in server.requests:
        messages = request.body["messages"]
        calls = [call["id"] for one in messages for call in one.get("tool_calls", ())]
        answers = [one["tool_call_id"] for one in messages if one["role"] == "tool"]
        assert calls == answers
    assert len(json.dumps(server.requests[-1].body)) < 300_000
