"""A client on the network cannot block the server, send without end, or speak as another host or page."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from urllib.parse import urlsplit

import pytest

from cli.support import Place, place_in
from mcp_server.test_http import TOKEN, serving, status
from navigator_kernel.adapters.http_connection import BODY_TIME, CONNECTIONS, HEADER_TIME
from navigator_kernel.mcp_server.server import LONGEST
from routing.serving import until

pytestmark = [pytest.mark.requirement("SAF-1", "SAF-2"), pytest.mark.sample(1)]

SLACK = 20.0  # additional seconds for a busy machine
AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}
BEGIN = f"POST /mcp HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    here: Place = place_in(tmp_path_factory.mktemp("served"))
    with serving(here) as served:
        yield served


def connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    return socket.create_connection((parts.hostname, parts.port), timeout=60)


def ended_after(link: socket.socket) -> float:
    """Seconds until the server ends the connection."""
    begin = time.monotonic()
    try:
        while link.recv(4096):
            continue
    except ConnectionError:
        pass
    return time.monotonic() - begin


def after_half(url: str, sent: bytes) -> float:
    begin = time.monotonic()
    with connected(url) as link:
        link.sendall(sent)
        ended_after(link)
    return time.monotonic() - begin


def after_bytes_now_and_then(url: str) -> float:
    begin = time.monotonic()
    with connected(url) as link, suppress(ConnectionError):
        link.sendall(b"GET /mcp HTTP/1.1\r\nX: ")
        while time.monotonic() - begin < HEADER_TIME + SLACK:
            link.sendall(b"x")
            time.sleep(0.5)
    return time.monotonic() - begin


def after_an_answer_and_half(url: str) -> float:
    with connected(url) as link:
        link.sendall(f"GET /mcp HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n\r\n".encode())
        assert b" 401 " in link.recv(4096)
        link.sendall(b"GET /mcp HTTP/1.1\r\nHo")
        return ended_after(link)


HALVES = (b"", b"POST /mcp HTTP/1.1\r\nHost: 127", b"POST /m")
SLOW: dict[bytes, Callable[[str], float]] = {
    **{sent: partial(after_half, sent=sent) for sent in HALVES},
    b"now and then": after_bytes_now_and_then,
    b"after an answer": after_an_answer_and_half,
}


@pytest.fixture(scope="module")
def ended(url: str) -> Mapping[bytes, float]:
    """Seconds until the server ended each connection of `SLOW`; all are opened at once."""
    with ThreadPoolExecutor(len(SLOW)) as pool:
        waiting = {name: pool.submit(wait, url) for name, wait in SLOW.items()}
        return {name: one.result() for name, one in waiting.items()}


@pytest.mark.wide
@pytest.mark.parametrize("sent", HALVES)
def test_a_client_that_sends_half_a_header_is_dropped(ended: Mapping[bytes, float], sent: bytes) -> None:
    assert HEADER_TIME - 1 < ended[sent] < HEADER_TIME + SLACK


@pytest.mark.wide
def test_a_byte_now_and_then_does_not_prolong_the_time(ended: Mapping[bytes, float]) -> None:
    assert ended[b"now and then"] < HEADER_TIME + SLACK


@pytest.mark.wide
def test_half_a_header_after_an_answer_is_dropped_as_well(ended: Mapping[bytes, float]) -> None:
    assert ended[b"after an answer"] < HEADER_TIME + SLACK


@pytest.mark.slow
def test_a_body_that_does_not_come_is_not_waited_for(url: str) -> None:
    with connected(url) as link:
        link.sendall(f"{BEGIN}Host: {urlsplit(url).netloc}\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert ended_after(link) < BODY_TIME + SLACK


def answered(url: str) -> bool:
    """Whether the server answers a request instead of ending the connection."""
    with suppress(ConnectionError), connected(url) as link:
        link.sendall(f"GET /mcp HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n\r\n".encode())
        return b" 401 " in link.recv(4096)
    return False


@pytest.mark.wide
def test_a_connection_over_the_limit_is_refused_until_others_end(url: str) -> None:
    with ExitStack() as held:
        for _ in range(CONNECTIONS):
            held.enter_context(connected(url))
        until(lambda: not answered(url))
    until(lambda: answered(url))
    assert status(url, AUTHORISED) != 503


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "with a length"])
def test_a_body_over_the_limit_is_refused(url: str, chunked: bool) -> None:
    size = LONGEST + 1
    body = f"{size:x}\r\n".encode() + b" " * size + b"\r\n0\r\n\r\n" if chunked else b" " * size
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {size}"
    with connected(url) as link:
        link.sendall(f"{BEGIN}Host: {urlsplit(url).netloc}\r\n{length}\r\n\r\n".encode())
        with suppress(ConnectionError):  # the server may answer before it has the whole request
            link.sendall(body)
        assert b" 413 " in link.recv(4096)


def other_names(url: str) -> list[str]:
    port = urlsplit(url).port
    return [
        f"localhost:{port}",
        "127.0.0.1",
        f"127.0.0.1:{(port or 0) + 1}",
        f"127.0.0.1:{port}.evil.example",
        f"127.0.0.1.evil.example:{port}",
        f"evil.example:{port}",
        f"[::1]:{port}",
        "",
    ]


def test_every_host_but_the_one_it_was_started_with_is_refused(url: str) -> None:
    names = other_names(url)
    assert [(name, status(url, {**AUTHORISED, "Host": name})) for name in names] == [(name, 421) for name in names]


def test_a_page_of_another_port_of_this_machine_is_refused(url: str) -> None:
    origins = [f"http://{name}" for name in other_names(url)[:-1]]
    origins += ["null", f"https://{urlsplit(url).netloc}", f"http://{urlsplit(url).netloc}/"]
    assert [(one, status(url, {**AUTHORISED, "Origin": one})) for one in origins] == [(one, 403) for one in origins]


def test_its_own_name_and_page_are_answered(url: str) -> None:
    own = {"Host": urlsplit(url).netloc, "Origin": f"http://{urlsplit(url).netloc}"}
    assert status(url, {**AUTHORISED, **own}) not in {401, 403, 421}


def test_it_still_answers_after_all_that(url: str) -> None:
    assert status(url, {}) == 401
