"""Every page, in both languages and themes, is accessible and fits every width. PICTURES=write makes the pictures of
the documentation."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

from gateway.served import Served
from gateway.web.conftest import FoundByAxe, Opener
from gateway.web.node import run_node
from gateway.web.reading import wait_until_read
from gateway.web.sample import fill
from models.wire_server import WireServer

pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]

PAGES = ("chat/boats", "inbox", "skills", "install", "runs", "workflows", "planner", "usage", "health")
PICTURES = Path(__file__).parents[3] / "docs" / "images" / "page"
LOOKS = [(language, theme) for language in ("en", "zh") for theme in ("light", "dark")]
WIDTHS = (360, 768, 1280, 2560)


@pytest.fixture(scope="module")
def used(served: Served, model_server: WireServer) -> Served:
    """The server of a project in use."""
    model_server.requests.clear()
    fill(served, model_server)
    return served


def settled(page: Page, at: str) -> None:
    """Opens the page `at`; waits until it has read what it shows."""
    page.evaluate("(at) => { window.location.hash = at }", f"/{at}")
    wait_until_read(page, at)


@pytest.mark.parametrize(("language", "theme"), LOOKS)
def test_axe_finds_nothing_on_any_page(
    used: Served, open_page: Opener, found_by_axe: FoundByAxe, language: str, theme: str
) -> None:
    page = open_page(language=language, color_scheme=theme)
    found: dict[str, list[str]] = {}
    for at in PAGES:
        settled(page, at)
        found[at] = found_by_axe(page)
        if os.environ.get("PICTURES") == "write":
            PICTURES.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=PICTURES / f"{at.partition('/')[0]}-{language}-{theme}.png")
    assert found == {at: [] for at in PAGES}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_page_scrolls_sideways(used: Served, open_page: Opener, language: str) -> None:
    page = open_page(language=language)
    wide: list[tuple[str, int]] = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        for at in PAGES:
            settled(page, at)
            sizes = (
                "[document.documentElement, document.querySelector('main')].map((e) => e.scrollWidth - e.clientWidth)"
            )
            if max(page.evaluate(sizes)) > 1:
                wide.append((at, width))
    assert wide == []


def scores(used: Served, web_tools: Path, categories: str) -> dict[str, float]:
    """The Lighthouse scores of the page by category, from 0 to 1."""
    flags = "--headless=new --no-sandbox --disable-quic --no-first-run --disable-background-networking"
    report = web_tools / "report.json"
    run_node(
        web_tools / "node_modules" / "lighthouse" / "cli" / "index.js",
        f"{used.url}/#token={used.tokens['admin']}",
        f"--chrome-flags={flags} --disable-component-update --disable-sync",
        f"--only-categories={categories}",
        "--preset=desktop",
        "--output=json",
        f"--output-path={report}",
        "--quiet",
        folder=web_tools,
        env={"CHROME_PATH": "/usr/bin/chromium"},
    )
    held = json.loads(report.read_text())
    return {name: one["score"] for name, one in held["categories"].items()}


def test_lighthouse_finds_a_fast_page_that_everybody_can_use(used: Served, web_tools: Path) -> None:
    first = scores(used, web_tools, "performance,accessibility")
    assert first["accessibility"] == 1, first
    tries = [first["performance"]]
    while max(tries) < 0.95 and len(tries) < 3:  # another program may have used the machine
        tries.append(scores(used, web_tools, "performance")["performance"])
    assert max(tries) >= 0.95, tries


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pictures_of_every_page_are_in_the_documentation(language: str) -> None:
    names = {f"{at.partition('/')[0]}-{language}-{theme}.png" for at in PAGES for theme in ("light", "dark")}
    assert names <= {path.name for path in PICTURES.iterdir()}
