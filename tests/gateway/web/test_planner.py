"""The planner's page in Chromium: live updates, no write over an unseen state, the keyboard, both languages."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from cli.support import SOURCE
from gateway.served import Person, Served, serving
from gateway.web.conftest import Opener, Watched
from models.wire_server import Said, WireServer
from skill_repositories import skill_text

pytestmark = [pytest.mark.ci, pytest.mark.requirement("TOL-13")]

ASKED = "创建一个明天下午3点的会议准备任务"
ZONE = timezone(timedelta(hours=8))
TOMORROW = (datetime.now(ZONE) + timedelta(days=1)).replace(hour=15, minute=0, second=0, microsecond=0)
CREATE = Said(calls=[("task_create", json.dumps({"title": "会议准备", "start_time": TOMORROW.isoformat()}))])
DONE = Said(text="已为您创建任务「会议准备」，安排在明天下午3点。")
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "**bold** [x](javascript:alert(1))",
    "a\u202egnp.exe",
)


def says(model: WireServer, skill: str, *script: Said) -> None:
    """Makes the model answer the kernel's router with `skill` and the specialist with the script."""

    def answer(messages: Sequence[Any], _number: int) -> Said:
        if "router" in str(messages[0]["content"]) or "路由" in str(messages[0]["content"]):
            return Said(text=json.dumps({"skills": [skill], "direct": False}))
        last = max((at for at, one in enumerate(messages) if one["role"] == "user"), default=0)
        answered = sum(bool(one["role"] == "assistant") for one in messages[last:])
        return script[min(answered, len(script) - 1)]

    model.scripts["worker"] = answer


def post(served: Served, path: str, **body: Any) -> dict[str, Any]:
    with served.client() as client:
        answer = client.post(path, json=body)
        assert answer.status_code == 201, answer.text
        held: dict[str, Any] = answer.json()
        return held


def task_of(served: Served, number: int) -> dict[str, Any]:
    with served.client() as client:
        held: dict[str, Any] = client.get(f"/api/tasks/{number}").json()
        return held


def row(page: Page, title: str) -> Locator:
    return page.get_by_role("listitem").filter(has=page.get_by_text(title, exact=True))


def opened(page: Page, title: str) -> Locator:
    """Opens the dialog of a task; returns it once the task has been read."""
    page.get_by_role("button", name=title).and_(page.locator("[data-row]")).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Title")).to_have_value(title)
    return dialog


# 001 section 7: from the message to the refreshed list of tasks
@pytest.mark.requirement("EVT-1", "JIT-13", "TOL-12")
def test_a_message_in_the_chat_puts_its_task_into_the_list_that_is_open_without_a_reload(
    open_page: Opener, served: Served, model: WireServer
) -> None:
    page = open_page("/planner", language="zh", timezone_id="Asia/Shanghai")
    expect(page.get_by_role("tab", name="任务")).to_be_visible()
    page.evaluate("window.sameDocument = true")
    says(model, "task_manager", CREATE, DONE)
    events = served.chat(ASKED, "seed")
    assert {"type": "refresh", "payload": {"target": "tasks"}} in [
        one.data["payload"] for one in events if one.event == "UICommand"
    ]
    expect(row(page, "会议准备")).to_contain_text("15:00")
    assert page.evaluate("window.sameDocument")


def test_a_task_is_created_edited_postponed_done_and_deleted(open_page: Opener, served: Served) -> None:
    page = open_page("/planner", timezone_id="Asia/Shanghai")
    page.get_by_role("textbox", name="Add a task").fill("Call Ann")
    page.get_by_role("button", name="With details").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Title")).to_have_value("Call Ann")
    dialog.get_by_label("Start").fill("2031-05-06T09:30")
    dialog.get_by_label("End").fill("2031-05-06T10:00")
    dialog.get_by_label("Priority").select_option("5")
    dialog.get_by_role("button", name="Create").click()
    expect(row(page, "Call Ann")).to_contain_text("highest")
    expect(row(page, "Call Ann")).to_contain_text("Tue, May 6, 2031, 9:30 – 10:00 AM")
    dialog = opened(page, "Call Ann")
    dialog.get_by_label("Title").fill("Call Ann and Bob")
    dialog.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Snooze: Call Ann and Bob").click()
    page.get_by_label("At another time").fill("2031-05-07T11:00")
    page.get_by_role("button", name="Snooze", exact=True).click()
    expect(row(page, "Call Ann and Bob")).to_contain_text("Wed, May 7, 2031, 11:00 – 11:30 AM")
    with served.client() as client:
        held = client.get("/api/tasks", params={"words": "Call Ann and Bob"}).json()["tasks"][0]
    assert (held["start_time"], held["priority"]) == ("2031-05-07T03:00:00+00:00", 5)
    page.get_by_role("checkbox", name="Done: Call Ann and Bob").click()
    expect(row(page, "Call Ann and Bob")).to_be_hidden()
    page.locator("summary").click()
    page.get_by_role("button", name="Delete: Call Ann and Bob").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert task_of(served, held["id"])["status"] == "done"
    page.get_by_role("button", name="Delete: Call Ann and Bob").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row(page, "Call Ann and Bob")).to_have_count(0)
    with served.client() as client:
        assert client.get(f"/api/tasks/{held['id']}").status_code == 404


