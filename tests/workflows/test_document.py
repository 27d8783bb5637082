"""A written workflow reads back as it was, and the file is readable for people."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from navigator_kernel.text import clean
from navigator_kernel.turn.workflow_file import dumps, loads
from navigator_kernel.values.workflow import (
    Output,
    Sandboxed,
    WorkflowPlan,
    WorkflowStep,
    outline,
    plan_from,
    plan_to_dict,
)
from tables import table

LIMIT = 6
TRICKY = list(table(__file__, "TRICKY"))
PATHS = st.lists(
    st.sampled_from(
        ["a.csv", "my data.csv", "表 格.csv", "src", "a'b", 'a"b.txt', "#x", "- x", "a: b", "...", "~", "no"]
    ),
    min_size=1,
    max_size=3,
).map("/".join)


def one_line() -> st.SearchStrategy[str]:
    """Names in a plan: printable, on one line, with single spaces."""
    word = st.text(min_size=1, max_size=12).map(lambda text: "".join(clean(text).split()) or "x")
    return st.lists(st.one_of(word, st.sampled_from(TRICKY)), min_size=1, max_size=5).map(" ".join)


def anything() -> st.SearchStrategy[str]:
    return st.one_of(st.text(min_size=1), st.lists(st.sampled_from(TRICKY), min_size=1).map("\n".join))


# Characters that YAML does not accept unescaped, or reads as the end of a line
ODD = ["\x7f", "\x85", "\x9b", "\ufffe", "\u2028", "\ufeff", "\x1b", "\0", "\U0001f600"]
NAMES = st.from_regex(r"[a-z一-龥][\w-]{0,20}[a-z0-9一-龥]", fullmatch=True)


def steps() -> st.SearchStrategy[WorkflowStep]:
    agent = st.sampled_from(["skills", "worker", "mcp"])
    return st.builds(
        WorkflowStep,
        text=one_line(),
        skill=NAMES,
        agent=agent,
        input=anything(),
        output=st.one_of(st.just(""), anything()),
    )


@st.composite
def plans(draw: st.DrawFn) -> WorkflowPlan:
    drawn = draw(st.lists(steps(), min_size=1, max_size=LIMIT))
    box = PATHS.map(lambda path: str(PurePosixPath("mybox/workspace", path)))
    own = [step.skill for step in drawn if step.agent == "skills"]
    return WorkflowPlan(
        name=draw(NAMES),
        description=draw(one_line()),
        steps=tuple(drawn),
        version=draw(st.sampled_from(["1.0.0", "2", "10.20", "1.0.0-rc.1"])),
        depends_on=tuple(dict.fromkeys([*own, *draw(st.lists(one_line(), max_size=2))])),
        tags=tuple(draw(st.lists(one_line(), max_size=3))),
        timeout_seconds=draw(st.floats(min_value=0, max_value=86_400)),
        sandbox=Sandboxed(
            read=tuple(draw(st.lists(PATHS, max_size=3))),
            write=tuple(draw(st.lists(box, max_size=2))),
            forbidden=tuple(draw(st.lists(PATHS, max_size=3))),
        ),
        output=Output(
            location=draw(st.sampled_from(["inline", "file", "both"])),
            format=draw(st.sampled_from(["markdown", "json", "text"])),
            file_path=draw(st.one_of(st.just(""), PATHS)),
        ),
    )


def plan(**given: Any) -> WorkflowPlan:
    step = WorkflowStep(text="count the words", skill="word-count", agent="skills", input="count them")
    base: dict[str, Any] = {"name": "count", "description": "count", "steps": (step,), "depends_on": ("word-count",)}
    return WorkflowPlan(**{**base, **given})


@pytest.mark.ci
@pytest.mark.requirement("WFL-9")
@given(plan=plans())
def test_a_written_workflow_reads_back_equal(plan: WorkflowPlan) -> None:
    assert loads(dumps(plan), plan.name, LIMIT) == plan


@pytest.mark.wide
@settings(max_examples=30)
@given(plan=plans())
def test_a_plan_in_the_journal_format_reads_back_equal(plan: WorkflowPlan) -> None:
    assert plan_from(json.loads(json.dumps(plan_to_dict(plan)))) == plan


@pytest.mark.wide
@settings(max_examples=30, suppress_health_check=[HealthCheck.filter_too_much])
@given(plan=plans())
def test_an_editor_that_ends_lines_with_crlf_changes_nothing(plan: WorkflowPlan) -> None:
    assert loads(dumps(plan).replace("\n", "\r\n"), plan.name, LIMIT) == plan


@pytest.mark.parametrize("odd", ODD, ids=ascii)
@pytest.mark.parametrize("field", ["description", "tags", "depends_on"])
def test_no_character_makes_a_file_that_cannot_be_read_back(field: str, odd: str) -> None:
    held = plan(**{field: f"a{odd}b" if field == "description" else ("word-count", f"a{odd}b")})
    assert loads(dumps(held), "count", 3) == held


@pytest.mark.parametrize("path", ["we\\ird.csv", "a\x7fb.csv", "a\u2028b.csv", "a b.csv", "表.csv"], ids=ascii)
def test_a_file_of_any_name_can_be_read_by_a_stored_workflow(path: str) -> None:
    held = plan(sandbox=Sandboxed(read=(path,)))
    assert loads(dumps(held), "count", 3) == held


# The form of the file (WFL-10, part 3 item 5)


def two_steps(description: str) -> WorkflowPlan:
    first = WorkflowStep(text="sum @data.csv", skill="csv-sum", agent="skills", input="sum @data.csv")
    second = WorkflowStep(text="list skills", skill="skill_manager", agent="worker", input="run skill_manager list")
    return plan(name="sum-then-list", description=description, steps=(first, second), depends_on=("csv-sum",))


@pytest.mark.requirement("WFL-10")
def test_the_outline_is_the_documented_one_in_english() -> None:
    assert outline(two_steps("sum and list"), "en") == [
        "[Workflow] sum and list (plan: mybox/workflows/sum-then-list.md)",
        "  Step 1: sum @data.csv → csv-sum → skills_agent",
        "  Step 2: list skills → skill_manager → worker_agent",
    ]


@pytest.mark.requirement("WFL-10")
def test_the_outline_is_the_documented_one_in_chinese() -> None:
    assert outline(two_steps("先求和再列出"), "zh") == [
        "[工作流] 先求和再列出 (方案: mybox/workflows/sum-then-list.md)",
        "  Step 1: sum @data.csv → csv-sum → skills_agent",
        "  Step 2: list skills → skill_manager → worker_agent",
    ]


BEFORE = """\
---
name: "count"
version: "1.0.0"
description: "count"
depends_on: ["word-count"]
tags: []
timeout_seconds: 0.0
sequential: true
stop_on_error: true
sandbox:
  file_access:
    read: []
    write: ["mybox/workspace"]
    forbidden: []
  network: false
