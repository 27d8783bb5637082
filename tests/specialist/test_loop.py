"""The loop asks the model, carries out its calls and asks again, and ends at a limit with the results so far."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from models.wire_server import Said, WireServer, serving
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.agent_loop.loop import CALLS, CONTINUATIONS, FAILURES, GATHER, RESULTS, AgentLoop, Budget
from navigator_kernel.errors import ModelFailed
from navigator_kernel.events import Body, Event, Progress, RunContent
from navigator_kernel.values.chat import Asked, ChatMessage, Completion, ToolCall
from navigator_kernel.values.work import AgentState, AgentTask, ToolAnswer, progress_of
from specialist.at_work import WORK, Table, worked

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
    assert len(pieces) > 1 and "".join(pieces) == "One two-hundred\nthree，四五。六"
    assert [piece for piece in pieces[:-1] if piece[-1] not in " \n，。"] == []


def test_pieces_that_come_at_once_are_one_event_and_the_last_words_wait_for_no_other_piece() -> None:
    """A server's CPU per turn (issue 49)."""
    pieces: list[str] = []

    def emit(body: Body, *, step: int | None = None, parent: int | None = None) -> Event:
        pieces.extend([body.text] if isinstance(body, RunContent) else [])
        return Event(run="run-1", turn=0, step=step, seq=0, ts="", parent=parent, body=body)

    class Model:
        name, context = "there:worker", 200_000

        async def complete(self, asked: Asked, told: Callable[[str], None] | None = None) -> Completion:
            assert told is not None
            for piece in ("One ", "two ", "three ", "fo"):
                told(piece)
            assert pieces == ["One "]
            await asyncio.sleep(4 * GATHER)
            assert pieces == ["One ", "two three "]
            told("ur.")
            return Completion(message=ChatMessage(role="assistant", text="One two three four."), model=self.name)

        async def close(self) -> None:
            return

    asyncio.run(AgentLoop(work=WORK, model=Model(), tools=Table(), clock=SystemClock(), emit=emit).run())
    assert pieces == ["One ", "two three ", "four."]


LEFT = Said(text="Half of it is done.")  # the last answer, after a limit


def looks(word: str) -> Said:
    return Said(calls=[("look_up", json.dumps({"word": word}))])


def test_forty_rounds_of_tools_end_in_an_answer(server: WireServer) -> None:
    done = worked(server, [*[looks(f"star {at}") for at in range(39)], LOOK, FAR])
    assert (done.end, done.progress.text, done.progress.rounds) == ("done", FAR.text, 40)
    told = [body.text for body in done.heard("Progress") if isinstance(body, Progress)]
    assert told[13].startswith("round 15 · 2k tokens") and len(told) == 40


@pytest.mark.requirement("JIT-10")
@pytest.mark.parametrize("text", ["", "Let me see."])
def test_an_endless_loop_of_tools_ends_at_the_budget_with_a_last_answer_without_tools(
    server: WireServer, text: str
) -> None:
    script = [Said(text=text, calls=looks(f"star {at}").calls) for at in range(20)]
    done = worked(server, [*script, LEFT], budget=Budget(tokens=132 * 20))
    assert (done.end, len(done.tools.called), len(server.requests)) == ("tokens", 20, 21)
    assert server.requests[-1].body["tool_choice"] == "none" and server.requests[-2].body.get("tool_choice") != "none"
    assert "used up its budget: 2640 tokens" in server.requests[-1].body["messages"][-1]["content"]
    assert done.progress.messages[-1].text == LEFT.text
    answered = {message.call for message in done.progress.messages if message.role == "tool"}
    assert {call.id for message in done.progress.messages for call in message.calls} == answered


def test_a_model_that_calls_tools_in_its_last_answer_ends_all_the_same(server: WireServer) -> None:
    done = worked(server, [LOOK], budget=Budget(tokens=300))
    assert (done.end, done.progress.text, len(done.tools.called)) == ("tokens", "", 3)
    assert not done.progress.open_calls