def test_a_change_over_a_state_that_was_not_seen_is_refused_and_said(open_page: Opener, served: Served) -> None:
    number = post(served, "/api/tasks", title="Shared task")["id"]
    page = open_page("/planner")
    dialog = opened(page, "Shared task")
    with served.client() as client:
        client.patch(f"/api/tasks/{number}", json={"changes": {"description": "by somebody else"}})
    dialog.get_by_label("Title").fill("Mine")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Somebody changed it")
    assert task_of(served, number)["title"] == "Shared task"
    dialog.get_by_role("button", name="Read again").click()
    expect(dialog.get_by_label("Description")).to_have_value("by somebody else")
    dialog.get_by_label("Title").fill("Mine")
    dialog.get_by_role("button", name="Save").click()
    expect(row(page, "Mine")).to_be_visible()
    assert (task_of(served, number)["title"], task_of(served, number)["description"]) == ("Mine", "by somebody else")


@pytest.mark.parametrize("name", ["Done: {}", "Delete: {}"])
def test_a_task_of_the_list_that_somebody_changed_is_not_touched(open_page: Opener, served: Served, name: str) -> None:
    title = f"Watched {name[:4]}"
    number = post(served, "/api/tasks", title=title)["id"]
    page = open_page("/planner")
    expect(row(page, title)).to_be_visible()
    with served.client() as client:
        client.patch(f"/api/tasks/{number}", json={"changes": {"priority": 4}})
    page.get_by_label(name.format(title)).click()
    if name.startswith("Delete"):
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator(".notices")).to_contain_text("Somebody changed it")
    expect(row(page, title)).to_contain_text("high")
    expect(page.get_by_role("checkbox", name=f"Done: {title}")).not_to_be_checked()
    assert task_of(served, number)["status"] == "open"


def test_tasks_stand_under_when_they_are_due_and_a_project_narrows_them(open_page: Opener, served: Served) -> None:
    now = datetime.now(UTC)
    project = post(served, "/api/projects", name="Garden")["id"]
    for title, days in (("Late", -3), ("Soon", 0), ("Far", 60)):
        post(
            served,
            "/api/tasks",
            title=f"{title} one",
            start_time=(now + timedelta(days=days)).isoformat(),
            project_id=project,
        )
    post(served, "/api/tasks", title="Timeless one", project_id=project)
    post(served, "/api/tasks", title="Of no garden")
    page = open_page("/planner", timezone_id=f"Etc/GMT{now.hour - 12:+d}")  # a time zone in which it is noon
    page.get_by_label("Project shown").select_option("Garden")
    expect(row(page, "Of no garden")).to_be_hidden()
    for heading, title in (("Overdue", "Late"), ("Today", "Soon"), ("Later", "Far"), ("Without a time", "Timeless")):
        group = page.locator("section.group").filter(has=page.get_by_role("heading", name=re.compile(f"^{heading}")))
        expect(group.get_by_role("listitem")).to_have_text([re.compile(f"{title} one")])
    page.get_by_role("searchbox", name="Search tasks").fill("far")
    expect(page.get_by_role("main").get_by_role("listitem")).to_have_text([re.compile("Far one")])


@pytest.mark.requirement("JIT-13")
def test_a_project_is_created_and_deleted_and_its_tasks_stay(open_page: Opener, served: Served) -> None:
    page = open_page("/planner?tab=projects")
    page.get_by_role("textbox", name="Add a project").fill("Short lived")
    page.keyboard.press("Enter")
    expect(row(page, "Short lived")).to_be_visible()
    expect(page.get_by_role("button", name="Delete: Default")).to_have_count(0)
    with served.client() as client:
        project = next(one for one in client.get("/api/projects").json()["projects"] if one["name"] == "Short lived")
    number = post(served, "/api/tasks", title="Kept", project_id=project["id"])["id"]
    page.get_by_role("button", name="Delete: Short lived").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row(page, "Short lived")).to_have_count(0)
    assert task_of(served, number)["project_id"] == 1


def test_notes_are_written_shown_as_markdown_linked_and_found_by_meaning(open_page: Opener, served: Served) -> None:
    post(served, "/api/notes", title="Sailing", content="wind, oars and a harbour")
    page = open_page("/planner?tab=notes")
    page.get_by_role("button", name="New note").click()
    page.get_by_label("Title").fill("Baking")
    page.get_by_label("Text (Markdown)").fill("flour, **yeast**, an oven\n\n- salt")
    page.get_by_role("button", name="Save").click()
    note = page.get_by_role("article", name="Baking")
    expect(note.locator("strong")).to_have_text("yeast")
    expect(note.get_by_role("listitem")).to_have_text(["salt"])
    note.get_by_role("button", name="Link").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("The other note").fill("how do I row a boat?")
    dialog.get_by_role("radio", name="Sailing").check()
    dialog.get_by_label("How they belong together").fill("same weekend")
    dialog.get_by_role("button", name="Link").click()
    expect(note).to_contain_text("same weekend")
    note.get_by_role("button", name="Sailing").click()
    expect(page.get_by_role("article", name="Sailing").get_by_role("button", name="Baking")).to_be_visible()
    page.get_by_role("searchbox").fill("how do I make bread?")
    expect(page.get_by_role("list", name="Notes").get_by_role("button").first).to_contain_text("Baking")


