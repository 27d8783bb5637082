"""`navigator skill usage`: use and disuse of skills, from the runs that are kept (issue 50, item 6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.support import Place, place_in
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.events import Event, SkillUsed
from navigator_kernel.text import fold
from skill_repositories import skill_text

pytestmark = pytest.mark.sample(1)

CHINESE = "中文技能"
NAMES = (CHINESE, "greet", "wave")


@pytest.fixture
def here(tmp_path: Path) -> Place:
    place = place_in(tmp_path)
    place.write({f".claude/skills/{name}/SKILL.md": skill_text(name) for name in NAMES})
    return place


def used(place: Place, skill: str, *times: str, state: str = "success") -> None:
    log = Project(place.root, agents=False).run_log
    for at, ts in enumerate(times):
        run = f"{ts[:10].replace('-', '')}-00000000{at}-abcdef"
        body = SkillUsed(skill=skill, state=state)
        log.append(Event(run=run, turn=0, step=0, seq=0, ts=ts, parent=None, body=body))


def rows(place: Place) -> dict[str, tuple[int, str, list[str]]]:
    skills = place.json("skill", "usage")["skills"]
    return {fold(one["name"]): (one["uses"], one["last_used"], one["days"]) for one in skills}


def test_uses_days_and_the_last_use_are_those_of_the_runs(here: Place) -> None:
    times = ["2026-01-02T10:00:00.000Z", "2026-01-03T10:00:00.000Z", "2026-01-03T11:00:00.000Z"]
    used(here, "greet", *times)
    used(here, "wave", "2026-01-04T10:00:00.000Z", state="pending")  # it waited for a model and did nothing
    shown = rows(here)
    assert shown["greet"] == (3, times[2], ["2026-01-02", "2026-01-03"])
    assert shown["wave"] == (0, "", [])


def test_tokens_are_those_of_name_and_description_and_shipped_skills_cost_none(here: Place) -> None:
    document = here.json("skill", "usage")
    cost = {one["name"]: one["tokens"] for one in document["skills"]}
    assert cost["word-count"] == 0 < cost["greet"]
    assert sum(cost.values()) == document["tokens"]


def test_columns_line_up_under_wide_characters(here: Place) -> None:
    used(here, CHINESE, "2026-01-02T10:00:00.000Z")
    lines = here.said("skill", "usage", "--target", "claude").splitlines()
    places = [
        line.index(word) + sum(ord(mark) > 0x2E80 for mark in line[: line.index(word)])
        for line, word in zip(lines[:3], ("uses", "1", "0"), strict=False)
    ]
    assert len(set(places)) == 1


def test_a_skill_without_a_use_in_30_days_is_named(here: Place) -> None:
    assert "not used since" not in here.run("skill", "usage").err  # nothing is known yet
    used(here, "greet", "2999-01-03T10:00:00.000Z")
    assert "not used since" not in here.run("skill", "usage").err  # the runs reach back no 30 days
    used(here, "wave", "2020-01-02T10:00:00.000Z")
    hint = here.run("skill", "usage").err
    assert "wave" in hint
    assert CHINESE in hint
    assert "greet" not in hint


def test_a_log_that_cannot_be_read_is_left_out(here: Place) -> None:
    used(here, "greet", "2026-01-02T10:00:00.000Z")
    log = here.root / "mybox" / "logs" / "runs"
    (log / "20260101-000000000-ffffff.jsonl").write_text("{\n")
    assert rows(here)["greet"][0] == 1
