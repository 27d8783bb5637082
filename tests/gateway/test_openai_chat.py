"""OpenAI's chat completions, as the `openai` package of Python uses them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from gateway.openai_clients import (
    CREATE,
    DELETE,
    SONG,
    TASKS,
    asked,
    conversation,
    of,
    seen,
    state_of,
    text_of,
    until,
)
from gateway.served import Person, Served, edit_of, serving
from models.wire_server import HELLO, MODES, Said, WireServer
from specialist.turns import of_phase_two, says


@pytest.fixture
def client(served: Served) -> Iterator[OpenAI]:
    with of(served) as held:
        yield held


@pytest.mark.wide
def test_the_models_are_the_router_and_the_enabled_skills(client: OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert names[0] == "navigator" and "navigator/song-writer" in names
    assert client.models.retrieve("navigator/song-writer").owned_by == "navigator"


@pytest.mark.wide
def test_an_answer_comes_whole_with_its_usage(client: OpenAI, model: WireServer) -> None:
    answer = asked(client, "why is the sky blue?")
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason, choice.message.tool_calls) == (HELLO.text, "stop", None)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (120, 12, 132)
    assert answer.usage.prompt_tokens_details.cached_tokens == 100
    assert (answer.object, answer.model) == ("chat.completion", "navigator")


@pytest.mark.wide
def test_kernel_actions_are_streamed_as_reasoning_and_never_as_tool_calls(client: OpenAI, model: WireServer) -> None:
    says(model, CREATE, Said(text="It is done."))
    chunks = list(asked(client, "create it", model=TASKS, stream=True, stream_options={"include_usage": True}))
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert not any(delta.tool_calls for delta in deltas)
    assert "".join(delta.content or "" for delta in deltas) == "Let me see.\n\nIt is done."
    notes = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas).splitlines()
    assert notes[:2] == ["Loading task_manager…", 'task_create {"title": "Buy milk"}']
    assert notes[2].startswith("task_create: success {")
    assert [choice.finish_reason for choice in chunks[-2].choices] == ["stop"]
    assert (chunks[-1].choices, chunks[-1].usage.prompt_tokens) == ([], 240)


def test_a_stream_has_no_types_and_ends_with_done(served: Served, model: WireServer) -> None:
    body = {"model": "navigator", "messages": conversation("hello"), "stream": True}
    with served.client() as plain, plain.stream("POST", "/v1/chat/completions", json=body) as answer:
        lines = [line for line in answer.iter_lines() if line]
    assert all(line.startswith(("data: {", ": ")) for line in lines[:-1]) and lines[-1] == "data: [DONE]"
    assert not any("usage" in line for line in lines)


def test_a_skill_gets_all_lines_of_the_message(client: OpenAI, model: WireServer) -> None:
    asked(client, "about the moon\nand the sea", model=SONG)
    assert seen(model)[-1].split() == ["about", "the", "moon", "and", "the", "sea"]
    assert any("Rhyme every line." in text for text in seen(model))


def test_the_router_chooses_where_the_model_is_navigator(client: OpenAI, model: WireServer) -> None:
    answer = asked(client, "/song-writer about the moon")
    assert answer.choices[0].message.reasoning_content == "Loading song-writer…\n"


def test_an_answer_that_was_cut_says_so(client: OpenAI, model: WireServer) -> None:
    says(model, Said(text="One two", finish="length"))
    answer = asked(client, "about the moon", model=SONG)
    assert answer.choices[0].finish_reason == "length" and text_of(answer).startswith("One two")


def test_a_pending_approval_is_a_question_and_the_next_turn_answers_it(client: OpenAI, model: WireServer) -> None:
    says(model, CREATE, Said(text="Done."))
    asked(client, "create it", model=TASKS)
    model.requests.clear()
    says(model, DELETE, Said(text="It is gone."))
    question = asked(client, "delete task 1", model=TASKS)
    assert "Really delete the task 1?" in text_of(question) and "Answer `yes` or `no`." in text_of(question)
    assert question.choices[0].finish_reason == "stop"
    answer = asked(client, "delete task 1", text_of(question), "yes", model=TASKS)
    assert text_of(answer) == "It is gone."
    assert "task_delete: success" in answer.choices[0].message.reasoning_content


@pytest.mark.requirement("JIT-12")
def test_an_edit_of_a_file_that_nobody_named_ends_after_one_yes(
    person: Person, client: OpenAI, model: WireServer
) -> None:
    file = person.here.root / "unnamed-again.txt"
    model.requests.clear()
    says(model, Said(calls=[("edit", edit_of(file))]), Said(text="It is longer."))
    question = text_of(asked(client, "lengthen it", model=SONG))
    assert "read files of" in question and "+second" in question
    assert text_of(asked(client, "lengthen it", question, "yes", model=SONG)) == "It is longer."
    assert file.read_text() == "first\nsecond\n"


def test_an_approval_is_answered_once(client: OpenAI, model: WireServer) -> None:
    says(model, DELETE, HELLO)
    question = text_of(asked(client, "delete task 1, please", model=TASKS))
    said = ("delete task 1, please", question, "no")
    assert text_of(asked(client, *said, model=TASKS)) == "not done, as you asked"
    says(model, HELLO)
    again = asked(client, *said[:2], "yes", model=TASKS)
    assert "task_delete" not in getattr(again.choices[0].message, "reasoning_content", "")


def test_a_token_that_may_not_approve_is_refused(served: Served, model: WireServer) -> None:
    says(model, DELETE, HELLO)
    with of(served, "chat") as client:
        question = text_of(asked(client, "delete task 1", model=TASKS))
        assert "this token does not have the role approve" in question
        with pytest.raises(openai.PermissionDeniedError, match="may not approve"):
            asked(client, "delete task 1", question, "yes", model=TASKS)


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_that_fails_is_an_error_and_not_repeated(served: Served, model: WireServer, stream: bool) -> None:
    says(model, CREATE)
    model.declines["worker"] = ("messages",)
    try:
        with of(served).with_options(max_retries=2) as client, pytest.raises(openai.APIError) as raised:
            list(asked(client, "create it", model=TASKS, stream=stream))
    finally:
        model.declines.clear()
    assert "there:worker" in raised.value.message
    assert len(of_phase_two(model)) == 1
    assert getattr(raised.value, "status_code", None) == (None if stream else 424)


@pytest.fixture
def slow(model: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the model say a few words, and then nothing."""
    del model.scripts["worker"]
    monkeypatch.setitem(MODES, "worker", MODES["hangs-between-words"])


