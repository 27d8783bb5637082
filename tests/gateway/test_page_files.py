"""The page's built files are public, have a policy that lets nothing foreign in, and are the only files served."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from gateway.served import LIMIT, Person, Served, serving
from navigator_kernel.gateway.page_files import CSP, page_files


@pytest.fixture(scope="module")
def anybody(served: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=served.url, timeout=LIMIT) as held:
        yield held


def test_every_file_is_sent_to_everybody_with_the_policy(anybody: httpx2.Client) -> None:
    for address, file in page_files().items():
        answer = anybody.get(address)
        assert (address, answer.status_code) == (address, 200) and answer.content == file.data
        assert answer.headers["content-security-policy"] == CSP
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_policy_allows_scripts_styles_and_requests_of_this_server_only() -> None:
    held = dict(part.split(" ", 1) for part in CSP.split("; "))
    assert held["default-src"] == "'none'"
    assert {held[name] for name in ("script-src", "style-src", "connect-src", "font-src")} == {"'self'"}
    assert held["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in CSP and "http" not in CSP and "*" not in CSP


def test_the_index_has_nothing_inline_and_names_files_that_exist() -> None:
    text = page_files()["/"].data.decode()
    assert "<style" not in text and not re.search(r"\son\w+=|style=", text)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))
    named = re.findall(r'(?:src|href)="\./([^"]+)"', text)
    assert named and all(f"/{name}" in page_files() for name in named)


def test_a_file_is_not_sent_again_where_the_browser_has_it(anybody: httpx2.Client) -> None:
    first = anybody.get("/")
    again = anybody.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    asset = next(name for name in page_files() if name.startswith("/assets/"))
    assert (first.headers["cache-control"], "immutable" in anybody.get(asset).headers["cache-control"]) == (
        "no-cache",
        True,
    )


def test_a_file_is_compressed_only_for_a_client_that_accepts_gzip(anybody: httpx2.Client) -> None:
    with anybody.stream("GET", "/", headers={"Accept-Encoding": "gzip"}) as answer:
        assert gzip.decompress(b"".join(answer.iter_raw())) == page_files()["/"].data
    assert "content-encoding" not in anybody.get("/", headers={"Accept-Encoding": "identity"}).headers


@pytest.mark.parametrize(
    "address",
    ["/index.html", "/assets/", "/assets/..%2f..%2fserver.py", "/assets/../page_files.py", "//etc/passwd", "/%2e%2e/x"],
)
def test_no_other_address_is_a_file(anybody: httpx2.Client, address: str) -> None:
    assert anybody.get(address).status_code == 401


def test_a_link_of_another_site_may_open_the_page_and_read_nothing(anybody: httpx2.Client) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert anybody.get("/", headers=link).status_code == 200
    assert anybody.get("/", headers={**link, "Sec-Fetch-Mode": "no-cors"}).status_code == 403
    assert anybody.get("/api/skills", headers=link).status_code == 403


_BROWSER = """#!/bin/sh
{ printf '%s\n' "$1"; stat -c %a "${1#file://}"; cat "${1#file://}"; } >SEEN.part
mv SEEN.part SEEN
"""


@pytest.mark.wide
def test_serve_open_gives_the_browser_a_file_that_only_the_person_reads(person: Person, tmp_path: Path) -> None:
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(_BROWSER.replace("SEEN", str(seen)))
    browser.chmod(0o755)
    mine = Person(person.here, {**person.env, "BROWSER": f"{browser} %s"})
    with serving(mine, "--open", roles=()) as held:
        name, mode, text = appears(seen).split("\n", 2)
        token = re.search(r"#token=(nav_[\w-]+)", text)
        assert token is not None and token[1] not in name and mode == "600"
        headers = {"Authorization": f"Bearer {token[1]}"}
        assert httpx2.get(f"{held.url}/api/skills", headers=headers, timeout=LIMIT).status_code == 200
    assert not Path(name.removeprefix("file://")).exists()
    assert token[1].split("_")[1] not in {one["id"] for one in person.json("serve", "--list-tokens")["tokens"]}


def appears(file: Path) -> str:
    """The text of the file, once it exists."""
    until = time.monotonic() + LIMIT
    while not file.exists():
        assert time.monotonic() < until, f"{file} did not appear"
        time.sleep(0.05)
    return file.read_text()
