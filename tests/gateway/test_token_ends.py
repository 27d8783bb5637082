"""What a token that is revoked or expires takes with it: its open streams and answers, and nothing else."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from gateway.served import LIMIT, Person, Sent, Served, sent
from models.wire_server import Said, WireServer
from specialist.turns import says

SOON = 2.0  # seconds within which a stream ends
ENDED = "the token was revoked or has expired"
AG_UI = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "/song-writer the moon"}]}
CHAT = {"model": "navigator", "messages": [{"role": "user", "content": "/song-writer the moon"}]}


class Stream(NamedTuple):
    """A request for a stream, and the last data that it sends when its token has ended."""

    method: str
    path: str
    body: dict[str, Any] | None
    last: Callable[[list[str]], bool]


def _is_token_ended(data: list[str]) -> bool:
    return bool(json.loads(data[-1]) == {"code": "token", "detail": ENDED})


STREAMS = (
    Stream("GET", "/api/events", None, _is_token_ended),
    Stream("POST", "/api/chat/slow", {"message": "/song-writer the moon"}, _is_token_ended),
    Stream("POST", "/ag-ui", AG_UI, lambda data: json.loads(data[-1]) == {"type": "RUN_ERROR", "message": ENDED, "code": "token"}),
    Stream("POST", "/v1/chat/completions", {**CHAT, "stream": True}, lambda data: data[-1] == "[DONE]" and json.loads(data[-2])["error"]["code"] == "token"),
    Stream("POST", "/v1/responses", {"model": "navigator", "input": "/song-writer the moon", "stream": True}, lambda data: json.loads(data[-1])["code"] == "token"),
)  # fmt: skip


@pytest.fixture
def slow(model: WireServer) -> Iterator[threading.Event]:
    """A model that answers only after the event is set."""
    answered = threading.Event()
    says(model, Said(text="la la"))
    ready = model.scripts["worker"]

    def answer(messages: Sequence[Any], number: int) -> Said:
        answered.wait(LIMIT)
        return ready(messages, number)

    model.scripts["worker"] = answer
    yield answered
    answered.set()


def _client(served: Served, token: str) -> httpx2.Client:
    return httpx2.Client(base_url=served.url, headers={"Authorization": f"Bearer {token}"}, timeout=LIMIT)


def _end(person: Person, token: str, way: str) -> float:
    """Revokes the token, or lets it expire; returns the time."""
    name = token.split("_")[1]
    if way == "revoked":
        person.json("serve", "--revoke", name)
        return time.monotonic()
    file = next(Path(person.env["XDG_STATE_HOME"]).rglob("gateway-tokens.json"))
    (held,) = (one for one in person.json("serve", "--list-tokens")["tokens"] if one["id"] == name)
    text = file.read_text().replace(held["expires"], datetime.now(UTC).isoformat(timespec="milliseconds")[:23] + "Z")
    fresh = file.with_suffix(".fresh")
    fresh.write_text(text)
    fresh.replace(file)
    return time.monotonic()


def _data(answer: httpx2.Response, begun: threading.Event) -> list[str]:
    data = []
    for line in answer.iter_lines():
        begun.set()
        data += [line.removeprefix("data: ")] if line.startswith("data: ") else []
    return data


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.path)
@pytest.mark.parametrize("way", ["revoked", "expired"])
def test_a_stream_ends_within_two_seconds_of_its_token_and_says_so(
    served: Served, person: Person, slow: threading.Event, stream: Stream, way: str
) -> None:
    token, begun, data = person.token("--role", "chat"), threading.Event(), list[str]()
    ended = list[float]()

    def read() -> None:
        with _client(served, token) as client, client.stream(stream.method, stream.path, json=stream.body) as answer:
            assert answer.status_code == 200, answer.read()
            begun.set()
            data.extend(_data(answer, begun))
        ended.append(time.monotonic())

    reader = threading.Thread(target=read)
    reader.start()
    assert begun.wait(LIMIT)
    at = _end(person, token, way)
    reader.join(LIMIT)
    assert ended and ended[0] - at < SOON
    assert stream.last(data), data


def test_a_revoked_administrator_hears_no_event_of_another_session(
    served: Served, person: Person, model: WireServer
) -> None:
    token, seen, begun = person.token("--role", "admin"), list[Sent](), threading.Event()
    says(model, Said(text="la la"))

    def read() -> None:
        with _client(served, token) as client, client.stream("GET", "/api/events") as answer:
            begun.set()
            seen.extend(sent(answer))

    reader = threading.Thread(target=read)
    reader.start()
    assert begun.wait(LIMIT)
    served.chat("/song-writer the first", "heard", "chat")
    at = _end(person, token, "revoked")
    while time.monotonic() - at < SOON:
        time.sleep(0.05)
    run = served.chat("/song-writer the second", "unheard", "chat")[0].data["run"]
    reader.join(LIMIT)
    assert [one.event for one in seen][-1] == "TokenEnded"
    assert any(one.event == "RunCompleted" for one in seen)
    assert not any(one.data.get("run") == run for one in seen)


def test_a_turn_goes_on_without_the_token_that_began_it(served: Served, person: Person, slow: threading.Event) -> None:
    token = person.token("--role", "chat")
    with _client(served, token) as client:
        with client.stream("POST", "/api/chat/goes-on", json={"message": "/song-writer the moon"}) as answer:
            run = answer.headers["x-run-id"]
            _end(person, token, "revoked")
            assert list(sent(answer))[-1].event == "TokenEnded"
        assert client.get(f"/api/runs/{run}").status_code == 401
    slow.set()
    with served.client() as admin, admin.stream("GET", f"/api/runs/{run}/events") as answer:
        last = list(sent(answer))[-1]
    assert (last.event, last.data["payload"]["state"]) == ("RunCompleted", "success")


def test_an_answer_that_was_still_waited_for_is_refused(served: Served, person: Person, slow: threading.Event) -> None:
    token, answers = person.token("--role", "chat"), list[httpx2.Response]()
    with _client(served, token) as client:
        reader = threading.Thread(target=lambda: answers.append(client.post("/v1/chat/completions", json=CHAT)))
        reader.start()
        time.sleep(0.5)
        at = _end(person, token, "revoked")
        reader.join(LIMIT)
    assert time.monotonic() - at < SOON
    assert (answers[0].status_code, answers[0].json()["error"]["code"]) == (401, "token")


def test_the_streams_of_other_tokens_go_on(served: Served, person: Person, model: WireServer) -> None:
    token = person.token("--role", "admin")
    says(model, Said(text="la la"))
    with served.client() as client, client.stream("GET", "/api/events") as answer:
        _end(person, token, "revoked")
        time.sleep(SOON)
        run = served.chat("/song-writer the moon", "goes-on-too")[0].data["run"]
        assert next(sent(answer)).data["run"] == run
