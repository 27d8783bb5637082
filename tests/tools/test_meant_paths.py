"""Paths as models write them are understood for reading and running, and never open what is closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.errors import ConsentNeeded
from tables import cases
from tools.bench_of_tools import Toolbox, toolbox

pytestmark = pytest.mark.sample(2)


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    return toolbox(tmp_path.resolve(), named=("notes.txt",))


@pytest.mark.requirement("TOL-9")
@cases("path")
def test_a_skills_file_is_found_however_it_is_written(box: Toolbox, path: str) -> None:
    answer = box.call("read", file_path=path)
    assert not answer.failed and "# Colors" in answer.text


@pytest.mark.requirement("SAF-1")
@cases("path")
def test_no_way_of_writing_a_path_opens_what_is_closed(box: Toolbox, path: str) -> None:
    try:
        answer = box.call("read", file_path=path)
    except ConsentNeeded:
        raise AssertionError("the person was asked for a closed file") from None
    assert answer.failed and not answer.files and "TOKEN" not in answer.text and "root:" not in answer.text


def test_two_files_that_differ_only_in_case_are_not_guessed(box: Toolbox) -> None:
    for name in ("Sky.txt", "SKY.txt"):
        box.call("write", file_path=name, content=name)
    answer = box.call("read", file_path="sky.txt")
    assert answer.failed


@pytest.mark.requirement("TOL-9")
@pytest.mark.parametrize(
    ("path", "near"),
    [("references/colour.md", "colors.md"), ("colors.md", "references/colors.md"), ("scripts/helo.py", "hello.py")],
)
def test_a_missing_file_is_answered_with_the_names_near_it(box: Toolbox, path: str, near: str) -> None:
    answer = box.call("read", file_path=path)
    assert answer.failed and near in answer.text


@pytest.mark.requirement("JIT-12")
def test_names_in_the_project_are_told_only_after_a_yes(box: Toolbox) -> None:
    with pytest.raises(ConsentNeeded):
        box.call("read", file_path=str(box.root / "docs" / "pages.md"))


def test_a_folder_that_is_read_is_listed(box: Toolbox) -> None:
    assert "hello.py (41 bytes)" in box.call("read", file_path="scripts").text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "b\n", "new_string": "c\n"}]}, "c\nx\n"),
        ({"insert_line": 1, "new_string": "new"}, "a\nnew\nx\n"),
        ({"insert_line": 0, "new_string": "new\n"}, "new\na\nx\n"),
    ],
)
def test_an_edit_may_hold_several_replacements_or_new_lines(box: Toolbox, arguments: dict[str, Any], text: str) -> None:
    box.call("write", file_path="a.txt", content="a\nx\n")
    answer = box.call("edit", 2, file_path="a.txt", **arguments)
    assert not answer.failed, answer.text
    assert (Path(box.work.workspace) / "a.txt").read_text() == text


def test_one_wrong_edit_of_several_changes_nothing(box: Toolbox) -> None:
    box.call("write", file_path="a.txt", content="a\n")
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "z", "new_string": "c"}]
    assert box.call("edit", 2, file_path="a.txt", edits=edits).failed
    assert (Path(box.work.workspace) / "a.txt").read_text() == "a\n"
