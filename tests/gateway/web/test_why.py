"""The why drawer shows the facts of `navigator why --json`, and why another skill was not chosen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from gateway.served import Person, Served
from gateway.web.asking import run_of
from gateway.web.conftest import Opener
from models.wire_server import HELLO, Said, WireServer
from person_state import accept
from specialist.turns import says, song

pytestmark = pytest.mark.ci

SONG = "please write me a cheerful song about boats"


def drawer(page: Page, button: str = "Why this skill") -> Locator:
    page.get_by_role("main").get_by_role("button", name=button).click()
    return page.get_by_role("dialog")


def events_of(person: Person, run: str) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """The events of `navigator why --json`, by type."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for event in person.json("why", run)["events"]:
        found.setdefault(event["type"], []).append(event["data"])
    return found


def shown_shortlist(held: Locator) -> list[Any]:
    """Each candidate as shown: its name, its probability and score, and the parts of the score by name."""
    shown: list[Any] = held.locator("[data-candidate]").evaluate_all(
        """all => all.map((one) => [
          one.dataset.candidate,
          one.querySelector('.nowrap').lastChild.textContent.trim(),
          one.querySelector('.parts .dim').textContent.trim().split(' ').at(-1),
          [...one.querySelectorAll('.parts .badge')].map((part) => [part.title, part.textContent.trim().split(' ').at(-1)]),
        ])"""
    )
    return shown


def two(value: float) -> str:
    return f"{value:.2f}"


def test_the_drawer_has_every_fact_of_navigator_why(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    run = run_of(served, SONG, "why")
    told = events_of(person, run)
    held = drawer(open_page(f"/runs/{run}"))
    sentence = held.locator("[data-part=why]").inner_text()
    assert f"why        {sentence}" in person.here.run("why", run, env=person.env).out
    (offered,), (shortlist,), (decided,) = told["SkillsOffered"], told["SkillsShortlisted"], told["RouteDecided"]
    decision = decided["decision"]
    expect(held.locator("[data-stage=offered]")).to_contain_text(f"{offered['count']} skills")
    expect(held.locator("[data-stage=shortlisted]")).to_contain_text(f"{len(shortlist['candidates'])} skills")
    for stage, kind in (("chosen", "SkillChosen"), ("loaded", "SkillLoaded"), ("used", "SkillUsed")):
        expect(held.locator(f"[data-stage={stage}]")).to_contain_text(told[kind][0]["skill"])
    expect(held.locator("[data-stage=used]")).to_contain_text(told["SkillUsed"][0]["state"])
    assert shown_shortlist(held) == [
        [one["name"], two(one["confidence"]), two(one["score"]), [[name, two(of)] for name, of in one["parts"].items()]]
        for one in shortlist["candidates"]
    ]
    facts = held.locator("[data-part=decision]").get_by_role("definition").all_inner_texts()
    assert facts[1] == decision["entity"] and facts[3] == two(decision["confidence"])
    assert f"({decision['kind']})" in facts[0] and f"({decision['tier']})" in facts[2]
    lines = person.here.run("why", run, "-v", env=person.env).out
    assert f"by {decision['tier']}: {facts[4]}" in lines  # the reason in the same words
    (usage,) = told["Usage"]
    expect(held.locator("[data-part=models]")).to_contain_text(
        f"{usage['model']}: 1 request, {usage['input_tokens']} tokens in ({usage['cached_tokens']} cached), "
        f"{usage['output_tokens']} tokens out"
    )


def test_tools_that_were_left_out_are_named(
    open_page: Opener, served: Served, person: Person, model: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in person.env.items():
        monkeypatch.setenv(name, value)
    text = song("allowed-tools: Read TodoWrite Task\n").replace("song-writer", "rhyme-maker")
    person.here.write({".claude/skills/rhyme-maker/SKILL.md": text})
    accept(person.here.root, "rhyme-maker")
    run = run_of(served, "/rhyme-maker the moon", "left")
    (told,) = events_of(person, run)["ToolsLeftOut"]
    expect(drawer(open_page(f"/runs/{run}"))).to_contain_text(f"not offered here: {', '.join(told['tools'])}")


def test_why_not_another_skill_is_said_in_the_words_of_the_command(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    run = run_of(served, SONG, "not")
    held = drawer(open_page(f"/runs/{run}"))
    for skill in ("rust-dev", "no-such-skill", "song-writer"):
        told = person.json("why", run, "--not", skill)
        held.get_by_label("Name of a skill").fill(skill)
        held.get_by_role("button", name="Explain").click()
        expect(held.locator("[data-part=not] [role=status]")).to_contain_text(told["why"])
        if told["fell_out"]:
            expect(held.locator("[data-fell-out]")).to_have_attribute("data-fell-out", told["fell_out"])


def test_another_skill_is_taken_for_such_messages_from_then_on(
    open_page: Opener, served: Served, person: Person, model: WireServer
) -> None:
    message = "hum something for the harbour"
    run = run_of(served, message, "next")
    page = open_page(f"/runs/{run}")
    held = drawer(page)
    held.get_by_label("Name of a skill").fill("song-writer")
    held.get_by_role("button", name="Explain").click()
    held.get_by_role("button", name="Take song-writer for messages like this").click()
    expect(page.locator(".notice")).to_contain_text("song-writer has learned this message.")
    assert person.json("route", message)["entity"] == "song-writer"


def test_the_drawer_is_chinese_where_the_page_is(open_page: Opener, served: Served, model: WireServer) -> None:
    run = run_of(served, SONG, "zh")
    held = drawer(open_page(f"/runs/{run}", language="zh"), "为什么是这个技能")
    expect(held.locator("[data-part=decision]")).to_contain_text("明显领先：song-writer")
    held.get_by_label("技能名称").fill("no-such-skill")
    held.get_by_role("button", name="解释").click()
    expect(held.locator("[data-part=not]")).to_contain_text("没有名为 no-such-skill 的技能")
    held.get_by_role("button", name="关闭").click()
    expect(held).to_have_count(0)


def test_a_run_that_chose_nothing_has_a_drawer_too(open_page: Opener, served: Served, model: WireServer) -> None:
    says(model, HELLO, Said(text="again"))
    run = run_of(served, "/no-such-skill please", "nothing")
    held = drawer(open_page(f"/runs/{run}"))
    expect(held.locator("[data-stage=used]")).to_contain_text("none")
    expect(held.locator("[data-part=shortlist]")).to_contain_text(re.compile("No candidates were compared"))
