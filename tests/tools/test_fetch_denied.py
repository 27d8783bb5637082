"""Pages that `fetch` refuses, each with a reason that the model gets."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.web import get, target_of
from navigator_kernel.errors import FetchFailed, Refused, UsageProblem
from tables import cases
from tools.fetched import Fetched
from web_server import Pages, Reply

pytestmark = pytest.mark.sample(2)


@pytest.mark.requirement("SAF-2")
@cases("url, reason")
def test_an_address_that_is_not_allowed_is_refused_without_a_question(tmp_path: Path, url: str, reason: str) -> None:
    held = Fetched(tmp_path.resolve(), "example.org", "*.example.com")
    with pytest.raises(Refused) as caught:
        target_of(url, ("example.org", "*.example.com"))
    answer = held.call(url)
    assert (caught.value.data["reason"], answer.failed) == (reason, True)
    assert caught.value.message in answer.text and caught.value.hint in answer.text
    assert [facts["reason"] for event, facts in held.record.entries if event == "refused"] == [reason]


@pytest.mark.parametrize(
    "url", ["https://example.org/a b", "https://example.org/\nx", "https://[", f"https://{'a' * 2000}"]
)
def test_an_invalid_url_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageProblem):
        target_of(url, ("example.org",))


@cases("entry, url")
def test_a_named_host_is_known_however_it_is_written(entry: str, url: str) -> None:
    assert target_of(url, (entry,)).url == url


@pytest.mark.requirement("SAF-2")
@cases("to, said")
def test_a_redirect_away_is_not_followed(fetched: Fetched, there: Pages, to: str, said: str) -> None:
    there.replies["/old"] = Reply(status=302, headers={"Location": to.format(port=there.port)})
    answer = fetched.agreed(f"{there.url}/old")
    assert answer.failed and "localhost leads to" in answer.text
    assert said in answer.text
    with pytest.raises(Refused) as caught:
        get(f"{there.url}/old", (f"localhost:{there.port}",), 5, 1000)
    assert caught.value.data["reason"] == "redirect"


@pytest.mark.requirement("SAF-2")
@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "169.254.169.254", "10.0.0.7", "192.168.1.1", "100.64.0.1", "0.0.0.0", "::1", "fd00::1",
     "::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "224.0.0.1"],
)  # fmt: skip
def test_a_name_that_stands_for_an_address_inside_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """The resolver's answer is replaced: no name on this machine stands for these addresses."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: [(0, 0, 0, "", (address, 443))])
    with pytest.raises(Refused) as caught:
        get("https://example.org/", ("example.org",), 5, 1000)
    assert caught.value.data["reason"] == "private-address"


@pytest.mark.requirement("SAF-2")
def test_a_name_of_this_machine_is_refused_until_its_address_is_named(there: Pages) -> None:
    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError:
        pytest.skip("this machine's name stands for no address")
    if not address.startswith(("10.", "127.", "172.", "192.168.")):
        pytest.skip("this machine has a public address")
    with pytest.raises(Refused) as caught:
        get(f"https://{name}:{there.port}/", (f"{name}:{there.port}",), 5, 1000)
    assert caught.value.data["reason"] == "private-address"
    with pytest.raises(FetchFailed):  # the host is asked then, but has another certificate or does not listen there
        get(f"https://{name}:{there.port}/", (f"{name}:{there.port}", f"{address}/32"), 5, 1000)


@pytest.mark.requirement("SAF-2")
def test_a_page_of_the_open_web_leads_to_no_address_inside(monkeypatch: pytest.MonkeyPatch, there: Pages) -> None:
    """`localhost` is named, and first resolves to a public address: a connection to that reaches this server."""
    there.replies["/"] = Reply(status=302, headers={"Location": "/boats"})
    real, connect, asked = socket.getaddrinfo, socket.create_connection, []

    def found(*words: Any, **more: Any) -> Any:
        asked.append(words)
        return [(0, 0, 0, "", ("8.8.8.8", there.port))] if len(asked) == 1 else real(*words, **more)

    monkeypatch.setattr(socket, "getaddrinfo", found)
    monkeypatch.setattr(socket, "create_connection", lambda _to, **more: connect(("127.0.0.1", there.port), **more))
    with pytest.raises(Refused, match="not public") as caught:
        get(there.url, (f"localhost:{there.port}",), 5, 1000)
    assert caught.value.data["reason"] == "redirect"
