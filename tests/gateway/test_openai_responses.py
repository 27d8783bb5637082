"""OpenAI's responses, as the `openai` package of Python uses them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from gateway.openai_clients import CREATE, DELETE, SONG, TASKS, of, seen, state_of, until
from gateway.served import Served, sent
from models.wire_server import HELLO, MODES, Said, WireServer
from specialist.turns import of_phase_two, says
from tables import cases, table

pytestmark = pytest.mark.wide

ITEM = table(__file__, "ITEM", lists=True)


@pytest.fixture
def client(served: Served) -> Iterator[OpenAI]:
    with of(served) as held:
        yield held


def test_an_answer_comes_whole_with_its_usage(client: OpenAI, model: WireServer) -> None:
    answer = client.responses.create(model="navigator", input="why is the sky blue?")
    assert (answer.output_text, answer.status, answer.error) == (HELLO.text, "completed", None)
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (120, 12, 132)
    assert answer.usage.input_tokens_details.cached_tokens == 100


def test_a_stream_has_typed_events_in_their_order(client: OpenAI, model: WireServer) -> None:
    events = list(client.responses.create(model="navigator", input="why is the sky blue?", stream=True))
    kinds = [event.type for event in events]
    assert list(dict.fromkeys(kinds)) == ["response.created", "response.in_progress", *ITEM, "response.completed"]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == HELLO.text


def test_each_event_of_a_stream_is_named_by_its_type(served: Served, model: WireServer) -> None:
    body = {"model": "navigator", "input": "hello", "stream": True}
    with served.client() as plain, plain.stream("POST", "/v1/responses", json=body) as answer:
        told = list(sent(answer))
    assert all(one.event == one.data["type"] for one in told) and told[-1].event == "response.completed"


def test_the_packages_own_reader_of_streams_takes_it(client: OpenAI, model: WireServer) -> None:
    says(model, CREATE, Said(text="It is done."))
    with client.responses.stream(model=TASKS, input="create it") as stream:
        kinds = [event.type for event in stream]
        answer = stream.get_final_response()
    assert answer.output_text == "Let me see.\n\nIt is done." and kinds[-1] == "response.completed"
    assert [item.type for item in answer.output] == ["reasoning", "message", "reasoning", "message", "reasoning"]


def test_kernel_actions_are_in_the_reasoning_summary(client: OpenAI, model: WireServer) -> None:
    says(model, CREATE, Said(text="It is done."))
    answer = client.responses.create(model=TASKS, input="create it")
    notes = [part.text for item in answer.output if item.type == "reasoning" for part in item.summary]
    assert notes[0] == "Loading task_manager…\n" and notes[1].startswith('task_create {"title": "Buy milk"}\n')


def test_a_response_continues_from_the_one_before(client: OpenAI, model: WireServer) -> None:
    first = client.responses.create(model="navigator", input="why is the sky blue?")
    second = client.responses.create(model="navigator", input="and the sea?", previous_response_id=first.id)
    assert seen(model) == ["why is the sky blue?", HELLO.text, "and the sea?"]
    assert second.previous_response_id == first.id
    client.responses.create(model="navigator", input="and the sun?", previous_response_id=first.id)
    assert seen(model) == ["why is the sky blue?", HELLO.text, "and the sun?"]
    client.responses.create(model="navigator", input="why?", previous_response_id=second.id)
    assert seen(model) == ["why is the sky blue?", HELLO.text, "and the sea?", HELLO.text, "why?"]


def test_a_response_continues_with_the_items_that_a_client_sends(client: OpenAI, model: WireServer) -> None:
    said: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": "why is the sky blue?"}]}]
    first = client.responses.create(model="navigator", input=said, instructions="Be brief.")
    said += [*first.output, {"role": "user", "content": "and the sea?"}]
    client.responses.create(model="navigator", input=said, instructions="Be brief.")
    assert seen(model) == ["Be brief.", "why is the sky blue?", HELLO.text, "and the sea?"]


def test_a_conversation_is_a_session(served: Served, client: OpenAI, model: WireServer) -> None:
    first = client.responses.create(model="navigator", input="hello", conversation="conv-1")
    client.responses.create(model="navigator", input="and bye", conversation={"id": "conv-1"})
    assert first.conversation is not None and first.conversation.id == "conv-1"
    assert seen(model)[-3:] == ["hello", HELLO.text, "and bye"]


def test_a_pending_approval_is_a_question_and_the_next_turn_answers_it(client: OpenAI, model: WireServer) -> None:
    says(model, CREATE, DELETE, Said(text="It is gone."))
    question = client.responses.create(model=TASKS, input="create it and delete task 1")
    assert "Really delete the task 1?" in question.output_text and question.status == "completed"
    answer = client.responses.create(model=TASKS, input="yes", previous_response_id=question.id)
    assert answer.output_text == "It is gone."


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_that_fails_is_a_failed_response(client: OpenAI, model: WireServer, stream: bool) -> None:
    says(model, CREATE)
    model.declines["worker"] = ("messages",)
    try:
        answer: Any = client.responses.create(model=TASKS, input="create it", stream=stream)
        last = list(answer)[-1] if stream else None
    finally:
        model.declines.clear()
    response = last.response if last is not None else answer
    assert last is None or last.type == "response.failed"
    assert response.status == "failed" and "there:worker" in response.error.message
    assert len(of_phase_two(model)) == 1


def test_an_answer_that_was_cut_is_incomplete(client: OpenAI, model: WireServer) -> None:
    says(model, Said(text="One two", finish="length"))
    answer = client.responses.create(model=SONG, input="the moon")
    assert answer.status == "incomplete" and answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"


def test_closing_the_stream_ends_the_run(
    served: Served, client: OpenAI, model: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    del model.scripts["worker"]
    monkeypatch.setitem(MODES, "worker", MODES["hangs-between-words"])
    with client.responses.create(model=SONG, input="the moon", stream=True) as stream:
        first = next(iter(stream))
        assert first.type == "response.created"
        run = first.response.id.removeprefix("resp_")
        assert state_of(served, run) == "running"
    until(lambda: state_of(served, run) == "cancelled")


async def _streamed(served: Served) -> str:
    async with AsyncOpenAI(base_url=f"{served.url}/v1", api_key=served.tokens["chat"]) as client:
        stream = await client.responses.create(model="navigator", input="hello", stream=True)
        return "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])


def test_the_asynchronous_client_gets_the_same(served: Served, model: WireServer) -> None:
    assert asyncio.run(_streamed(served)) == HELLO.text


@pytest.mark.parametrize("name", ["resp_20260101-000000000-abcdef", "msg_1", "resp_", "resp_../../x"])
def test_an_unknown_previous_response_is_not_found(client: OpenAI, name: str) -> None:
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="navigator", input="hello", previous_response_id=name)


def test_a_response_of_another_token_is_not_found(served: Served, client: OpenAI, model: WireServer) -> None:
    first = client.responses.create(model="navigator", input="hello")
    with of(served, "chat") as other, pytest.raises(openai.NotFoundError):
        other.responses.create(model="navigator", input="and?", previous_response_id=first.id)


@cases("more", lists=True, ids=lambda more: str(more)[:40])
def test_an_invalid_or_unsupported_responses_request_is_a_bad_request(client: OpenAI, more: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError):
        client.responses.create(**{"model": "navigator", "input": "hello", **more})