def test_a_note_that_a_turn_writes_comes_into_the_open_list(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    keeper = skill_text("note-keeper", "keeps notes. Use when the user asks for a note.", "tools: note_create\n")
    person.here.write({".claude/skills/note-keeper/SKILL.md": keeper})
    page = open_page("/planner?tab=notes")
    expect(page.get_by_role("button", name="New note")).to_be_visible()
    call = ("note_create", '{"title": "From the chat", "content": "x"}')
    says(model, "note-keeper", Said(calls=[call]), Said(text="ok"))
    served.chat("/note-keeper write a note", "notes")
    with served.client() as client:
        waits = next(one for one in client.get("/api/approvals").json()["approvals"] if one["session"] == "notes")
        client.post(f"/api/approvals/{waits['id']}", json={"answer": "yes"})
    expect(page.get_by_role("list", name="Notes")).to_contain_text("From the chat")


def test_hostile_titles_and_texts_are_text(open_page: Opener, served: Served) -> None:
    for text in HOSTILE:
        post(served, "/api/tasks", title=text, description=text)
        post(served, "/api/notes", title=text, content=text)
        post(served, "/api/projects", name=text)
    page = open_page("/planner")
    for at, tab in enumerate(("Tasks", "Notes", "Projects")):
        page.get_by_role("tab", name=tab).click()
        panel = page.get_by_role("tabpanel", name=tab)
        for text in HOSTILE[:3]:
            expect(panel.get_by_role("listitem").filter(has_text=text).first).to_be_visible()
        if at == 1:
            panel.get_by_role("button", name=HOSTILE[0]).first.click()
            expect(page.get_by_role("article")).to_contain_text(HOSTILE[0])
        assert "\u202e" not in panel.inner_text()
        assert page.locator("main img, main script, main a[href^=javascript]").count() == 0


def test_everything_of_the_list_can_be_done_with_the_keyboard(open_page: Opener, served: Served) -> None:
    project = post(served, "/api/projects", name="Keys")["id"]
    for title in ("First key", "Second key"):
        post(served, "/api/tasks", title=title, project_id=project)
    page = open_page("/planner")
    page.get_by_label("Project shown").select_option("Keys")
    expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(2)
    page.get_by_role("textbox", name="Add a task").focus()
    page.keyboard.type("Third key")
    page.keyboard.press("Enter")
    expect(row(page, "Third key")).to_be_visible()
    page.get_by_role("button", name="First key").and_(page.locator("[data-row]")).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Title")).to_have_value("Second key")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Second key").and_(page.locator("[data-row]"))).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Snooze: Second key")).to_be_focused()


def test_the_page_is_in_chinese_with_dates_of_the_language(open_page: Opener, served: Served) -> None:
    post(served, "/api/tasks", title="写周报", start_time="2031-05-06T01:30:00Z", priority=5)
    page = open_page("/planner", language="zh", timezone_id="Asia/Shanghai")
    expect(page.get_by_role("heading", name="以后")).to_be_visible()
    expect(row(page, "写周报")).to_contain_text("2031年5月6日周二 9:30")
    expect(row(page, "写周报")).to_contain_text("最高")
    page.get_by_role("button", name="填写详情").click()
    expect(page.get_by_role("dialog").get_by_label("优先级")).to_be_visible()


def test_a_token_that_only_reads_sees_the_tasks_and_no_buttons_to_change_them(
    open_page: Opener, served: Served
) -> None:
    post(served, "/api/tasks", title="Only seen")
    page = open_page("/planner", role="read")
    expect(row(page, "Only seen")).to_be_visible()
    expect(page.get_by_text("may read here, but change nothing")).to_be_visible()
    for name in ("Add", "Delete: Only seen", "Snooze: Only seen"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    expect(page.get_by_role("checkbox", name="Done: Only seen")).to_be_disabled()


def test_a_missing_package_is_reported_with_the_command_that_installs_it(
    browser: Browser, person: Person, tmp_path: Path
) -> None:
    (tmp_path / "sqlalchemy.py").write_text("raise ImportError('no', name='sqlalchemy')\n")
    held = {**person.env, "PYTHONPATH": f"{tmp_path}:{SOURCE / 'kernel'}"}
    with serving(person._replace(env=held)) as served, browser.new_context(locale="en-US") as context:
        page = context.new_page()
        watched = Watched(served.url.removeprefix("http://"))
        watched.watch(page)
        page.goto(f"{served.url}/#token={served.tokens['admin']}")
        page.locator("main > *").first.wait_for()
        page.goto(f"{served.url}/#/planner")
        expect(page.get_by_role("alert")).to_contain_text("pip install 'navigator-kernel[")
        assert (watched.errors, watched.foreign) == ([], [])
