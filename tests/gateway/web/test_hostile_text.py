"""Foreign text is shown as text: it creates no element, asks no host for anything, and runs nothing."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.sync_api import Page

from gateway.served import Served
from gateway.web.conftest import Opener
from gateway.web.hostile_texts import TEXTS
from models.wire_server import Said, WireServer
from specialist.turns import says

pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]

MADE = """() => [...document.querySelectorAll('main, [role=dialog]')].flatMap((place) => [...place.querySelectorAll(
  'script, img, iframe, object, embed, link, style, meta, base, video, audio, math, template, noscript, marquee,'
  + ' form[action], svg:not(.icon), [onerror], [onload], [onclick], [onfocus], [ontoggle], [onstart],'
  + ' a[href^="javascript" i], a[href^="data" i], a[href*="evil.example"]')]).map((one) => one.outerHTML.slice(0, 200))"""
HIDDEN = r"""() => /[\u0000-\u0008\u000b\u001b\u007f-\u009f\u200b\u202a-\u202e\u2066-\u2069\ufeff]/u
  .test(document.querySelector('main').innerText)"""


def made_of(page: Page, marker: str) -> list[str]:
    """The elements and effects of the text that holds `marker`."""
    page.get_by_text(marker).first.wait_for()
    found = list(page.evaluate(MADE))
    if page.evaluate("window.hit"):
        found.append("it ran")
    if page.evaluate(HIDDEN):
        found.append("hidden characters are left")
    return found


def test_words_of_a_person_and_of_a_model_stay_text(served: Served, model: WireServer, open_page: Opener) -> None:
    found: dict[str, list[str]] = {}
    page = open_page()
    for at, text in enumerate(TEXTS):
        model.requests.clear()
        says(model, Said(text=f"answer-{at}.\n\n{text}"))
        said = text[:2_000].replace("\u0000", "")
        served.chat(f"/song-writer say-{at} {said}", f"hostile-{at}")
        page.evaluate("(at) => { window.location.hash = at }", f"/chat/hostile-{at}")
        if made := [*made_of(page, f"say-{at} "), *made_of(page, f"answer-{at}.")]:
            found[text[:80]] = made
    assert found == {}


def test_titles_and_notes_of_the_planner_stay_text(served: Served, open_page: Opener) -> None:
    found: dict[str, list[str]] = {}
    page = open_page("/planner")
    with served.client() as client:
        for at, text in enumerate(TEXTS):
            title = (
                "".join(char for char in text[:150] if char.isprintable() or char in "\u202e\u2066") + f" title-{at}."
            )
            answer = client.post("/api/tasks", json={"title": title})
            if answer.status_code == 201:
                page.reload()
                if made := made_of(page, f"title-{at}."):
                    found[text[:80]] = made
                client.delete(f"/api/tasks/{answer.json()['id']}")
    assert found == {}


def test_an_address_with_a_hostile_name_shows_nothing_of_it_as_markup(served: Served, open_page: Opener) -> None:
    page = open_page()
    for text in TEXTS[:40]:
        page.evaluate("(at) => { window.location.hash = at }", f"/chat/{quote(text, safe='')}")
        page.wait_for_timeout(50)
    assert page.evaluate(MADE) == [] and not page.evaluate("window.hit")


@pytest.mark.parametrize("address", ["https://evil.example/x?y=1", "https://аpple.com/"])
def test_a_link_opens_only_after_its_address_was_shown(
    served: Served, model: WireServer, open_page: Opener, address: str
) -> None:
    model.requests.clear()
    says(model, Said(text=f"[my bank]({address})"))
    served.chat("/song-writer a link", f"link-{len(address)}")
    page = open_page(f"/chat/link-{len(address)}")
    page.get_by_role("link", name="my bank").click()
    shown = page.get_by_role("dialog").locator("pre").inner_text()
    assert shown == {"https://аpple.com/": "https://xn--pple-43d.com/"}.get(address, address)
    page.get_by_role("button", name="Cancel").click()
    assert len(page.context.pages) == 1
