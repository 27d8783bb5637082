"""The page is opened with a token, and stores it nowhere that outlives the tab."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from gateway.served import Served
from gateway.web.conftest import Opener, Watched

pytestmark = pytest.mark.ci


def test_a_token_in_the_fragment_signs_in_and_leaves_the_address_at_once(open_page: Opener, served: Served) -> None:
    page = open_page()
    expect(page).to_have_url(f"{served.url}/#/chat")
    assert served.tokens["admin"] not in page.evaluate("JSON.stringify([document.cookie, localStorage, history.state])")
    assert page.evaluate("sessionStorage.getItem('navigator.token')") == served.tokens["admin"]


def test_without_a_token_the_page_asks_for_one_and_says_which_is_wrong(
    browser: Browser, served: Served, watched: Watched
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        watched.watch(page)
        page.goto(served.url)
        page.get_by_label("Token").fill("nav_t0000000_wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("does not accept this token")
        page.get_by_label("Token").fill(served.tokens["admin"])
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("navigation")).to_be_visible()


def test_signing_out_forgets_the_token(open_page: Opener) -> None:
    page = open_page()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('navigator.token')") is None
