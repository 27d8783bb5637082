"""A page whose server was killed continues when the server is back: nothing is lost, and nothing appears twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from gateway.served import Person, Served, serving
from models.wire_server import Said, WireServer
from ports import free_port
from specialist.turns import says

pytestmark = [pytest.mark.ci, pytest.mark.timeout(300)]

PATIENCE = 25_000  # milliseconds


@contextmanager
def serving_somewhere(person: Person) -> Iterator[Served]:
    """Runs a server at a port that a second server can be given later."""
    with ExitStack() as held:
        for _ in range(5):
            with suppress(KeyError, ValueError):  # the server reported no address: another program had taken the port
                served = held.enter_context(serving(person, "--port", str(free_port())))
                break
        else:
            pytest.fail("it cannot listen at any of five ports")
        yield served


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(locale="en-US") as context:
        context.set_default_timeout(PATIENCE)
        yield context.new_page()


def enter(page: Page, served: Served, session: str) -> None:
    page.goto(f"{served.url}/#token={served.tokens['admin']}")
    page.locator("main > *").first.wait_for()  # the router accepts no other address before its first page
    page.goto(f"{served.url}/#/chat/{session}")
    live(page, "Connected")


def live(page: Page, state: str) -> None:
    expect(page.locator(".live")).to_contain_text(state, timeout=PATIENCE)


def test_messages_from_before_and_after_a_server_restart_appear_exactly_once(
    person: Person, model: WireServer, page: Page
) -> None:
    says(model, Said(text="first answer"))
    with serving_somewhere(person) as served:
        served.chat("/song-writer one", "alone")
        enter(page, served, "alone")
        expect(page.get_by_text("first answer")).to_have_count(1)
        served.process.kill()
        live(page, "Connection lost")
    model.requests.clear()
    says(model, Said(text="second answer"))
    with serving(person, "--port", str(urlsplit(served.url).port)) as served:
        served.chat("/song-writer two", "alone")
        live(page, "Connected")
        for text in ("first answer", "second answer", "/song-writer one", "/song-writer two"):
            expect(page.get_by_role("article").filter(has_text=text)).to_have_count(1, timeout=PATIENCE)
        expect(page.get_by_role("article")).to_have_count(2)
