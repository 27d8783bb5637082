"""The tool `fetch`: which pages a model gets, in what form, and when the person is asked."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from navigator_kernel.adapters.web import get, within
from navigator_kernel.config.settings import load_settings
from navigator_kernel.errors import ConsentNeeded, FetchFailed, UsageProblem
from navigator_kernel.values.chat import ToolCall
from tools.fetched import PAGE, Fetched, project
from web_server import Pages, Reply, pages

pytestmark = pytest.mark.sample(2)

TEXT = """# Boats

A boat floats.
It is [of wood]({url}/wood).

- oar
- sail

 | name | length
 | Ann | 9 m

  row
    row"""


# When the tool is offered


@pytest.mark.requirement("JIT-5", "SAF-2")
@pytest.mark.parametrize(
    ("hosts", "deny", "allowed", "offered"),
    [
        ((), frozenset(), (), False),
        (("example.org",), frozenset(), (), True),
        (("example.org",), frozenset({"tool:fetch"}), (), False),
        (("example.org",), frozenset({"network"}), (), False),
        (("example.org",), frozenset(), ("Read", "Write"), False),
        (("example.org",), frozenset(), ("Read", "WebFetch"), True),
        (("example.org",), frozenset(), ("web_fetch",), True),
        (("example.org",), frozenset(), ("fetch",), True),
        ((), frozenset(), ("WebFetch",), False),
    ],
)
def test_it_is_there_only_where_the_persons_policy_names_hosts(
    tmp_path: Path, hosts: tuple[str, ...], deny: frozenset[str], allowed: tuple[str, ...], offered: bool
) -> None:
    held = Fetched(tmp_path.resolve(), *hosts, deny=deny, allowed=allowed)
    assert ("fetch" in held.offered) == offered
    if not offered:
        answer = held.call("https://example.org/")
        assert answer.failed and "there is no tool called fetch" in answer.text


def test_its_description_names_the_hosts(tmp_path: Path) -> None:
    held = Fetched(tmp_path.resolve(), "example.org", "*.example.net")
    (spec,) = (one for one in held.desk.offered(held.work) if one.name == "fetch")
    assert spec.description.endswith("Only from these hosts: example.org, *.example.net.")


@pytest.mark.requirement("X-43")
def test_only_the_persons_own_settings_name_hosts(home: Path, tmp_path: Path) -> None:
    (tmp_path / "navigator.toml").write_text('[policy]\nfetch = ["evil.example"]\n')
    mine = home / ".config/navigator/config.toml"
    mine.parent.mkdir(parents=True)
    mine.write_text('[policy]\nfetch = ["Docs.Example.org"]\n')
    held = load_settings(tmp_path)
    assert held.policy.fetch == ("docs.example.org",)
    assert any("'policy' is read at user level only" in note for note in held.notes)


@pytest.mark.parametrize(
    "entry", ['"*"', '"https://example.org"', '"a b"', '"example.org/path"', '"u@example.org"', "7"]
)
def test_an_entry_that_names_no_host_is_an_error(home: Path, tmp_path: Path, entry: str) -> None:
    mine = home / ".config/navigator/config.toml"
    mine.parent.mkdir(parents=True)
    mine.write_text(f"[policy]\nfetch = [{entry}]\n")
    with pytest.raises(UsageProblem, match=r"policy\.fetch"):
        load_settings(tmp_path)


# The question


@pytest.mark.requirement("JIT-12")
def test_a_page_is_asked_about_with_its_whole_address(fetched: Fetched, there: Pages) -> None:
    url = f"{there.url}/boats?name=Ann"
    with pytest.raises(ConsentNeeded) as needed:
        fetched.call(url)
    assert needed.value.message == (
        f'let the skill painter get a page from localhost:{there.port}: fetch {{"url": "{url}"}}'
    )
    assert there.asked == []
    assert not fetched.agreed(url).failed
    ((path, headers),) = there.asked
    assert path == "/boats?name=Ann" and headers["Host"] == f"localhost:{there.port}"
    assert not {"Cookie", "Authorization", "Referer"} & set(headers)


@pytest.mark.requirement("SAF-1", "JIT-12")
def test_yes_to_all_orders_covers_no_page(fetched: Fetched, there: Pages) -> None:
    fetched.box.kernel.consents.allow_orders(fetched.work.run)
    with pytest.raises(ConsentNeeded):
        fetched.call(f"{there.url}/boats")


@pytest.mark.requirement("X-43")
def test_after_private_data_each_page_is_asked_about_with_a_warning(fetched: Fetched, there: Pages) -> None:
    fetched.agreed(f"{there.url}/boats")
    made = ToolCall(id="call-9", name="read", arguments="{}")
    asyncio.run(fetched.desk.call(fetched.work, made, {"file_path": "SKILL.md"}))
    for number in (2, 3):
        fetched.agreed(f"{there.url}/boats", number)
    assert ["this call may send them out" in one.message for one in fetched.asked] == [False, True, True]


@pytest.mark.requirement("X-43")
def test_a_session_in_which_data_was_read_asks_about_the_first_page_so(fetched: Fetched, there: Pages) -> None:
    fetched.work = replace(fetched.work, private=True)
    with pytest.raises(ConsentNeeded, match="this call may send them out"):
        fetched.call(f"{there.url}/boats")


@pytest.mark.requirement("EVT-7")
def test_each_page_is_on_record_with_its_address(fetched: Fetched, there: Pages) -> None:
    fetched.agreed(f"{there.url}/boats")
    assert [facts.get("url") for event, facts in fetched.record.entries if event == "started"] == [f"{there.url}/boats"]


# The answer


def test_a_page_is_readable_text_with_whole_links(fetched: Fetched, there: Pages) -> None:
    answer = fetched.agreed(f"{there.url}/boats")
    head, title, _, text = answer.text.split("\n", 3)
    assert (head, title) == (f"{there.url}/boats (text/html, {len(PAGE):,} bytes)", "Boats & ships")
    assert text == TEXT.format(url=there.url)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (Reply(b'{"a": 1}', "application/json"), '{"a": 1}'),
        (Reply("船".encode("gb18030"), "text/plain; charset=gb18030"), "船"),
        (Reply("<meta charset=gbk><p>船".encode("gbk"), "text/html"), "船"),
        (Reply("Grüße".encode("latin-1"), "text/plain; charset=no-such"), "Gr��e"),
        (Reply(b"a\x1b[31mb\xe2\x80\xae", "text/plain"), "ab"),
        (Reply(b"<p>" * 20_000 + b"x", "text/html"), "x"),
        (Reply(b"", "text/html"), "(the page has no text)"),
    ],
)
def test_text_of_every_kind_is_decoded_and_cleaned(fetched: Fetched, there: Pages, reply: Reply, text: str) -> None:
    there.replies["/it"] = reply
    assert fetched.agreed(f"{there.url}/it").text.partition("\n\n")[2] == text


def test_a_long_page_is_cut_and_kept_whole(fetched: Fetched, there: Pages) -> None:
    there.replies["/long"] = Reply(b"".join(b"line %d\n" % number for number in range(5_000)), "text/plain")
    answer = fetched.agreed(f"{there.url}/long")
    assert len(answer.text) < 16_000 and "line 4999" not in answer.text
    path = Path(answer.text.rpartition(" is in ")[2])
    assert path.parent == fetched.box.workspace and path.read_text().endswith("line 4999\n")


def test_a_page_that_is_not_text_is_kept_as_a_file(fetched: Fetched, there: Pages) -> None:
    there.replies["/boat.png"] = Reply(b"\x89PNG\r\n\x1a\n\x00", "image/png")
    answer = fetched.agreed(f"{there.url}/boat.png")
    (kept,) = fetched.box.workspace.glob("page-*.png")
    assert kept.read_bytes() == b"\x89PNG\r\n\x1a\n\x00" and answer.text.endswith(f"is kept in {kept}")


def test_a_redirect_within_named_hosts_is_followed(fetched: Fetched, there: Pages) -> None:
    there.replies["/old"] = Reply(status=301, headers={"Location": "/boats"})
    assert fetched.agreed(f"{there.url}/old").text.startswith(f"{there.url}/boats (")


def test_a_server_of_this_machine_is_asked_over_http_where_it_is_named(tmp_path: Path) -> None:
    with pages(host="127.0.0.1") as there:
        there.replies["/boats"] = Reply(PAGE)
        held = Fetched(project(tmp_path), f"127.0.0.1:{there.port}")
        assert "# Boats" in held.agreed(f"{there.url}/boats").text


# Failures


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(status=404), "answers 404"),
        (Reply(status=500), "answers 500"),
        (Reply(b"x" * 9_000_000, "text/plain"), "is over 8 MiB"),
        (Reply(b"x", headers={"Content-Encoding": "gzip"}), "answers in gzip"),
        (Reply(status=302, headers={"Location": "/it"}), "leads on more than 5 times"),
    ],
)
def test_a_failed_fetch_is_reported_with_its_reason(fetched: Fetched, there: Pages, reply: Reply, said: str) -> None:
    there.replies["/it"] = reply
    answer = fetched.agreed(f"{there.url}/it")
    assert answer.failed and said in answer.text


@pytest.mark.wide
def test_a_server_that_does_not_answer_is_given_up(
    fetched: Fetched, there: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("navigator_kernel.tools.outward.SECONDS", 0.5)
    over = threading.Event()
    there.replies["/slow"] = Reply(after=lambda: over.wait(20))
    answer = fetched.agreed(f"{there.url}/slow")
    over.set()
    assert answer.failed and "did not answer in 0.5 s" in answer.text


def test_a_limit_of_a_socket_says_the_same(there: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    there.replies["/slow"] = Reply(after=lambda: over.wait(20))
    monkeypatch.setattr("navigator_kernel.adapters.web.within", lambda _seconds, ask, late: within(20, ask, late))
    with pytest.raises(FetchFailed, match=r"did not answer in 0\.5 s"):
        get(f"{there.url}/slow", [f"localhost:{there.port}"], 0.5, 1_000)
    over.set()


def test_a_certificate_that_nobody_vouches_for_is_refused(
    fetched: Fetched, there: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    answer = fetched.agreed(f"{there.url}/boats")
    assert answer.failed and "certificate" in answer.text.lower()
