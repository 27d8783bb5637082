"""A workflow file that somebody edited: every mistake is named with its line, and any text is a workflow or refused."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.support import environment
from navigator_kernel.errors import NotLoadable
from navigator_kernel.turn.workflow_file import loads
from tables import table

FILE = """\
---
name: report
version: 1.0.0
description: sums and lists
depends_on: [csv-sum, link-list]
tags: [a, b]
timeout_seconds: 30
sequential: true
stop_on_error: true
sandbox:
  file_access:
    read: [data.csv]
    write: [mybox/workspace]
    forbidden: [secret]
  network: false
output:
  location: inline
  format: markdown
  file_path: ""
---

# My report

## Step 1: sum it

- skill: csv-sum
- agent: skills
- input: sum @data.csv
- output: the sum

## Step 2: list it

- skill: link-list
- input: list the links in it
"""
MORE = "\n## Step {n}: more\n\n- skill: csv-sum\n- input: x\n"


def problems(text: str, *, limit: int = 3) -> list[tuple[int, str]]:
    """The problems in `text`, by line."""
    with pytest.raises(NotLoadable) as caught:
        loads(text, "report", limit)
    found = caught.value.data["problems"]
    assert all(f"line {one['line']}: {one['message']}" in caught.value.message for one in found)
    return [(one["line"], one["message"]) for one in found]


def line_of(text: str, start: str) -> int:
    return next(at for at, line in enumerate(text.split("\n"), 1) if line.startswith(start))


def test_the_file_that_the_mistakes_are_made_in_is_a_good_one() -> None:
    plan = loads(FILE, "report", 3)
    assert (plan.timeout_seconds, plan.sandbox.forbidden, len(plan.steps)) == (30, ("secret",), 2)


def test_only_four_keys_and_two_items_are_required() -> None:
    lines = ["---", "name: n", "version: 1", "description: d", "depends_on: [s]", "---", "## Step 1: t"]
    plan = loads("\n".join([*lines, "- skill: s", "- input: i"]), "n", 3)
    assert (plan.timeout_seconds, plan.sandbox.write, plan.output.location) == (0, ("mybox/workspace",), "inline")


# Each edit: old text, new text, the start of the line that the error names, and a word of its message
EDITS: dict[str, tuple[str, str, str, str]] = table(__file__, "EDITS")


@pytest.mark.parametrize(("old", "new", "place", "word"), EDITS.values(), ids=list(EDITS))
def test_a_mistake_is_named_with_its_line(old: str, new: str, place: str, word: str) -> None:
    text = FILE.replace(old, new)
    assert text != FILE
    found = problems(text)
    lines = [line for line, message in found if word in message]
    repeated = [at for at, line in enumerate(text.split("\n"), 1) if line.startswith(place)]
    assert lines
    assert set(lines) <= set(repeated)


@pytest.mark.parametrize("edit", [edit for edit in EDITS if edit != "second item"])
def test_a_single_mistake_is_reported_as_exactly_one_problem(edit: str) -> None:
    """Keys in unreadable frontmatter are not reported as missing, nor items below a wrong heading as second ones."""
    assert len(problems(FILE.replace(*EDITS[edit][:2]))) == 1


def test_all_mistakes_are_named_at_once_in_the_order_of_their_lines() -> None:
    edits = (
        "version",
        "side by side",
        "network",
        "format",
        "absolute read",
        "misnumbered",
        "unknown agent",
        "no input",
    )
    text = FILE
    for edit in edits:
        text = text.replace(*EDITS[edit][:2])
    found = problems(text)
    assert [line for line, _ in found] == sorted(line for line, _ in found)
    assert len(found) == len(edits)
    for edit in edits:
        assert any(EDITS[edit][3].split("step 2")[0] in message for _, message in found), edit


@pytest.mark.requirement("WFL-3")
def test_four_steps_are_too_many_unless_more_are_allowed() -> None:
    text = FILE + MORE.format(n=3) + MORE.format(n=4)
    assert problems(text) == [(line_of(text, "---") + 20, "4 steps; a workflow has 1 to 3")]
    assert len(loads(text, "report", 4).steps) == 4


def test_a_workflow_file_without_steps_is_refused() -> None:
    assert any("0 steps" in message for _, message in problems(FILE.partition("# My")[0]))


@pytest.mark.parametrize("text", ["", "\n", "hello", FILE.partition("---\n")[2], "---\nname: x\n", " ---\n---\n"])
def test_a_file_without_frontmatter_says_so(text: str) -> None:
    assert (1, "the file begins with no frontmatter between two lines '---'") in problems(text)


def test_a_file_that_is_too_long_is_not_read() -> None:
    with pytest.raises(NotLoadable, match="64 KiB"):
        loads(FILE + "x" * 64 * 1024, "report", 3)


def test_items_may_be_written_in_chinese() -> None:
    text = FILE.replace("## Step 2:", "## 步骤 2：").replace("- skill: link-list", "- 技能：link-list")
    text = text.replace("- agent: skills", "* 子智能体：skills_agent").replace("- input: list", "- 输入：list")
    assert loads(text.replace("- output:", "- 输出："), "report", 3) == loads(FILE, "report", 3)


def test_keys_that_the_kernel_does_not_know_do_no_harm() -> None:
    text = FILE.replace("tags: [a, b]", "tags: [a, b]\nauthor: Ada\nhooks:\n  before: x")
    assert loads(text, "report", 3) == loads(FILE, "report", 3)


# Any text


def read(text: str) -> None:
    with suppress(NotLoadable):
        loads(text, "report", 3)


@given(st.text())
def test_any_text_is_a_workflow_or_a_list_of_problems(text: str) -> None:
    read(text)
    read(f"---\n{text}\n---\n## Step 1: x\n")
    read(FILE + text)


@given(
    st.lists(
        st.sampled_from([*FILE.split("\n"), "? x", "- - -", "a: {b: [c", "}", "key: |", "  *x", "!!python x"]),
        max_size=40,
    )
)
def test_any_order_of_a_files_lines_is_a_workflow_or_a_list_of_problems(lines: list[str]) -> None:
    read("\n".join(lines))
    read("\n".join(["---", *lines, "---", "## Step 1: x"]))


HOSTILE = """
import sys, time
from navigator_kernel.errors import NotLoadable
from navigator_kernel.turn.workflow_file import loads
piece, times, tail = sys.argv[1], int(sys.argv[2]), sys.argv[3]
began = time.process_time()
try:
    loads("---\\nx: " + chr(10) * (piece[0] in "-?") + piece * times + tail * times + "\\n---\\n", "n", 3)
except NotLoadable:
    print("told", time.process_time() - began < 3)
"""


@pytest.mark.parametrize(("piece", "tail"), [("[", ""), ("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", ""), ("{? ", "")])
@pytest.mark.parametrize("size", [3_000, 60_000])
def test_nesting_without_end_ends_no_process_and_takes_no_time(piece: str, tail: str, size: int) -> None:
    """In a separate process, because a YAML reader can overflow the stack."""
    times = str(size // len(piece + tail))
    argv = [sys.executable, "-c", HOSTILE, piece, times, tail]
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "told True\n"), done.stderr[-500:]


def test_aliases_that_stand_for_more_and_more_are_not_followed() -> None:
    bomb = "\n".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9)}]" for n in range(1, 10))
    assert any("aliases" in message for _, message in problems(f"---\nk0: &k0 x\n{bomb}\n---\n"))