@pytest.mark.usefixtures("slow")
def test_closing_the_stream_ends_the_run(served: Served, client: OpenAI) -> None:
    stream = asked(client, "the moon", model=SONG, stream=True)
    for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    run = chunk.id.removeprefix("chatcmpl-")
    assert state_of(served, run) == "running"
    stream.close()
    until(lambda: state_of(served, run) == "cancelled")


@pytest.mark.usefixtures("slow")
def test_a_run_that_is_stopped_elsewhere_ends_the_stream_with_an_error(served: Served, client: OpenAI) -> None:
    stream = asked(client, "the moon", model=SONG, stream=True)
    run = next(iter(stream)).id.removeprefix("chatcmpl-")
    with served.client("admin") as plain:
        assert plain.delete(f"/api/runs/{run}").status_code == 204
    with pytest.raises(openai.APIError, match="the run was stopped"):
        list(stream)


@pytest.mark.wide
@pytest.mark.usefixtures("slow")
def test_a_server_that_ends_ends_the_stream_with_an_error(person: Person) -> None:
    with serving(person, "--patience", "0.5") as served, of(served, "admin") as client:
        stream = asked(client, "the moon", model=SONG, stream=True)
        next(iter(stream))
        served.process.terminate()
        with pytest.raises(openai.APIError, match="the run was stopped"):
            list(stream)
        assert served.process.wait(20) in {0, -signal.SIGTERM}


@pytest.mark.wide
@pytest.mark.usefixtures("slow")
def test_a_client_that_stops_to_wait_ends_the_run(served: Served, client: OpenAI) -> None:
    with pytest.raises(openai.APITimeoutError):
        asked(client.with_options(timeout=10), "one who leaves", model=SONG)
    until(lambda: newest(served).get("message") == "/song-writer one who leaves")
    run = newest(served)["run"]
    until(lambda: state_of(served, run) == "cancelled")


