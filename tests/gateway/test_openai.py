"""OpenAI's chat completions, as the `openai` package of Python uses them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from gateway.served import Person, Served
from models.wire_server import HELLO, Said, WireServer
from specialist.turns import of_phase_two, says

TASK = '{"title": "Buy milk"}'
DELETE = Said(calls=[("task_delete", '{"task_id": 1}')])


@pytest.fixture
def client(served: Served) -> Iterator[OpenAI]:
    with of(served, "approve") as held:
        yield held


def of(served: Served, role: str, **more: Any) -> OpenAI:
    return OpenAI(base_url=f"{served.url}/v1", api_key=served.tokens[role], max_retries=0, **more)


def asked(client: OpenAI, *said: str, model: str = "navigator", **more: Any) -> Any:
    """The answer to a conversation: what the person and the assistant said in turns, the person first and last."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(said)]
    return client.chat.completions.create(model=model, messages=messages, **more)


def text_of(answer: Any) -> str:
    return str(answer.choices[0].message.content)


def test_the_models_are_the_router_and_the_enabled_skills(client: OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert names[0] == "navigator" and "navigator/song-writer" in names
    assert client.models.retrieve("navigator/song-writer").owned_by == "navigator"


def test_an_answer_comes_whole_with_its_usage(client: OpenAI, model: WireServer) -> None:
    answer = asked(client, "why is the sky blue?")
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason, choice.message.tool_calls) == (HELLO.text, "stop", None)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (120, 12, 132)
    assert answer.usage.prompt_tokens_details.cached_tokens == 100
    assert answer.object == "chat.completion" and answer.model == "navigator"


def test_print(client: OpenAI, model: WireServer) -> None:
    says(model, Said(text="Let me see. ", calls=[("task_create", TASK)]), Said(text="It is done."))
    for c in asked(client, "create it\nplease", model="navigator/task_manager", stream=True, stream_options={"include_usage": True}):
        print(c.model_dump_json(exclude_none=True))
    says(model, DELETE, Said(text="It is gone."))
    model.requests.clear()
    first = asked(client, "delete it", model="navigator/task_manager")
    print(first)
    print(asked(client, "delete it", text_of(first), "yes", model="navigator/task_manager"))
    assert 0
