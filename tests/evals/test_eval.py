"""`navigator eval` passes for the shipped skills and fails for every injected fault, the same each time."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from cli.support import Place, environment, place_in
from cpu_time import ran
from navigator_kernel.bootstrap.places import shipped_home
from routing.distractors import write_distractors
from skill_repositories import skill_text

pytestmark = pytest.mark.sample(1)

Fault = Callable[[Path], Any]
HINT = " This skill should be used when the user wants it."


@pytest.fixture
def shipped(tmp_path: Path) -> Place:
    """A project with the shipped skills as its own."""
    place = place_in(tmp_path)
    shutil.copytree(
        shipped_home().skills, place.root / ".claude" / "skills", ignore=shutil.ignore_patterns(".navigator")
    )
    return place


def page(skills: Path, name: str, pattern: str, new: str) -> None:
    """Replaces `pattern` in the `SKILL.md` of a skill, which has to contain it."""
    file = skills / name / "SKILL.md"
    text, count = re.subn(pattern, lambda _: new, file.read_text("utf-8"), count=1, flags=re.MULTILINE | re.DOTALL)
    assert count == 1
    file.write_text(text, "utf-8")


def described(name: str, text: str) -> Fault:
    return lambda skills: page(skills, name, r"^description: .*?$", f"description: {text}")


def twin(skills: Path) -> None:
    shutil.copytree(skills / "word-count", skills / "count-words")
    page(skills, "count-words", r"^name: word-count$", "name: count-words")


def evals(name: str, *rows: dict[str, Any], file: str = "trigger-eval.json") -> Fault:
    """A fault that adds evals to a skill."""

    def put(skills: Path) -> None:
        path = skills / name / "evals" / file
        path.write_text(json.dumps([*json.loads(path.read_text("utf-8")), *rows], ensure_ascii=False), "utf-8")

    return put


def project(text: str) -> Fault:
    """A fault that adds evals to the project itself."""

    def put(skills: Path) -> None:
        folder = skills.parents[1] / "evals"
        folder.mkdir()
        (folder / "all.json").write_text(text, "utf-8")

    return put


def many(skills: Path) -> None:
    write_distractors(skills)


def share_trigger(skills: Path) -> None:
    for name in ("word-count", "todo-scan"):
        page(skills, name, r"^name:", "triggers: [count it all]\nname:")


def wrong(name: str, query: str) -> dict[str, Any]:
    return {"query": query, "should_trigger": True, "expected_skill": name}


LOST = [wrong("word-count", f"how do I cook rice for {count} people") for count in range(2, 40)]
FALSE = [{"query": f"word count of essay number {at} please", "should_trigger": False} for at in range(30)]
FAULTS: dict[str, tuple[str, Fault, tuple[str, ...]]] = {
    "two descriptions that are the same": ("overlap", twin, ()),
    "a trigger that two skills declare": (
        "trigger-shared", share_trigger, (),
    ),
    "an alias that is another skill's name": ("trigger-shared", lambda skills: page(skills, "todo-scan", r"^name:", "aliases: [word-count]\nname:"), ()),
    "no trigger hint": ("trigger-missing", described("link-check", "Finds dead links in pages and in folders of pages."), ()),
    "no Chinese one either": ("trigger-missing", described("link-check", "检查页面里的死链，支持文件夹和整个网站的批量检查，速度很快，结果也很清楚。"), ()),
    "a description of two words": ("description-short", described("link-check", "Use when asked."), ()),
    "no description": ("description-missing", described("link-check", '""'), ()),
    "a description without end": ("description-length", described("link-check", f"Checks links.{HINT}{' more' * 300}"), ()),
    "broken frontmatter": ("yaml-unquoted", lambda skills: page(skills, "link-check", r"^name: ", "name: [\nnot: "), ()),
    "frontmatter without an end": ("unclosed", lambda skills: page(skills, "link-check", r"\n---\n", "\n"), ()),
    "over the budget of a host": ("over-budget", many, ("--host", "claude-code")),
    "over the budget of another host": ("over-budget", many, ("--host", "codex")),
    "over a budget that was said": ("over-budget", lambda skills: None, ("--budget", "1000")),
    "evals that are not a JSON": ("eval-broken", lambda skills: (skills / "word-count" / "evals" / "more.json").write_text("{"), ()),
    "evals that are not a list": ("eval-broken", lambda skills: (skills / "word-count" / "evals" / "more.json").write_text('{"evals": 7}'), ()),
    "an eval without a query": ("trigger-form", evals("word-count", {"should_trigger": True}), ()),
    "an eval for a skill that is not there": ("eval-unknown", evals("word-count", wrong("word-cuont", "count it")), ()),
    "a message for two skills": ("eval-contradiction", evals("word-count", wrong("link-check", "word count of this essay please")), ()),
    "a message that is and is not for a skill": (
        "eval-contradiction", evals("word-count", {"query": "count", "should_trigger": False, "expected_skill": "word-count"}), (),
    ),
    "messages that reach nobody": ("recall-low", evals("word-count", *LOST), ()),
    "messages that reach one they are not for": ("precision-low", project(json.dumps(FALSE)), ()),
    "messages of the project that reach nobody": ("recall-low", project(json.dumps(LOST)), ()),
    "a skill without evals": ("eval-missing", lambda skills: shutil.rmtree(skills / "word-count" / "evals"), ("--require-evals",)),
    "evals of one kind": (
        "eval-one-sided",
        lambda skills: (skills / "word-count" / "evals" / "trigger-eval.json").write_text("[]"),
        ("--require-evals",),
    ),
    "evals of the skill-creator for another skill": (
        "eval-unknown",
        lambda skills: (skills / "word-count" / "evals" / "evals.json").write_text('{"skill_name": "wc", "evals": [{"prompt": "/wc"}]}'),
        (),
    ),
}  # fmt: skip


@pytest.mark.requirement("RTE-38")
def test_the_shipped_skills_pass_their_evals(shipped: Place) -> None:
    told = shipped.json("eval", "--all", "--require-evals", "--host", "claude-code", "--host", "codex")
    assert (told["exit_code"], told["problems"]) == (0, [])
    assert told["cases"] >= 160
    assert told["precision"] >= 0.97
    assert told["recall"] >= 0.95


def test_there_are_faults_enough() -> None:
    assert len(FAULTS) >= 20


@pytest.mark.wide
@pytest.mark.requirement("RTE-37", "RTE-39")
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_is_put_in_is_found(shipped: Place, name: str) -> None:
    code, put, flags = FAULTS[name]
    put(shipped.root / ".claude" / "skills")
    told = shipped.json("eval", "--all", *flags)
    assert told["exit_code"] == 1
    errors = [problem["code"] for problem in told["problems"] if problem["level"] == "error"]
    assert code in errors, told["problems"]


@pytest.mark.wide
def test_two_hundred_skills_are_done_in_a_minute_and_alike_each_time(shipped: Place) -> None:
    many(shipped.root / ".claude" / "skills")
    argv = [*shipped.program, "eval", "--all", "--json"]
    told = [ran(argv, cwd=shipped.root, env=environment()) for _ in range(3)]
    assert len({one.out for one in told}) == 1
    assert json.loads(told[0].out)["cases"] >= 160
    assert len(list((shipped.root / ".claude" / "skills").iterdir())) >= 200
    assert sum(one.seconds for one in told) / 3 < 60


def test_junit_counts_what_the_document_counts(shipped: Place) -> None:
    evals("word-count", wrong("word-count", "how do I cook \x07 rice ]]> & <b>\ufffe"))(
        shipped.root / ".claude" / "skills"
    )
    told = shipped.json("eval", "word-count", "--junit", "out.xml")
    tree = ET.parse(shipped.root / "out.xml").getroot()
    errors = [one for one in told["problems"] if one["level"] == "error"]
    assert int(tree.attrib["failures"]) == len(told["failures"]) + len(errors)
    assert len(tree.findall(".//testcase")) == told["cases"] + len(told["problems"]) == int(tree.attrib["tests"])
    assert "word-count" in [suite.attrib["name"] for suite in tree]


def test_one_skill_alone_is_looked_at_among_all(shipped: Place) -> None:
    told = shipped.json("eval", "word-count")
    assert [one["skill"] for one in told["skills"]] == ["word-count"]
    assert shipped.run("eval", "nothing").code == 4


@pytest.mark.requirement("RTE-37")
def test_the_shipped_skills_are_judged_only_if_asked_for(shipped: Place) -> None:
    own = {"SKILL.md": skill_text("tide-tables", "Tells the tides. Use when the user asks for high or low tide")}
    own["evals/evals.json"] = json.dumps([{"query": "when is high tide", "should_trigger": True}])
    empty = shipped.run("eval")
    assert (empty.code, "there are no evals" in empty.err) == (0, True)
    shipped.write({f".claude/skills/tide-tables/{name}": text for name, text in own.items()})
    told = shipped.json("eval", "--junit", "out.xml")
    assert ([one["skill"] for one in told["skills"]], told["cases"]) == (["tide-tables"], 1)
    assert "word-count" not in (shipped.root / "out.xml").read_text()


def test_evals_of_the_skill_creator_are_messages_for_the_skill(shipped: Place) -> None:
    file = shipped.root / ".claude" / "skills" / "word-count" / "evals" / "trigger-eval.json"
    file.write_text("[]")
    (score,) = shipped.json("eval", "word-count")["skills"]
    assert score["cases"] == 2
