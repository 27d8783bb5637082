"""The page of runs: a list of any length, what a run did, its packets and changed files; usage of models."""

from __future__ import annotations

import json
import threading
import time
from itertools import groupby
from typing import Any

import pytest
import yaml
from playwright.sync_api import Locator, Page, expect

from gateway.served import Person, Served
from gateway.web.asking import NOTES, accept_over_http, ask_to_edit, run_of, write_log
from gateway.web.conftest import LIMIT, Opener
from models.wire_server import HELLO, Said, WireServer

pytestmark = pytest.mark.ci

MANY = 5_000
EVIL = "<script>alert(1)</script>\u001b[31mred\u001b[0m\u202eevil <img src=x onerror=alert(2)>"


def get(served: Served, path: str) -> Any:
    with served.client() as client:
        return client.get(path).json()


def runs_in(page: Page) -> Locator:
    return page.get_by_role("list", name="Runs, newest first").get_by_role("listitem")


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def test_a_run_shows_its_time_line_its_packet_and_its_report(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    run = accept_over_http(served, ask_to_edit(served, person, model, "line"))
    events = get(served, f"/api/runs/{run}/log")["events"]
    page = open_page(f"/runs/{run}")
    expect(page.get_by_text(f"{len(events)} events")).to_be_visible()
    shown = [one.get_attribute("data-event") for one in page.locator("[data-event]").all()]
    ended = {"StepCompleted", "ToolCallCompleted"}  # shown in the row of the event that they end
    kinds = [one["type"] for one in events if one["type"] not in ended]
    assert shown == [kind for kind, _ in groupby(kinds)]  # pieces of a text share one row
    call = page.locator("[data-event=ToolCallStarted]")
    call.get_by_role("button").click()
    expect(call.get_by_label("The event in full")).to_contain_text('"new_string": "2"')
    open_tab(page, "Steps")
    packet, report = (yaml.safe_load(page.get_by_label(name).inner_text()) for name in ("Packet", "Report"))
    assert packet["task_spec"]["target"] == "skill:song-writer" and report["effects"] == ["edit notes.txt"]


def test_changed_files_are_shown_and_put_back(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    run = accept_over_http(served, ask_to_edit(served, person, model, "back"))
    page = open_page(f"/runs/{run}")
    open_tab(page, "Changed files")
    expect(page.get_by_label("The change of notes.txt")).to_contain_text("-two\n+2")
    page.get_by_role("button", name="Put the files back").click()
    page.get_by_role("dialog").get_by_role("button", name="Put the files back").click()
    expect(page.get_by_role("tabpanel").get_by_role("status")).to_contain_text("as it was before the run again")
    assert (person.here.root / "notes.txt").read_text() == NOTES


def test_the_log_is_downloaded_as_the_server_has_it(open_page: Opener, served: Served, model: WireServer) -> None:
    run = run_of(served, "/song-writer 月亮", "load")
    page = open_page(f"/runs/{run}")
    with page.expect_download() as held:
        page.get_by_role("button", name="Download the log").click()
    assert held.value.suggested_filename == f"{run}.json"
    assert json.loads(held.value.path().read_text()) == get(served, f"/api/runs/{run}/log")


def test_a_run_appears_while_it_works_and_is_stopped(open_page: Opener, served: Served, model: WireServer) -> None:
    begun, free = threading.Event(), threading.Event()

    def slow(_messages: Any, _number: int) -> Said:
        begun.set()
        free.wait(30)
        return HELLO

    run_of(served, "/song-writer before it", "before")
    model.scripts["worker"] = slow
    page = open_page("/runs")
    first = runs_in(page).first
    first.wait_for()
    with served.client() as client:
        client.post("/api/sessions/slow/runs", json={"message": "/song-writer slowly"})
    assert begun.wait(20)
    expect(first).to_contain_text("/song-writer slowly")
    expect(first).to_contain_text("running")
    first.get_by_role("link").click()
    expect(page.locator("[data-event=StepStarted]")).to_contain_text("running")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator("[data-event=RunCancelled]")).to_be_visible()
    expect(first).to_contain_text("cancelled")
    free.set()


@pytest.mark.timeout(300)
def test_five_thousand_runs_are_scrolled_and_searched(open_page: Opener, served: Served, person: Person) -> None:
    for number in range(MANY):
        write_log(person, f"20200101-{number:09d}-aaaaaa", [])
    page = open_page("/runs")
    box = page.get_by_role("list", name="Runs, newest first")
    foot = page.get_by_role("status").filter(has_text="shown")
    end = time.monotonic() + 90
    while "That is all." not in foot.inner_text() and time.monotonic() < end:
        box.evaluate("one => one.scrollTo(0, one.scrollHeight)")
        page.wait_for_timeout(100)
    assert int(foot.inner_text().split()[0]) >= MANY
    box.evaluate("one => one.scrollTo(0, one.scrollHeight)")
    expect(page.get_by_text("message of 20200101-000000000-aaaaaa")).to_be_visible()
    assert runs_in(page).count() < 100  # only the rows in view exist
    page.get_by_label("Search the messages").fill("000000007")
    expect(runs_in(page)).to_have_count(1, timeout=LIMIT)
    page.get_by_label("Search the messages").fill("nothing like this")
    expect(page.get_by_role("heading", name="No run fits")).to_be_visible(timeout=LIMIT)
    page.get_by_role("button", name="Clear the search").click()
    expect(runs_in(page).first).to_be_visible()


def test_hostile_results_are_text(open_page: Opener, served: Served, person: Person) -> None:
    run, line = "20200202-000000000-bbbbbb", "x" * 1_000_000
    started = {"call": "c", "tool": "read", "args": {"file": EVIL}}
    ended = {"call": "c", "tool": "read", "state": "success", "elapsed": 0.5, "result": EVIL + line}
    write_log(person, run, [("ToolCallStarted", started), ("ToolCallCompleted", ended), ("RunContent", {"text": EVIL})])
    page = open_page(f"/runs/{run}")
    call = page.locator("[data-event=ToolCallStarted]")
    call.get_by_role("button").click()
    shown = call.get_by_label("The event in full").inner_text()
    assert "<script>alert(1)</script>" in shown and "\u202e" not in shown and "\u001b" not in shown
    text = page.locator("[data-event=RunContent]").inner_text()
    assert "<script>alert(1)</script>redevil <img src=x onerror=alert(2)>" in text
    assert page.locator("main script, main img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_page_is_chinese_and_fits_a_telephone(open_page: Opener, served: Served, model: WireServer) -> None:
    run = run_of(served, "/song-writer 月亮", "zh")
    page = open_page("/runs", language="zh")
    page.set_viewport_size({"width": 360, "height": 740})
    expect(page.get_by_label("搜索消息")).to_be_visible()
    page.get_by_role("link", name="/song-writer 月亮").first.click()
    for name in ("时间线", "步骤", "更改的文件"):
        open_tab(page, name)
        expect(page.get_by_role("tabpanel")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    expect(page.get_by_text(run)).to_be_visible()
    page.get_by_role("link", name="所有运行").click()
    expect(page.get_by_label("搜索消息")).to_be_visible()


def test_usage_is_the_sum_of_the_server_and_says_that_a_price_is_not_known(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    spent = {
        "input_tokens": 1_000,
        "output_tokens": 200,
        "cost": 0.25,
        "cached_tokens": 10,
        "requests": 3,
        "unknown": 1,
    }
    write_log(person, "20200303-000000000-cccccc", [("Usage", {"model": "priced:one", **spent})])
    run_of(served, "/song-writer the moon", "usage")
    models = get(served, "/api/usage")["models"]
    page = open_page("/usage")
    expect(page.get_by_role("row")).to_have_count(len(models) + 2, timeout=LIMIT)
    rows = page.get_by_role("row").all_inner_texts()
    for one in models:
        (row,) = (row for row in rows if row.startswith(one["model"]))
        cells = [cell.strip() for cell in row.split("\t")]
        price = "not known" if one["cost"] is None else f"${one['cost']:.2f}"
        numbers = [one["requests"], one["input_tokens"], one["cached_tokens"], one["output_tokens"]]
        assert cells[2:] == [*(f"{number:,}" for number in numbers), price]
    assert "at least $0.25" in rows[-1]
    expect(page.get_by_role("main")).to_contain_text("The price of some requests is not known")
    expect(page.get_by_role("main")).to_contain_text(f"{sum(one['unknown'] for one in models)} interrupted request")