def newest(served: Served) -> dict[str, Any]:
    """The newest run, or {} if there is none."""
    with served.client("admin") as client:
        return next(iter(client.get("/api/runs", params={"limit": 1}).json()["runs"]), {})


async def _streamed(served: Served) -> tuple[str, str]:
    said = conversation("why is the sky blue?")
    async with AsyncOpenAI(base_url=f"{served.url}/v1", api_key=served.tokens["chat"]) as client:
        whole = await client.chat.completions.create(model="navigator", messages=said)
        stream = await client.chat.completions.create(model="navigator", messages=said, stream=True)
        pieces = [choice.delta.content or "" async for chunk in stream for choice in chunk.choices]
    return str(whole.choices[0].message.content), "".join(pieces)


def test_the_asynchronous_client_gets_the_same(served: Served, model: WireServer) -> None:
    import asyncio

    assert asyncio.run(_streamed(served)) == (HELLO.text, HELLO.text)


def test_a_wrong_token_is_an_authentication_error(served: Served) -> None:
    with (
        OpenAI(base_url=f"{served.url}/v1", api_key="nav_t0_x") as client,
        pytest.raises(openai.AuthenticationError) as raised,
    ):
        client.models.list()
    assert raised.value.body == {
        "message": "a token is needed - navigator serve --new-token; Authorization: Bearer …",
        "type": "authentication_error",
        "code": "token",
        "param": None,
    }


def test_a_token_that_may_only_read_may_not_chat(served: Served) -> None:
    with of(served, "read") as client:
        assert client.models.list().data
        with pytest.raises(openai.PermissionDeniedError):
            asked(client, "hello")


@pytest.mark.parametrize("name", ["navigator/song-writter", "gpt-5", "navigator/", "", "../navigator"])
def test_an_unknown_model_is_not_found(client: OpenAI, name: str) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        asked(client, "hello", model=name)
    assert raised.value.code == "model_not_found"


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


@pytest.mark.parametrize(
    "more",
    [
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "see"}, IMAGE]}]},
        {"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "and"}]},
        {"messages": []},
        {"messages": [{"role": "user", "content": " "}]},
        {"messages": "hello"},
        {"n": 2},
        {"tool_choice": "required"},
        {"tool_choice": {"type": "function", "function": {"name": "look"}}},
        {"response_format": {"type": "json_object"}},
    ],
    ids=lambda more: str(more)[:40],
)
def test_an_invalid_or_unsupported_chat_completion_is_a_bad_request(client: OpenAI, more: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(**{"model": "navigator", "messages": conversation("hello"), **more})


def test_unknown_parameters_and_tools_that_may_be_left_out_are_ignored(client: OpenAI, model: WireServer) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    more: dict[str, Any] = {"tools": [tool], "tool_choice": "auto", "temperature": 0, "extra_body": {"top_k": 4}}
    assert text_of(asked(client, "hello", response_format={"type": "text"}, **more)) == HELLO.text


def test_another_path_is_answered_in_the_same_form(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        client.embeddings.create(model="navigator", input="hello")
    assert raised.value.code == "not_found"


def test_a_question_about_a_missing_word_is_answered_by_the_next_turn(client: OpenAI, model: WireServer) -> None:
    question = text_of(asked(client, "/word-count"))
    assert question == "word-count needs: the text or the file"
    answer = text_of(asked(client, "/word-count", question, "one two three", model="navigator/word-count"))
    assert answer.startswith("3 words, 13 characters, 1 line\n\n```json\n{")


def test_an_unknown_skill_in_the_message_is_an_error_with_a_suggestion(client: OpenAI, model: WireServer) -> None:
    with pytest.raises(openai.APIStatusError, match="song-writer"):
        asked(client, "/song-writter the moon")


@pytest.mark.wide
def test_a_plan_lists_its_steps_and_a_yes_carries_it_out(client: OpenAI, model: WireServer) -> None:
    message = "First, count the words of 'one two'. Then, count the words of 'three'."
    question = text_of(asked(client, message))
    assert question.startswith("2 steps, nothing done yet; run them? (yes/no)\n\n1. count the words of 'one two' → ")
    assert "1 word," in text_of(asked(client, message, question, "yes"))
