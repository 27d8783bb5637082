"""The session in which a conversation of an OpenAI client continues."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from dispatch.orders import StillClock
from gateway.openai_clients import DELETE, SONG, TASKS, asked, conversation, of, seen, text_of
from gateway.served import Person, Served, serving
from models.wire_server import HELLO, MODES, Said, WireServer
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.sessions import Conversations
from specialist.turns import says

pytestmark = pytest.mark.wide


@pytest.fixture
def client(served: Served) -> Iterator[OpenAI]:
    with of(served) as held:
        yield held


def session_of(client: OpenAI, *said: str, **more: Any) -> str:
    """Sends a turn; returns its session."""
    answer = client.chat.completions.with_raw_response.create(model="navigator", messages=conversation(*said), **more)
    return str(answer.headers["x-session-id"])


def test_a_conversation_continues_in_its_session(client: OpenAI, model: WireServer) -> None:
    first = session_of(client, "why is the sky blue?")
    assert session_of(client, "why is the sky blue?", HELLO.text, "and the sea?") == first
    assert session_of(client, "why is the sky blue?", HELLO.text, "and the sea?", f"{HELLO.text}\n", "why?") == first
    assert seen(model) == ["why is the sky blue?", HELLO.text, "and the sea?", HELLO.text, "why?"]


def test_the_same_first_message_begins_another_session(client: OpenAI, model: WireServer) -> None:
    first, second = (session_of(client, "tell me of the rain") for _ in range(2))
    assert first != second
    both = {session_of(client, "tell me of the rain", HELLO.text, said) for said in ("more", "and more")}
    assert both == {first, second}


def test_a_changed_conversation_starts_a_new_session_with_its_history(client: OpenAI, model: WireServer) -> None:
    first = session_of(client, "tell me of the snow")
    other = session_of(client, "tell me of the snow", "It is cold.", "how cold?")
    assert other != first
    assert seen(model) == ["tell me of the snow", "It is cold.", "how cold?"]
    assert session_of(client, "tell me of the snow", "It is cold.", "how cold?", HELLO.text, "and warm?") == other
    assert seen(model) == ["tell me of the snow", "It is cold.", "how cold?", HELLO.text, "and warm?"]


def test_a_message_sent_again_branches_off(client: OpenAI, model: WireServer) -> None:
    said = ("tell me of the wind", HELLO.text, "how strong?")
    first = session_of(client, *said[:1])
    assert session_of(client, *said) == first
    assert session_of(client, *said) != first
    assert seen(model) == list(said)


def test_a_system_message_comes_first_and_does_not_decide_the_session(client: OpenAI, model: WireServer) -> None:
    def sent(system: str, *said: str) -> str:
        messages = [{"role": "system", "content": system}, *conversation(*said)]
        answer = client.chat.completions.with_raw_response.create(model="navigator", messages=messages)
        return str(answer.headers["x-session-id"])

    first = sent("It is noon.", "tell me of the fog")
    assert seen(model) == ["It is noon.", "tell me of the fog"]
    assert sent("It is one.", "tell me of the fog", HELLO.text, "how thick?") == first


def test_another_user_or_token_has_another_session(served: Served, client: OpenAI, model: WireServer) -> None:
    said = ("tell me of the hail", HELLO.text, "how big?")
    first = session_of(client, said[0], user="ada")
    assert session_of(client, *said, user="ben") != first
    with of(served, "chat") as other:
        assert session_of(other, *said, user="ada") != first
    assert session_of(client, *said, user="ada") == first


@pytest.mark.parametrize("more", [{"extra_headers": {"X-Session-Id": "named"}}, {"metadata": {"session_id": "named"}}])
def test_a_request_may_name_its_session(client: OpenAI, model: WireServer, more: Any) -> None:
    assert session_of(client, "why is the sky blue?", **more) == "named"
    assert session_of(client, "and the sea?", **more) == "named"
    assert seen(model)[-3:] == ["why is the sky blue?", HELLO.text, "and the sea?"]


def test_a_session_that_was_named_is_not_mistaken_for_another_conversation(client: OpenAI, model: WireServer) -> None:
    first = session_of(client, "tell me of the dew")
    for said in ("a secret", "tell me of the dew"):
        session_of(client, said, extra_headers={"X-Session-Id": "of-secrets"})
    assert session_of(client, "tell me of the dew", HELLO.text, "and more") == first


@pytest.mark.parametrize("name", ["../x", "a b", "é", "x" * 65])
def test_a_name_that_is_not_a_sessions_is_a_bad_request(client: OpenAI, name: str) -> None:
    with pytest.raises(openai.BadRequestError):
        session_of(client, "hello", metadata={"session_id": name})


def test_a_second_turn_at_once_in_a_session_is_a_conflict(
    client: OpenAI, model: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    del model.scripts["worker"]
    monkeypatch.setitem(MODES, "worker", MODES["hangs-between-words"])
    named: Any = {"extra_headers": {"X-Session-Id": "busy"}, "model": SONG}
    with asked(client, "the moon", stream=True, **named) as stream:
        next(iter(stream))
        with pytest.raises(openai.ConflictError):
            asked(client, "the sea", **named)


def test_a_question_waits_over_the_end_of_the_server(person: Person, model: WireServer) -> None:
    says(model, Said(calls=[("task_create", '{"title": "x"}')]), DELETE, Said(text="It is gone."))
    with serving(person) as served, of(served, "admin") as client:
        token = served.tokens["admin"]
        question = text_of(asked(client, "delete task 1 after that", model=TASKS))
    with serving(person, roles=()) as served:
        served.tokens = {"admin": token}
        with of(served, "admin") as client:
            assert text_of(asked(client, "delete task 1 after that", question, "yes", model=TASKS)) == "It is gone."


async def _at_once(served: Served, count: int) -> list[tuple[str, str]]:
    """The answer and the session of each of `count` conversations that begin at the same time."""
    async with AsyncOpenAI(base_url=f"{served.url}/v1", api_key=served.tokens["chat"], max_retries=0) as client:

        async def one(number: int) -> tuple[str, str]:
            said = conversation(f"why is number {number} so small?")
            answer = await client.chat.completions.with_raw_response.create(model="navigator", messages=said)
            return text_of(answer.parse()), answer.headers["x-session-id"]

        return await asyncio.gather(*map(one, range(count)))


def test_conversations_at_once_have_a_session_each(served: Served, model: WireServer) -> None:
    told = asyncio.run(_at_once(served, 12))
    assert {text for text, _ in told} == {HELLO.text}
    assert len({session for _, session in told}) == 12


class StepClock(StillClock):
    """A clock that moves on one second per call."""

    ticks = 0

    def now(self) -> str:
        self.ticks += 1
        return f"2026-01-31T09:30:{self.ticks:02d}.000Z"


def test_the_oldest_places_of_conversations_are_forgotten(tmp_path: Path) -> None:
    file, writer = tmp_path / "c.sqlite", FolderWriter([tmp_path])
    store = Conversations(file=file, writer=writer, clock=StepClock(), most=3)
    for number in range(5):
        store.keep(f"digest {number}", f"session {number}", 1)
    assert [len(store.find(f"digest {number}")) for number in range(5)] == [0, 0, 1, 1, 1]


def test_the_newest_of_equal_conversations_comes_first(tmp_path: Path) -> None:
    store = Conversations(file=tmp_path / "c.sqlite", writer=FolderWriter([tmp_path]), clock=StepClock())
    for session, turn in (("a", 1), ("b", 1), ("a", 2)):
        store.keep("same", session, turn)
    assert store.find("same") == [("a", 2), ("b", 1)]
