"""Skills that are not installed are found in the catalogues that a person configured."""

from __future__ import annotations

import json
import shlex
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.errors import FetchFailed, Refused, UsageProblem
from navigator_kernel.skills.source.remote import SIZE_LIMIT, install_command, offers, search_remote
from skill_repositories import make_repo, skill_text
from tables import cases
from web_server import KEY_AND_CERTIFICATE

pytestmark = pytest.mark.sample(1)

ENTRIES = [
    {"name": "pdf", "description": "reads files", "repo": "anthropics/skills", "subpath": "document-skills/pdf"},
    {"name": "pdf-tools", "description": "splits", "repo": "https://example.org/tools.git", "tags": ["paper"]},
    {"name": "toast", "description": "burns \x1b[31mbread", "repo": "owner/kitchen", "subpath": ""},
]


def found(query: str, *catalogues: Any, base: Path = Path("/"), **given: Any) -> list[dict[str, Any]]:
    return search_remote(query, [str(one) for one in catalogues], base=base, **given)


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    path = tmp_path / "catalogue.json"
    path.write_text(json.dumps(ENTRIES))
    return path


@pytest.mark.requirement("LIF-16")
@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("pdf", [("pdf", 100, "exact"), ("pdf-tools", 90, "prefix")]),
        ("bread", [("toast", 50, "description")]),
        ("paper", [("pdf-tools", 30, "tag")]),
        ("pdf splits", [("pdf-tools", 110, "prefix"), ("pdf", 100, "exact")]),
        ("nothing", []),
    ],
)
def test_a_catalogue_is_searched_with_the_documented_score(catalogue: Path, query: str, told: list[Any]) -> None:
    assert [(one["name"], one["score"], one["reason"]) for one in found(query, catalogue)] == told


def test_a_hit_has_its_entry_score_reason_catalogue_and_install_command(catalogue: Path) -> None:
    assert found("pdf", catalogue)[0] == {
        "name": "pdf",
        "description": "reads files",
        "repo": "anthropics/skills",
        "subpath": "document-skills/pdf",
        "score": 100,
        "reason": "exact",
        "catalogue": str(catalogue),
        "install": "navigator skill install anthropics/skills --skill document-skills/pdf",
    }


def test_text_of_strangers_is_cleaned(catalogue: Path) -> None:
    assert found("toast", catalogue)[0]["description"] == "burns bread"


@pytest.mark.parametrize("wrap", [list, lambda entries: {"skills": entries, "more": 1}])
@pytest.mark.parametrize("address", ["file://{}", "file://localhost{}", "{}", "catalogue.json"])
def test_a_file_is_read_in_both_forms_and_under_any_address(tmp_path: Path, wrap: Any, address: str) -> None:
    path = tmp_path / "catalogue.json"
    path.write_text(json.dumps(wrap(ENTRIES)))
    assert len(found("pdf", address.format(path), base=tmp_path)) == 2


def test_an_entry_in_two_catalogues_is_found_once_under_the_first(catalogue: Path, tmp_path: Path) -> None:
    (tmp_path / "two.json").write_text(json.dumps(ENTRIES[:1]))
    assert [one["catalogue"] for one in found("anthropics pdf", catalogue, tmp_path / "two.json")] == [
        str(catalogue),
        str(catalogue),
    ]


def test_a_hit_can_be_installed_as_it_says(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"skills/a/SKILL.md": skill_text("a"), "b/SKILL.md": skill_text("b")})
    entry = {"name": "a", "description": "x", "repo": f"file://{repo}", "subpath": "skills/a"}
    (tmp_path / "one.json").write_text(json.dumps([entry]))
    (hit,) = found("a", tmp_path / "one.json")
    _, _, _, source, _, skill = shlex.split(hit["install"])
    assert project.run("install", source=source, skill=skill)["skills"][0]["name"] == "a"


def test_a_search_without_a_configured_catalogue_is_a_usage_error() -> None:
    with pytest.raises(UsageProblem, match="no catalogue is configured") as caught:
        found("pdf")
    assert "catalogues = [" in str(caught.value.hint)


@cases("address")
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(Refused) as caught:
        found("pdf", address)
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("address", ["/no/such/file", "file:///no/such/file", "/etc", "~nobody-here/x", "https:///x"])
def test_an_unreadable_catalogue_is_a_failed_fetch(address: str) -> None:
    with pytest.raises(FetchFailed):
        found("pdf", address)


