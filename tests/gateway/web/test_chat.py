"""A conversation in the page: streamed answers, tool calls, approvals, questions, and ends."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from gateway.served import Person, Served, serving
from gateway.web.conftest import LIMIT, FoundByAxe, Opener
from gateway.web.talking import give_skills, last, send
from models.wire_server import HELLO, Said, WireServer
from ports import free_port
from specialist.turns import says

pytestmark = pytest.mark.ci
expect.set_options(timeout=LIMIT)
STILL = """async (log) => {
    for (let at = NaN; at !== log.scrollTop;) {
        at = log.scrollTop
        for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame)
    }
    return log.scrollTop
}"""  # the scroll position once scrolling has stopped
CHANGE = {"file_path": "notes.txt", "old_string": "two", "new_string": "2"}


@pytest.fixture(scope="module", autouse=True)
def writer(person: Person) -> Person:
    """The person, whose skill may change files."""
    give_skills(person)
    return person


@pytest.fixture
def held(model: WireServer) -> Iterator[threading.Event]:
    """An event; the model answers once it is set."""
    free = threading.Event()

    def slow(_messages: Sequence[Any], _number: int) -> Said:
        free.wait(20)
        return HELLO

    model.scripts["worker"] = slow
    yield free
    free.set()


def test_an_answer_is_streamed_as_markdown_and_stays_after_a_reload(open_page: Opener, model: WireServer) -> None:
    says(model, Said(text="All is **well**.\n\n- one\n- two\n"))
    page = open_page()
    send(page, "/song-writer the moon")
    expect(last(page).locator("strong", has_text="well")).to_be_visible()
    expect(last(page).get_by_role("listitem")).to_have_text(["one", "two"])
    expect(last(page)).to_contain_text("Skill song-writer")
    expect(last(page).get_by_role("button", name="Why this skill?")).to_be_visible()
    expect(page).to_have_url(re.compile(r"#/chat/page-\d{14}-\w+$"))
    page.reload()
    expect(last(page).locator("strong", has_text="well")).to_be_visible()
    expect(page.get_by_role("complementary").get_by_role("link", name="/song-writer the moon").first).to_be_visible()


def test_the_skill_that_loads_is_named_in_the_seeds_words(open_page: Opener, held: threading.Event) -> None:
    page = open_page(language="zh")
    page.get_by_label("消息", exact=True).fill("/song-writer 月亮")
    page.keyboard.press("Enter")
    expect(last(page)).to_contain_text("正在加载 song-writer 模块…")
    held.set()
    expect(last(page)).to_contain_text(HELLO.text)
    expect(last(page)).to_contain_text("技能 song-writer")


def test_a_change_is_shown_as_a_diff_and_made_once_accepted(
    open_page: Opener, writer: Person, model: WireServer
) -> None:
    notes = writer.here.root / "notes.txt"
    notes.write_text("one\ntwo\nthree\n")
    says(model, Said(calls=[("edit", json.dumps(CHANGE))]), Said(text="Done."))
    page = open_page()
    send(page, "/song-writer change @notes.txt")
    card = page.get_by_role("region", name="Your approval is needed")
    expect(card.locator(".removed", has_text="-two")).to_be_visible()
    expect(card.locator(".added", has_text="+2")).to_be_visible()
    assert "two" in notes.read_text()
    card.get_by_role("button", name="Accept once").click()
    expect(last(page)).to_contain_text("Done.")
    assert notes.read_text() == "one\n2\nthree\n"
    expect(card).to_have_count(0)
    tool = last(page).locator("details.tool")
    expect(tool).to_contain_text("edit")
    tool.locator("summary").click()
    expect(tool.locator("pre").first).to_contain_text('"old_string": "two"')


def test_a_refusal_gives_the_model_a_reason(open_page: Opener, writer: Person, model: WireServer) -> None:
    (writer.here.root / "notes.txt").write_text("one\ntwo\nthree\n")
    says(model, Said(calls=[("edit", json.dumps(CHANGE))]), Said(text="As you wish."))
    page = open_page()
    send(page, "/song-writer change @notes.txt")
    page.get_by_role("button", name="Refuse…").click()
    page.get_by_label("Reason").fill("keep the words")
    page.get_by_role("button", name="Refuse", exact=True).click()
    expect(last(page)).to_contain_text("As you wish.")
    assert "keep the words" in str(model.requests[-1].body)


def test_an_approval_that_was_answered_elsewhere_says_so(open_page: Opener, writer: Person, model: WireServer) -> None:
    (writer.here.root / "notes.txt").write_text("one\ntwo\nthree\n")
    says(model, Said(calls=[("edit", json.dumps(CHANGE))]), Said(text="Done."))
    first = open_page()
    send(first, "/song-writer change @notes.txt")
    expect(first.get_by_role("button", name="Accept once")).to_be_visible()
    second = open_page(at=first.url.partition("#")[2])
    second.get_by_role("button", name="End the turn").click()
    expect(first.get_by_role("button", name="Accept once")).to_have_count(0)
    expect(first.get_by_role("article").first).to_contain_text("Refused")


def test_a_question_is_a_form_and_its_answer_the_next_message(open_page: Opener, model: WireServer) -> None:
    page = open_page()
    send(page, "/word-count")
    form = page.get_by_role("region", name="Your answer is needed")
    form.get_by_label("text").fill("to be or not")
    form.get_by_role("button", name="Send the answer").click()
    expect(last(page)).to_contain_text("4 words")
    expect(form).to_have_count(0)


def test_the_kernels_own_reply_shows_its_lines(open_page: Opener, model: WireServer) -> None:
    page = open_page()
    page.get_by_role("button", name="What can you do?").click()
    expect(last(page).get_by_role("listitem")).to_have_count(3)


def test_a_turn_is_stopped_in_the_middle(open_page: Opener, held: threading.Event) -> None:
    page = open_page()
    send(page, "/song-writer the moon")
    page.get_by_role("button", name="Stop").click()
    expect(last(page)).to_contain_text("Stopped.")
    held.set()
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_a_message_while_a_turn_is_under_way_stays_in_the_box(open_page: Opener, held: threading.Event) -> None:
    page = open_page()
    send(page, "/song-writer the moon")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    send(page, "and the sun")
    expect(page.get_by_role("alert")).to_contain_text("A turn is under way")
    expect(page.get_by_label("Message", exact=True)).to_have_value("and the sun")
    held.set()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_escape_stops_the_turn(open_page: Opener, held: threading.Event) -> None:
    page = open_page()
    send(page, "/song-writer the moon")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.keyboard.press("Escape")
    expect(last(page)).to_contain_text("Stopped.")


def test_two_windows_of_a_session_show_the_same(open_page: Opener, served: Served, held: threading.Event) -> None:
    first = open_page(at="/chat/both")
    second = open_page(at="/chat/both")
    send(first, "/song-writer the moon")
    expect(second.get_by_role("article")).to_have_count(1)
    expect(second.get_by_role("button", name="Stop")).to_be_visible()
    held.set()
    for page in (first, second):
        expect(page.get_by_role("article")).to_have_count(1)
        expect(last(page)).to_contain_text(HELLO.text)
    send(second, "/song-writer the sun")
    for page in (first, second):
        expect(page.get_by_role("article")).to_have_count(2)
        expect(last(page)).to_contain_text("the sun")


def test_enter_does_not_send_while_an_input_method_composes(open_page: Opener, model: WireServer) -> None:
    page = open_page(language="zh")
    box = page.get_by_label("消息", exact=True)
    box.focus()
    session = page.context.new_cdp_session(page)
    session.send("Input.imeSetComposition", {"text": "ni hao", "selectionStart": 6, "selectionEnd": 6})
    box.evaluate(
        "(box) => box.dispatchEvent(new KeyboardEvent('keydown', "
        "{key: 'Enter', isComposing: true, bubbles: true, cancelable: true}))"
    )
    expect(page.get_by_role("article")).to_have_count(0)
    session.send("Input.insertText", {"text": "你好"})
    expect(box).to_have_value("你好")
    says(model, Said(text="你好！"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("article")).to_have_count(1)
    expect(last(page)).to_contain_text("你好！")


def test_a_draft_stays_with_its_session_and_the_last_message_comes_back(open_page: Opener, model: WireServer) -> None:
    page = open_page(at="/chat/draft-a")
    send(page, "/song-writer the moon")
    expect(last(page)).to_contain_text(HELLO.text)
    box = page.get_by_label("Message", exact=True)
    box.fill("half a thought")
    page.get_by_role("button", name="New conversation").click()
    expect(box).to_have_value("")
    page.go_back()
    expect(box).to_have_value("half a thought")
    box.fill("")
    box.press("ArrowUp")
    expect(box).to_have_value("/song-writer the moon")


def test_the_view_stays_where_the_person_reads_while_text_comes(open_page: Opener, model: WireServer) -> None:
    says(model, Said(text="A paragraph of some words.\n\n" * 60))
    page = open_page(at="/chat/long")
    send(page, "/song-writer the moon")
    log = page.get_by_role("log")
    expect(last(page).get_by_role("button", name="Why this skill?")).to_be_in_viewport()
    log.hover()
    page.mouse.wheel(0, -600)
    expect(page.get_by_role("button", name="To the newest message")).to_be_visible()
    before = log.evaluate(STILL)
    page.get_by_label("Message", exact=True).fill("x")
    assert log.evaluate(STILL) == before
    page.get_by_role("button", name="To the newest message").click()
    expect(last(page).get_by_role("button", name="Why this skill?")).to_be_in_viewport()


def test_a_session_is_deleted_after_a_question(open_page: Opener, model: WireServer) -> None:
    page = open_page(at="/chat/to-delete")
    send(page, "/song-writer the last one")
    expect(last(page)).to_contain_text(HELLO.text)
    entry = page.get_by_role("button", name="Delete the conversation /song-writer the last one")
    entry.focus()
    entry.click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(entry).to_have_count(0)
    expect(page).to_have_url(re.compile(r"#/chat$"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_axe_finds_nothing_in_a_conversation(
    open_page: Opener, found_by_axe: FoundByAxe, writer: Person, model: WireServer, scheme: str, language: str
) -> None:
    (writer.here.root / "notes.txt").write_text("one\ntwo\nthree\n")
    says(model, Said(text="I look."), Said(calls=[("edit", json.dumps(CHANGE))]), Said(text="Done."))
    page = open_page(at=f"/chat/axe-{scheme}-{language}", language=language, color_scheme=scheme)
    box = page.get_by_role("textbox", name=re.compile("^(Message|消息)$"))
    box.fill("/song-writer hi")
    box.press("Enter")
    expect(last(page)).to_contain_text("I look.")
    expect(page.get_by_role("button", name=re.compile("^(Send|发送)$"))).to_be_visible()
    box.fill("/song-writer change @notes.txt")
    box.press("Enter")
    expect(page.get_by_role("button", name=re.compile("^(Accept once|同意这一次)$"))).to_be_visible()
    page.locator("details.tool").last.locator("summary").click()
    assert found_by_axe(page) == []


def test_accepting_a_change_without_the_approve_role_names_that_role_and_keeps_the_button(
    open_page: Opener, model: WireServer
) -> None:
    page = open_page(role="chat")
    says(model, Said(calls=[("edit", json.dumps(CHANGE))]), Said(text="Done."))
    send(page, "/song-writer change @notes.txt")
    page.get_by_role("button", name="Accept once").click()
    expect(page.get_by_role("status").filter(has_text="role approve")).to_be_visible()
    expect(page.get_by_role("button", name="Accept once")).to_be_visible()


def test_a_read_only_token_gets_an_alert_that_names_the_chat_role(open_page: Opener) -> None:
    page = open_page(role="read")
    expect(page.get_by_role("alert").first).to_contain_text("role chat")


def test_a_killed_server_leaves_nothing_lost_or_doubled(
    browser: Browser, person: Person, model: WireServer, held: threading.Event
) -> None:
    port = str(free_port())
    with browser.new_context() as context:
        page = context.new_page()
        with serving(person, "--port", port) as first:
            page.goto(f"{first.url}/#token={first.tokens['admin']}")
            send(page, "/song-writer the moon")
            expect(last(page)).to_contain_text("Loading song-writer…")
            first.process.kill()
            first.process.wait()
        held.set()
        with serving(person, "--port", port):
            expect(last(page)).to_contain_text("This turn was not finished")
            expect(page.get_by_text("Loading song-writer…")).to_have_count(0)
            expect(page.get_by_text("Connected", exact=True)).to_be_visible()
            send(page, "/song-writer the sun")
            expect(last(page)).to_contain_text(HELLO.text)
            expect(page.get_by_role("article")).to_have_count(2)