@pytest.mark.requirement("SAF-5")
@pytest.mark.parametrize(
    "call", [("no_such_tool", "{}"), ("look_up", "{broken"), ("look_up", '{"word": "sun"}'), ("look_up", "[1]")]
)
def test_the_same_call_that_fails_three_times_in_the_same_way_ends_it_after_a_warning(
    server: WireServer, call: tuple[str, str]
) -> None:
    done = worked(server, [*[Said(calls=[call])] * FAILURES, LEFT])
    assert (done.end, len(server.requests), done.progress.text) == ("stuck", FAILURES + 1, LEFT.text)
    results = [message.text for message in done.progress.messages if message.role == "tool"]
    assert ["had this same result before" in text for text in results] == [False, True, False]


@pytest.mark.requirement("SAF-5")
def test_the_same_call_with_the_same_result_ends_it_later_and_after_a_warning(server: WireServer) -> None:
    done = worked(server, [*[LOOK] * RESULTS, LEFT])
    assert (done.end, len(done.tools.called), done.progress.text) == ("stuck", RESULTS, LEFT.text)
    results = [message.text for message in done.progress.messages if message.role == "tool"]
    assert ["had this same result before" in text for text in results] == [False] * 8 + [True, False]


def test_failures_of_one_answer_count_once_as_the_model_has_not_seen_them(server: WireServer) -> None:
    done = worked(server, [Said(calls=[("look_up", '{"word": "sun"}')] * 8), FAR])
    assert (done.end, done.progress.text) == ("done", FAR.text)


def test_eight_different_failures_and_then_a_success_are_work(server: WireServer) -> None:
    done = worked(server, [*[looks(f"star {at}") for at in range(8)], LOOK, FAR])
    assert (done.end, done.progress.text) == ("done", FAR.text)


def test_something_new_that_was_done_starts_the_count_again_and_the_same_call_does_not(server: WireServer) -> None:
    wrong = looks("sun")
    both = Table({"moon": "384,400 km", "mars": "225,000,000 km"})
    done = worked(server, [wrong, wrong, LOOK, wrong, wrong, looks("mars"), wrong, FAR], tools=both)
    assert done.end == "done"
    assert worked(server, [wrong, LOOK, wrong, LOOK, wrong, LOOK, wrong, LEFT]).end == "stuck"


def test_thirty_calls_of_one_answer_are_all_carried_out(server: WireServer) -> None:
    done = worked(server, [Said(calls=[*LOOK.calls] * 30), FAR])
    assert (done.end, len(done.tools.called)) == ("done", 30)


def test_calls_over_the_limit_of_one_answer_get_an_answer_that_says_so(server: WireServer) -> None:
    done = worked(server, [Said(calls=[*LOOK.calls] * (CALLS + 2)), FAR])
    told = [message.text for message in done.progress.messages if message.role == "tool"]
    assert (done.end, len(done.tools.called), len(told)) == ("done", CALLS, CALLS + 2)
    assert told[-1].startswith("not done") and "in your next answer" in told[-1]


def test_an_empty_answer_after_work_is_asked_for_once_more(server: WireServer) -> None:
    done = worked(server, [LOOK, Said(), FAR])
    assert (done.end, done.progress.text, len(server.requests)) == ("done", FAR.text, 3)
    with pytest.raises(ModelFailed) as caught:
        worked(server, [LOOK, Said()])
    assert (caught.value.data["kind"], len(server.requests)) == ("empty", 3)


def test_the_texts_of_two_rounds_are_two_paragraphs_streamed_and_kept(server: WireServer) -> None:
    done = worked(server, [Said(text="I look.", calls=LOOK.calls), FAR])
    pieces = [body.text for body in done.heard("RunContent") if isinstance(body, RunContent)]
    assert "".join(pieces) == done.progress.text == f"I look.\n\n{FAR.text}"


