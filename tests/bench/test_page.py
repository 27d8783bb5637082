"""How soon the page of the gateway can be used, in a browser that has seen nothing of it."""

from __future__ import annotations

import json
import os
import shutil
import statistics

import pytest
from playwright.sync_api import sync_playwright

from gateway.conftest import model_server, person, served  # noqa: F401 - pytest finds fixtures by name
from gateway.served import Served
from gateway.web.conftest import ARGUMENTS

pytestmark = pytest.mark.bench

ROUNDS = 10
BLANK = "/healthz"  # the smallest answer of the same server


def test_seconds_until_the_page_takes_input(served: Served) -> None:  # noqa: F811 - the fixture of that name
    program = shutil.which("chromium")
    found: dict[str, list[float]] = {"page": [], "blank": []}
    with sync_playwright() as held, held.chromium.launch(executable_path=program, args=list(ARGUMENTS)) as browser:
        for _ in range(ROUNDS):
            for name, at in (("blank", BLANK), ("page", f"/#token={served.tokens['admin']}")):
                with browser.new_context() as context:
                    page = context.new_page()
                    page.goto(f"{served.url}{at}")
                    page.locator("textarea:visible, pre").first.wait_for()
                    found[name].append(page.evaluate("performance.now() / 1000"))
    shown = {name: round(statistics.median(times), 3) for name, times in found.items()}
    print(json.dumps({"seconds": shown, "load": os.getloadavg()[0]}))
    assert shown["page"] > 0
