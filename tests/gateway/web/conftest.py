"""Starts real Chromium, and records what a page asks the browser to do."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

from gateway.served import Served
from gateway.web.node import copy_sources

LIMIT = 20_000  # milliseconds
ARGUMENTS = (
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-sandbox",  # the tests may run as root
)
_REPORT = "document.addEventListener('securitypolicyviolation', (e) => console.error('CSP: ' + e.violatedDirective))"


@dataclass
class Watched:
    """Requests to other hosts, and errors of the browser, while a test ran."""

    host: str
    foreign: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("request", self._asked)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in {"data", "blob"} and parts.netloc != self.host:
            self.foreign.append(request.url)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error" and "the server responded with a status of" not in message.text:
            self.errors.append(message.text)


@pytest.fixture(scope="session")
def web_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the page's sources, with the programs that check and build them."""
    return copy_sources(tmp_path_factory.mktemp("page") / "web")


FoundByAxe = Callable[[Page], list[str]]


@pytest.fixture(scope="session")
def found_by_axe(web_tools: Path) -> FoundByAxe:
    """The axe-core rules that a page breaks, with their elements. The debugger injects the program: the policy of the
    page allows no other script."""
    program = (web_tools / "node_modules" / "axe-core" / "axe.min.js").read_text()

    def found(page: Page) -> list[str]:
        page.evaluate(program)
        violations = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        return [f"{one['id']}: {[node['html'] for node in one['nodes']]}" for one in violations]

    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser that stops with its module: Playwright's event loop would keep other files from running their own."""
    program = shutil.which("chromium")
    assert program, "install the package chromium"
    expect.set_options(timeout=LIMIT)  # the machine may be busy
    with sync_playwright() as held:
        browser = held.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield browser
        browser.close()


Opener = Callable[..., Page]


@pytest.fixture
def watched(served: Served) -> Iterator[Watched]:
    """Fails a test if the page asks another host for anything, or makes the browser report an error."""
    held = Watched(urlsplit(served.url).netloc)
    yield held
    assert held.foreign == []
    assert held.errors == []


@pytest.fixture
def open_page(browser: Browser, served: Served, watched: Watched) -> Iterator[Opener]:
    """Opens the page, signed in with the token of a role; `at` is the address after `#`."""
    contexts: list[BrowserContext] = []

    def opened(at: str = "/chat", role: str = "admin", language: str = "en", **options: Any) -> Page:
        given = {"locale": "zh-CN" if language == "zh" else "en-US", "viewport": {"width": 1280, "height": 800}}
        context = browser.new_context(**{**given, **options})
        contexts.append(context)
        context.set_default_timeout(LIMIT)
        context.add_init_script(_REPORT)
        page = context.new_page()
        watched.watch(page)
        page.goto(f"{served.url}/#token={served.tokens[role]}")
        page.get_by_role("navigation").wait_for()
        page.locator("main > *").first.wait_for()  # the router accepts no other address before its first page
        if at != "/chat":
            page.goto(f"{served.url}/#{at}")
        return page

    yield opened
    for context in contexts:
        context.close()
