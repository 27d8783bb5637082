"""The page of skills of a project with 10,000 of them."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import expect

from gateway.served import Person
from gateway.web.conftest import Opener
from skill_repositories import skill_text

pytestmark = pytest.mark.ci

MANY = 10_000
SLOW = 90_000  # milliseconds; the machine may be busy, and the first search builds the index


@pytest.fixture(scope="module")
def many(person: Person) -> None:
    for number in range(MANY):
        folder = person.here.root / ".claude" / "skills" / f"many-{number:05}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            skill_text(folder.name, f"Handles subject {number}. Use for subject {number}.")
        )


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("many")
def test_ten_thousand_skills_are_scrolled_filtered_and_searched(open_page: Opener) -> None:
    began = time.monotonic()
    page = open_page("/skills")
    listed = page.get_by_role("list", name="Skills")
    listed.get_by_role("link").first.wait_for(timeout=SLOW)
    first = time.monotonic() - began
    expect(page.get_by_role("main").get_by_role("status")).to_have_text(re.compile(r"^10,0\d\d skills$"), timeout=SLOW)
    whole = time.monotonic() - began
    assert listed.get_by_role("link").count() < 60
    listed.evaluate("(box) => box.scrollTo(0, box.scrollHeight)")
    expect(listed).to_contain_text("word-count", timeout=SLOW)
    listed.evaluate("(box) => box.scrollTo(0, box.scrollHeight / 2)")
    expect(listed).to_contain_text("many-04", timeout=SLOW)
    began = time.monotonic()
    page.get_by_role("button", name="Shipped").click()
    expect(listed).not_to_contain_text("many-0", timeout=SLOW)
    filtered = time.monotonic() - began
    page.get_by_role("button", name="All").click()
    began = time.monotonic()
    page.get_by_label("Search by what the skill should do").fill("many-07777")
    expect(listed.get_by_role("link").first).to_contain_text("many-07777", timeout=SLOW)
    found = time.monotonic() - began
    print(f"first rows {first:.2f} s, all {whole:.2f} s, filter {filtered:.2f} s, search {found:.2f} s")