output:
  location: "inline"
  format: "markdown"
  file_path: ""
---

[Workflow] count (plan: mybox/workflows/count.md)
  Step 1: count the words → word-count → skills_agent

## Step 1: count the words

- skill: word-count
- agent: skills
- input: count them
"""


def test_a_file_of_an_earlier_version_is_read_and_a_new_one_has_nothing_without_a_meaning() -> None:
    assert loads(BEFORE, "count", LIMIT) == plan()
    left_out = ("timeout_seconds: 0.0\n", "- agent: skills\n", BEFORE[BEFORE.index("[Workflow]") : BEFORE.index("## ")])
    expected = BEFORE
    for text in left_out:
        expected = expected.replace(text, "")
    assert dumps(plan()) == expected


def test_the_file_contains_every_documented_key() -> None:
    import yaml

    head = yaml.safe_load(dumps(replace(two_steps("sum"), timeout_seconds=9.5)).split("---\n")[1])
    assert list(head) == [
        "name", "version", "description", "depends_on", "tags", "timeout_seconds", "sequential", "stop_on_error",
        "sandbox", "output",
    ]  # fmt: skip
    assert (head["sequential"], head["stop_on_error"]) == (True, True)
    assert head["sandbox"] == {
        "file_access": {"read": [], "write": ["mybox/workspace"], "forbidden": []},
        "network": False,
    }
    assert head["output"] == {"location": "inline", "format": "markdown", "file_path": ""}


@pytest.mark.requirement("WFL-3")
def test_each_step_stands_in_a_section_of_its_own_with_skill_input_and_output() -> None:
    step = WorkflowStep(text="sum it", skill="csv-sum", agent="skills", input="sum\nit", output="the sum")
    text = dumps(plan(steps=(step,), depends_on=("csv-sum",)))
    section = text.partition("## Step 1: sum it\n\n")[2]
    assert section == '- skill: csv-sum\n- input: "sum\\nit"\n- output: the sum\n'