@pytest.mark.parametrize("times", [1, CONTINUATIONS])
def test_an_answer_that_was_cut_continues(server: WireServer, times: int) -> None:
    cut = Said(text="one ", finish="length")
    done = worked(server, [*[cut] * times, Said(text="two")])
    assert (done.end, done.progress.text, done.progress.continuations) == ("done", "one " * times + "two", times)


@pytest.mark.requirement("JIT-5")
def test_a_call_in_which_the_answer_was_cut_is_not_carried_out_and_the_model_is_told(server: WireServer) -> None:
    cut = Said(calls=[*LOOK.calls, ("look_up", '{"word": "sun"}')], finish="length")
    done = worked(server, [cut, FAR])
    assert (done.end, done.progress.text, done.tools.called) == ("done", FAR.text, [("look_up", {"word": "moon"})])
    assert "was cut off at its greatest length" in server.requests[1].body["messages"][-1]["content"]


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


def test_the_turn_has_a_time_limit_after_which_the_model_says_what_is_done(server: WireServer) -> None:
    class Slow(Table):
        async def call(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> ToolAnswer:
            await asyncio.sleep(30.0)
            return await super().call(work, call, arguments)

    done = worked(server, [LOOK, LEFT], budget=Budget(seconds=0.5), tools=Slow())
    assert (done.end, done.progress.text) == ("time", LEFT.text)
    assert "this turn took over 0.5 s" in server.requests[-1].body["messages"][-1]["content"]


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

    done = worked(server, [Said(calls=[*LOOK.calls] * 3), LEFT], budget=Budget(seconds=5), tools=Slow())
    told = [message.text for message in done.progress.messages if message.role == "tool"]
    assert told == ["384,400 km", "look_up took too long", "not done: the time of this turn is over"]


def test_several_calls_at_once_are_all_answered_in_order(server: WireServer) -> None:
    both = Said(calls=[("look_up", '{"word": "moon"}'), ("look_up", '{"word": "sun"}')])
    done = worked(server, [both, FAR])
    told = server.requests[1].body["messages"][-2:]
    assert [one["content"] for one in told] == ["384,400 km", '{"error":"no look_up"}']
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


@pytest.mark.requirement("JIT-4")
def test_a_request_that_is_too_long_for_the_model_is_sent_again_with_shorter_work(server: WireServer) -> None:
    tools = Table({f"star {at}": "x" * 12_000 for at in range(6)})
    overflow = Said(mode="too-long")
    script = [*[looks(f"star {at}") for at in range(6)], overflow, overflow, FAR]
    done = worked(server, script, tools=tools)
    assert (done.end, done.progress.text) == ("done", FAR.text)
    sizes = [len(json.dumps(request.body)) for request in server.requests[-3:]]
    assert sizes[0] > 1.5 * sizes[1] > 1.5 * sizes[2]
    assert "x" * 12_000 in server.requests[-2].body["messages"][-1]["content"], "the newest result stays whole"


def test_one_that_cannot_get_shorter_is_an_error(server: WireServer) -> None:
    with pytest.raises(ModelFailed) as caught:
        worked(server, [Said(mode="too-long")])
    assert (caught.value.data["kind"], len(server.requests)) == ("too_long", 1)


@pytest.mark.requirement("JIT-4")
def test_the_context_of_a_model_decides_how_much_work_it_gets(server: WireServer) -> None:
    tools = Table({f"star {at}": "x" * 12_000 for at in range(6)})
    script = [*[looks(f"star {at}") for at in range(6)], FAR]
    worked(server, script, tools=tools, context=16_000)
    small = len(json.dumps(server.requests[-1].body))
    worked(server, script, tools=tools, context=200_000)
    assert small < 55_000 < 72_000 < len(json.dumps(server.requests[-1].body))


def test_a_state_that_an_earlier_version_kept_is_read() -> None:
    now = json.loads(AgentState(rounds=2, model="there:worker").kept())
    before = {
        name: value for name, value in now.items() if name not in {"cut", "began", "words", "spent_before", "skill"}
    }
    assert progress_of(json.dumps({**before, "failures": 1})) == AgentState(rounds=2, model="there:worker")