def test_a_catalogue_on_the_network_is_not_asked_offline() -> None:
    with pytest.raises(FetchFailed, match="is on the network"):
        found("pdf", "https://localhost:1/c.json", offline=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>",
        "[" * 100_000,
        "7",
        '{"skills": {}}',
        "[7]",
        '[{"name": "a"}]',
        '[{"name": "a", "repo": 7}]',
        '[{"name": "../a", "repo": "o/r"}]',
        '[{"name": "a", "repo": "o/r", "description": []}]',
        '[{"name": "a", "repo": "o/r", "tags": "x"}]',
        '[{"name": "a", "repo": "o/r", "subpath": "../../x"}]',
        '[{"name": "a", "repo": "o/r", "subpath": "--as"}]',
        '[{"name": "a", "repo": "ext::sh -c id"}]',
        '[{"name": "a", "repo": "/etc"}]',
        '[{"name": "a", "repo": "--upload-pack=x"}]',
    ],
)
def test_bad_data_is_a_failed_fetch_that_says_where(text: str) -> None:
    with pytest.raises(FetchFailed, match="'here'"):
        offers(text.encode(), "here")


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "big.json").open("wb") as file:
        file.truncate(SIZE_LIMIT + 1)
    with pytest.raises(FetchFailed, match="over"):
        found("pdf", tmp_path / "big.json")


def test_a_command_that_could_do_something_else_is_not_written() -> None:
    assert install_command("ext::sh -c id", "", "a") == ""
    assert install_command("o/r", "", "a b; id") == "navigator skill install o/r --skill 'a b; id'"


# The network


Serve = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Serve], str]]:
    """Starts a server on this machine that answers over TLS, with a certificate that is trusted; returns its URL."""
    pem = tmp_path / "tls.pem"
    pem.write_text(KEY_AND_CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    monkeypatch.setenv("no_proxy", "localhost")
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Serve) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        server = Quiet(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"https://localhost:{server.server_port}/c.json"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


class Quiet(ThreadingHTTPServer):
    """A server that reports no callers that hang up."""

    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


def send(handler: BaseHTTPRequestHandler, data: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(data)


@pytest.mark.requirement("LIF-16")
def test_an_index_is_read_over_https(serve: Any) -> None:
    url = serve(lambda handler: send(handler, json.dumps(ENTRIES).encode()))
    assert [one["name"] for one in found("pdf", url)] == ["pdf", "pdf-tools"]


def test_a_certificate_that_nobody_vouches_for_is_refused(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url = serve(lambda handler: send(handler, b"[]"))
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(FetchFailed, match=r"(?i)certificate"):
        found("pdf", url)


@pytest.mark.wide
def test_a_redirect_over_https_is_followed(serve: Any) -> None:
    there = serve(lambda handler: send(handler, json.dumps(ENTRIES).encode()))
    here = serve(lambda handler: send(handler, b"", 302, Location=there))
    assert len(found("pdf", here)) == 2


@pytest.mark.parametrize("there", ["http://localhost/c.json", "file:///etc/hostname", "ftp://localhost/c.json"])
def test_a_redirect_to_any_other_scheme_is_not_followed(serve: Any, there: str) -> None:
    url = serve(lambda handler: send(handler, b"", 302, Location=there))
    with pytest.raises(FetchFailed):
        found("pdf", url)


def test_redirects_come_to_an_end(serve: Any) -> None:
    url = serve(lambda handler: send(handler, b"", 302, Location="/again.json"))
    with pytest.raises(FetchFailed):
        found("pdf", url)


@pytest.mark.parametrize("status", [404, 500])
def test_a_refusal_of_the_server_is_a_failed_fetch(serve: Any, status: int) -> None:
    url = serve(lambda handler: send(handler, b"[]", status))
    with pytest.raises(FetchFailed):
        found("pdf", url)


def test_an_answer_without_end_is_cut(serve: Any) -> None:
    def pour(handler: BaseHTTPRequestHandler) -> None:
        send(handler, b"[")
        for _ in range(64):
            handler.wfile.write(b" " * 1024 * 1024)

    with pytest.raises(FetchFailed, match="over"):
        found("pdf", serve(pour))


def test_a_server_that_drips_is_left_in_time(serve: Any) -> None:
    over = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 O")
        while not over.wait(0.1):
            handler.wfile.write(b"K")

    began = time.monotonic()
    try:
        with pytest.raises(FetchFailed, match=r"in 0\.5 s"):
            found("pdf", serve(drip), seconds=0.5)
    finally:
        over.set()
    assert time.monotonic() - began < 15


def test_an_answer_that_breaks_off_is_a_failed_fetch(serve: Any) -> None:
    url = serve(lambda handler: send(handler, b"[", 200, **{"Content-Length": "100"}))
    with pytest.raises(FetchFailed):
        found("pdf", url)
