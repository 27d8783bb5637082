"""The inbox shows pending approvals in full, and an answer counts once, wherever it is given."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from gateway.served import Person, Served
from gateway.web.asking import NOTES, accept_over_http, ask_to_edit
from gateway.web.conftest import LIMIT, Opener
from models.wire_server import HELLO, Said, WireServer
from specialist.turns import says

pytestmark = pytest.mark.ci


def card(page: Page, approval: str) -> Locator:
    return page.locator(f'[data-approval="{approval}"]')


def test_a_change_is_shown_as_a_diff_and_done_after_a_yes(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    approval = ask_to_edit(served, person, model, "diff")
    page = open_page("/inbox")
    held = card(page, approval)
    expect(held.get_by_label("The change of the file")).to_contain_text("-two\n+2")
    expect(held.get_by_role("definition")).to_contain_text(["edit", "song-writer", "notes.txt", "tool:edit#"])
    held.get_by_text("The whole order").click()
    expect(held.get_by_label("Order 1")).to_contain_text('target: "skill:song-writer"')
    held.get_by_role("button", name="Accept once").click()
    expect(held.get_by_role("status")).to_contain_text("You accepted it once.")
    held.get_by_role("link", name="Open the run").click()
    expect(page.locator("[data-event=ApprovalResolved]")).to_be_visible()
    expect(page.locator("[data-event=RunCompleted]")).to_be_visible(timeout=LIMIT)
    assert (person.here.root / "notes.txt").read_text() == NOTES.replace("two", "2")


def test_an_answer_given_elsewhere_is_reported(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    approval = ask_to_edit(served, person, model, "elsewhere")
    page = open_page("/inbox")
    held = card(page, approval)
    expect(held.get_by_role("button", name="Accept once")).to_be_visible()
    accept_over_http(served, approval)
    expect(held.get_by_role("status")).to_contain_text("answered elsewhere")
    expect(held.get_by_role("button", name="Accept once")).to_have_count(0)
    held.get_by_role("button", name="Remove from the list").click()
    expect(held).to_have_count(0)


def test_a_terminal_approval_appears_in_the_inbox_and_is_marked_once_answered_there(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    page = open_page("/inbox")
    page.get_by_role("heading", name="Inbox").wait_for()
    (person.here.root / "notes.txt").write_text(NOTES)
    model.requests.clear()
    edit = '{"file_path": "notes.txt", "old_string": "one", "new_string": "1"}'
    says(model, Said(calls=[("edit", edit)]), HELLO)
    assert person.json("ask", "--session", "terminal", "/song-writer change notes.txt")["exit_code"] == 9
    held = page.locator('[data-approval^="terminal:"]')
    expect(held.get_by_label("The change of the file")).to_contain_text("-one\n+1", timeout=LIMIT)
    person.json("ask", "--session", "terminal", "no")
    expect(held.get_by_role("status")).to_contain_text("answered elsewhere", timeout=LIMIT)
    assert (person.here.root / "notes.txt").read_text() == NOTES


def test_a_reason_to_decline_reaches_the_model(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    approval = ask_to_edit(served, person, model, "reason")
    page = open_page("/inbox")
    held = card(page, approval)
    held.get_by_role("button", name="Decline…").click()
    held.get_by_label(re.compile("Why not")).fill("write it to poem.txt")
    held.get_by_role("button", name="Decline", exact=True).click()
    expect(held.get_by_role("status")).to_contain_text("You declined it.")
    expect(held.get_by_role("link", name="Open the session")).to_have_attribute("href", "#/chat/reason")
    held.get_by_role("link", name="Open the run").click()
    expect(page.locator("[data-event=RunCompleted]")).to_be_visible(timeout=LIMIT)
    assert "write it to poem.txt" in str(model.requests[-1].body)
    assert (person.here.root / "notes.txt").read_text() == NOTES


def test_an_approval_is_answered_with_the_keyboard_alone(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    first, second = (ask_to_edit(served, person, model, session) for session in ("key1", "key2"))
    page = open_page("/inbox")
    expect(card(page, first)).to_be_visible()
    order = page.locator("[data-approval]").evaluate_all("all => all.map((one) => one.dataset.approval)")
    page.keyboard.press("j")
    expect(card(page, order[0])).to_be_focused()
    page.keyboard.press("j")
    expect(card(page, order[1])).to_be_focused()
    page.keyboard.press("k")
    expect(card(page, order[0])).to_be_focused()
    accept = card(page, order[0]).get_by_role("button", name="Accept once")
    for _ in range(8):
        page.keyboard.press("Tab")
        if accept.evaluate("one => one === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(card(page, order[0]).get_by_role("status")).to_contain_text("You accepted it once.")
    assert {first, second} <= set(order)
    card(page, order[1]).get_by_role("button", name="Cancel the run").click()
    expect(card(page, order[1]).get_by_role("status")).to_contain_text("You cancelled the run.")


def test_a_token_without_the_approve_role_gets_a_message_and_the_file_stays_unchanged(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    approval = ask_to_edit(served, person, model, "mine", role="chat")
    held = card(open_page("/inbox", role="chat"), approval)
    held.get_by_role("button", name="Accept once").click()
    expect(held.get_by_role("status")).to_contain_text("This token may not approve")
    assert (person.here.root / "notes.txt").read_text() == NOTES
    with served.client() as client:
        client.post(f"/api/approvals/{approval}", json={"answer": "no"})


def test_a_change_shows_control_characters_escaped_and_html_as_text(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    evil = "<img src=x onerror=alert(1)>\u202e\u001b[31mtxt\u200b"
    held = card(open_page("/inbox"), ask_to_edit(served, person, model, "evil", evil))
    expect(held.get_by_label("The change of the file")).to_contain_text(
        r"+<img src=x onerror=alert(1)>\u202e\x1b[31mtxt\u200b"
    )
    assert held.locator("img").count() == 0
    held.get_by_role("button", name="Cancel the run").click()
    expect(held.get_by_role("link", name="Open the run")).to_be_visible()


def test_a_long_change_comes_in_parts_with_every_line_in_its_colour(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    """30,000 lines over HTTP, in the list and in the event; no yes for the session is offered, as it would not hold."""
    new = "\n".join([f"{number:>10}" for number in range(30_000)] + ["++ b/other", " " * 5_000 + "the end"])
    approval = ask_to_edit(served, person, model, "long", new)
    with served.client() as client:
        waits = next(one for one in client.get("/api/approvals").json()["approvals"] if one["id"] == approval)
    assert waits["question"].count("\n+") > 30_000 and waits["facts"]["diff"] in waits["question"]
    held = card(open_page("/inbox"), approval)
    shown = held.get_by_label("The change of the file")
    while held.get_by_text("more lines of this change").is_visible() or not shown.is_visible():
        held.get_by_role("button", name="Show more").click()
    expect(shown).to_contain_text("the end")
    expect(shown.locator(".file")).to_have_text(["--- a/notes.txt", "+++ b/notes.txt"])
    expect(shown.get_by_text("+++ b/other")).to_have_class("added")
    expect(shown.get_by_text(re.compile("^\\+….*the end"))).to_have_class("added")
    expect(held.get_by_role("button", name="Accept for this session")).to_have_count(0)
    held.get_by_role("button", name="Cancel the run").click()
    expect(held.get_by_role("link", name="Open the run")).to_be_visible()


def test_an_approval_that_has_expired_cannot_be_given(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    approval = ask_to_edit(served, person, model, "late")
    page = open_page("/usage")
    page.clock.set_fixed_time(datetime.now(UTC) + timedelta(days=2))
    page.get_by_role("link", name="Inbox").click()
    expect(card(page, approval).get_by_role("status")).to_contain_text("This has expired.")
    expect(card(page, approval).get_by_role("button", name="Accept once")).to_have_count(0)


def test_a_token_that_may_only_read_sees_why_there_is_nothing(open_page: Opener) -> None:
    page = open_page("/inbox", role="read")
    expect(page.get_by_role("heading", name="This token may not see approvals")).to_be_visible()
    page.get_by_role("link", name="Runs").click()
    expect(page.get_by_role("alert")).to_contain_text("this needs a token with the role chat")


def test_the_inbox_is_chinese_and_says_when_it_is_empty(open_page: Opener, served: Served) -> None:
    with served.client() as client:
        for one in client.get("/api/approvals").json()["approvals"]:
            client.post(f"/api/approvals/{one['id']}", json={"answer": "cancel"})
    page = open_page("/inbox", language="zh")
    expect(page.get_by_role("heading", name="没有等待确认的操作")).to_be_visible()
    expect(page.get_by_role("link", name="前往对话")).to_be_visible()
