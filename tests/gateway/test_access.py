"""Hostile and mistaken requests: each gets its status and a typed problem document, and changes nothing."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from gateway.served import Person, Served, serving
from models.wire_server import HELLO, WireServer
from specialist.turns import says
from tables import table

CHAT = "/api/chat/s"
HI = b'{"message": "hi"}'
JSON = {"content-type": "application/json"}


class Case(NamedTuple):
    """A request and its expected status. `token` is a role, or the text of a token."""

    name: str
    status: int
    method: str = "GET"
    path: str = "/api/sessions"
    token: str = "admin"
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""


def post(name: str, status: int, body: bytes = HI, path: str = CHAT, **given: Any) -> Case:
    headers = given.pop("headers", [*JSON.items()])
    return Case(name, status, "POST", path, headers=headers, body=body, **given)


CASES = (
    *(Case(**{**one, "body": one.get("body", "").encode("latin-1")}) for one in table(__file__, "CASES")),
    post("very deep JSON", 422, body=b'{"message": ' + b"[" * 100_000),
    post("a message that is too long", 422, body=json.dumps({"message": "a" * 1_000_001}).encode()),
)


@pytest.fixture(scope="module")
def secrets(person: Person, served: Served) -> dict[str, str]:
    """The tokens by role, plus an expired and a revoked one."""
    gone = person.json("serve", "--new-token")
    person.json("serve", "--revoke", gone["id"])
    old = person.json("serve", "--new-token")
    file = next(_state(person).rglob("gateway-tokens.json"))
    file.write_text(file.read_text().replace(old["expires"], "2026-01-01T00:00:00.000Z"))
    return {**served.tokens, "expired": old["token"], "revoked": gone["token"]}


def _state(person: Person) -> Path:
    return Path(person.env["XDG_STATE_HOME"])


def exchanged(url: str, data: bytes) -> tuple[int, dict[str, str], bytes]:
    """The answer to bytes that no client library would send."""
    place = urlsplit(url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=20) as held:
        held.sendall(data)
        answer = b""
        with suppress(ConnectionResetError):
            while part := held.recv(65_536):
                answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    return int(lines[0].split()[1]), headers, body


def request(case: Case, url: str, secrets: dict[str, str]) -> bytes:
    place = urlsplit(url)
    text = secrets.get(case.token, secrets["admin"])
    facts = {"text": text, "id": text.split("_")[1], "port": str(place.port)}
    said = f"Bearer {text}" if case.token in secrets else case.token.format(**facts)
    held = [("host", place.netloc), ("connection", "close"), *([("authorization", said)] if said else [])]
    own = [(name, value.format(**facts)) for name, value in case.headers]
    names = {name for name, _ in own}
    held = [*(one for one in held if one[0] not in names), *own]
    if case.body and "content-length" not in names:
        held.append(("content-length", str(len(case.body))))
    head = "\r\n".join([f"{case.method} {case.path.format(**facts)} HTTP/1.1", *(f"{n}: {v}" for n, v in held)])
    return head.encode() + b"\r\n\r\n" + case.body


@pytest.mark.sample(12)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_hostile_request_gets_a_problem_document(
    case: Case, served: Served, person: Person, secrets: dict[str, str], model: WireServer
) -> None:
    says(model, HELLO)
    before = {name: data for name, data in person.here.files().items() if name.startswith("mybox/")}
    status, headers, body = exchanged(served.url, request(case, served.url, secrets))
    assert status == case.status, body
    if headers.get("content-type") != "text/plain; charset=utf-8":  # the HTTP parser itself answers in text/plain
        held = json.loads(body)
        assert headers["content-type"] == "application/problem+json"
        assert held["status"] == status and held["type"] == f"urn:navigator:problem:{held['code']}" and held["detail"]
    assert {name: data for name, data in person.here.files().items() if name.startswith("mybox/")} == before
    assert model.requests == []


def test_five_thousand_headers_are_refused(served: Served) -> None:
    lines = "".join(f"x-{number}: {'a' * 100}\r\n" for number in range(5_000))
    place = urlsplit(served.url)
    head = f"GET /healthz HTTP/1.1\r\nhost: {place.netloc}\r\n"
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=20) as held:
        with suppress(ConnectionError):  # the server may answer before it has the whole request
            held.sendall(f"{head}{lines}\r\n".encode())
        answer = held.recv(65_536)
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))


def test_a_connection_stays_open_when_a_short_body_comes_after_its_answer(served: Served) -> None:
    place = urlsplit(served.url)
    common = f"host: {place.netloc}\r\nauthorization: Bearer {served.tokens['admin']}\r\n"
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=20) as held:
        held.sendall(f"PUT /api/nothing HTTP/1.1\r\n{common}content-length: 2\r\n\r\n".encode())
        first = HTTPResponse(held)
        first.begin()
        assert (first.status, first.read().startswith(b"{")) == (404, True)
        held.sendall(b"{}")
        held.sendall(f"GET /healthz HTTP/1.1\r\n{common}\r\n".encode())
        second = HTTPResponse(held)
        second.begin()
        assert second.status == 200


def test_a_hundred_megabytes_are_not_read(served: Served) -> None:
    place, begun = urlsplit(served.url), time.monotonic()
    head = f"POST {CHAT} HTTP/1.1\r\nhost: {place.netloc}\r\nauthorization: Bearer {served.tokens['admin']}\r\n"
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=20) as held:
        held.sendall(f"{head}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        sent, chunk = 0, b"10000\r\n" + b"a" * 65_536 + b"\r\n"
        with suppress(OSError):
            for _ in range(1_600):
                held.sendall(chunk)
                sent += len(chunk)
    assert sent < 80_000_000 and time.monotonic() - begun < 20


def _texts_below(folder: Path) -> Iterator[bytes]:
    """The contents of the files below `folder`, except those that vanish meanwhile."""
    for above, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                if (path := Path(above, name)).is_file():
                    yield path.read_bytes()


def test_no_token_is_in_a_log_or_a_file(served: Served, person: Person, secrets: dict[str, str]) -> None:
    served.chat("/song-writer the moon", "logged")
    texts = [*_texts_below(_state(person)), *_texts_below(person.here.root)]
    for token in secrets.values():
        secret = token.split("_", 2)[2].encode()
        assert not any(secret in text for text in texts)


@pytest.mark.wide
def test_a_line_of_json_is_logged_for_each_answer_and_contains_no_text_of_it(person: Person, tmp_path: Path) -> None:
    from gateway.served import serving

    log = tmp_path / "log"
    with log.open("wb") as err, serving(person, "--logs", "json", stderr=err) as served:
        served.chat("/song-writer a very secret subject", "private-name")
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    answered = [line for line in lines if line.get("path") == "/api/chat/{session}"]
    assert [(line["status"], line["token"]) for line in answered] == [(200, served.tokens["admin"].split("_")[1])]
    text = log.read_text()
    assert "secret" not in text and "private-name" not in text and served.tokens["admin"] not in text


def test_a_token_over_its_rate_limit_must_wait_and_another_need_not() -> None:
    from navigator_kernel.gateway.access import Buckets

    now = [0.0]
    held = Buckets(rate=2.0, burst=3.0, clock=lambda: now[0])

    async def waits(*names: str) -> list[float]:
        return [await held.wait(name) for name in names]

    assert asyncio.run(waits("a", "a", "a")) == [0.0, 0.0, 0.0]
    assert asyncio.run(waits("a", "b")) == [pytest.approx(0.5), 0.0]
    now[0] = 0.5
    assert asyncio.run(waits("a")) == [0.0]


def test_another_address_needs_tls_or_an_explicit_word(person: Person) -> None:
    done = person.here.run("serve", "--host", "0.0.0.0", env=person.env)
    assert done.code == 2 and "TLS" in done.err


def test_a_server_behind_a_proxy_answers_to_the_names_that_it_was_given_and_to_no_other(person: Person) -> None:
    with (
        serving(person, "--name", "Gateway.example", "--name", "board.example:8443") as server,
        server.client() as client,
    ):
        port = server.url.rpartition(":")[2]

        def status(host: str, **more: str) -> int:
            return client.get("/api/sessions", headers={"Host": host, **more}).status_code

        assert status("board.example:8443", Origin="https://board.example:8443") == 200
        assert [status(host) for host in ("gateway.example", f"GATEWAY.example:{port}", f"127.0.0.1:{port}")] == [
            200
        ] * 3
        assert [
            status(host) for host in ("board.example", "gateway.example:1", "evil.example", f"evil.example:{port}")
        ] == [421] * 4
        assert status("gateway.example", Origin="https://evil.example") == 403
