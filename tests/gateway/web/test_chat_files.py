"""Files, completion, long and wide answers in a conversation."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from gateway.served import Person, Served
from gateway.web.conftest import LIMIT, Opener
from gateway.web.talking import give_skills, last, send
from models.wire_server import HELLO, Said, WireServer
from specialist.turns import says

pytestmark = pytest.mark.ci
expect.set_options(timeout=LIMIT)


@pytest.fixture(scope="module", autouse=True)
def writer(person: Person) -> Person:
    """The person, whose skill may change files."""
    give_skills(person)
    return person


def test_a_file_that_came_out_is_opened_and_downloaded(open_page: Opener, model: WireServer) -> None:
    says(
        model, Said(calls=[("write", json.dumps({"file_path": "song.md", "content": "# La la\n"}))]), Said(text="Done.")
    )
    page = open_page()
    send(page, "/song-writer a song")
    page.get_by_role("button", name="Open song.md").click()
    expect(page.get_by_role("dialog")).to_contain_text("# La la")
    with page.expect_download() as found:
        page.get_by_role("dialog").get_by_role("button", name="Download").click()
    assert found.value.suggested_filename == "song.md"
    assert found.value.path().read_text() == "# La la\n"


def test_skills_and_files_are_completed_from_the_keyboard(open_page: Opener, model: WireServer) -> None:
    page = open_page()
    box = page.get_by_label("Message", exact=True)
    box.press_sequentially("/song")
    expect(page.get_by_role("option", name="song-writer")).to_have_attribute("aria-selected", "true")
    box.press("Enter")
    expect(box).to_have_value("/song-writer ")
    box.press_sequentially("about @no")
    expect(page.get_by_role("option", name="notes.txt")).to_be_visible()
    box.press("Escape")
    expect(page.get_by_role("listbox")).to_have_count(0)
    box.press_sequentially("t")
    expect(page.get_by_role("option", name="notes.txt")).to_be_visible()
    box.press("Tab")
    expect(box).to_have_value("/song-writer about @notes.txt ")


def test_a_tools_toast_is_shown_in_its_conversation(open_page: Opener, model: WireServer) -> None:
    says(model, Said(calls=[("task_create", '{"title": "Buy milk"}')]), Said(text="Done."))
    page = open_page()
    send(page, "/task_manager create it")
    expect(page.get_by_role("status").filter(has_text="task_create")).to_be_visible()


def test_an_attached_file_is_named_in_the_message_and_read(open_page: Opener, model: WireServer) -> None:
    page = open_page()
    page.locator("input[type=file]").set_input_files(
        {"name": "my song.txt", "mimeType": "text/plain", "buffer": b"row row row your boat"}
    )
    box = page.get_by_label("Message", exact=True)
    expect(box).to_have_value(re.compile(r"^@mybox/workspace/attached-\w+/my-song\.txt $"))
    box.press_sequentially("what is it")
    box.press("Enter")
    expect(last(page)).to_contain_text(HELLO.text)
    assert "row row row your boat" in str(model.requests[-1].body)


@pytest.mark.timeout(300)
def test_an_answer_of_two_megabytes_is_shown(open_page: Opener, served: Served, model: WireServer) -> None:
    paragraph = "Some words of a long answer, which go on for a while. " * 20
    text = "\n\n".join(f"{number} {paragraph}" for number in range(1_900))
    assert len(text) > 2_000_000
    says(model, Said(text=text))
    page = open_page(at="/chat/large")
    send(page, "/song-writer everything")
    expect(last(page).get_by_role("button", name="Copy the answer")).to_be_visible(timeout=200_000)
    expect(page.get_by_text(f"1899 {paragraph[:40]}")).to_be_visible()
    took = []
    for number in range(5):
        began = page.evaluate("performance.now()")
        page.get_by_label("Message", exact=True).fill(f"still quick {number}")
        took.append(page.evaluate("performance.now()") - began)
    assert min(took) < 1_000


def test_nothing_is_wider_than_a_narrow_screen(open_page: Opener, model: WireServer) -> None:
    says(model, Said(text=f"{'x' * 500}\n\n| a | b | c |\n|---|---|---|\n| {'y' * 90} | 2 | 3 |\n"))
    page = open_page(at="/chat/narrow")
    page.set_viewport_size({"width": 360, "height": 740})
    send(page, "/song-writer hi")
    expect(last(page).get_by_role("table")).to_be_visible()
    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    assert page.get_by_role("log").evaluate("(log) => log.scrollWidth - log.clientWidth") == 0
    page.get_by_role("button", name="Show conversations").click()
    expect(page.get_by_role("complementary").get_by_role("link", name="/song-writer hi").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary")).to_be_hidden()
