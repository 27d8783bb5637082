"""The number of skills is reported once a session if there are few."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from navigator_kernel.language.wording import say
from navigator_kernel.turn.understand import precheck
from navigator_kernel.values.reply import Notice
from navigator_kernel.values.request import Session
from routing.place import routing_at, write_skills

if TYPE_CHECKING:
    from pathlib import Path

    from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue

NEW = Session(id="s")


def nobody(count: int) -> object:
    return None


def catalogue_of(root: Path, count: int) -> ResourceCatalogue:
    write_skills(root, {f"skill-{at}": "does a thing" for at in range(count)})
    return routing_at(root).catalogue


@pytest.mark.requirement("STA-2", "STA-3")
@pytest.mark.parametrize(("count", "due"), [(0, True), (1, True), (9, True), (10, False), (11, False), (200, False)])
def test_a_reminder_is_due_below_ten(tmp_path: Path, count: int, due: bool) -> None:
    notice = precheck(catalogue_of(tmp_path, count), NEW, nobody)
    assert notice == (Notice(code="few_skills", count=count) if due else None)


@pytest.mark.requirement("STA-3")
def test_a_reminder_is_shown_once_a_session(tmp_path: Path) -> None:
    assert precheck(catalogue_of(tmp_path, 1), Session(id="s", notice_shown=True), nobody) is None


@pytest.mark.requirement("STA-2")
@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"---\nname: &a x\n---\n", b"---\n"], ids=["empty", "binary", "hostile", "open"]
)
def test_the_count_is_of_the_directory_and_no_file_is_read(tmp_path: Path, content: bytes) -> None:
    catalogue = catalogue_of(tmp_path, 3)
    for path in (tmp_path / ".claude" / "skills").glob("*/SKILL.md"):
        path.write_bytes(content)
    notice = precheck(catalogue, NEW, nobody)
    assert notice is not None
    assert notice.count == 3


@pytest.mark.requirement("STA-2")
def test_a_skill_that_is_added_counts_at_once(tmp_path: Path) -> None:
    catalogue = catalogue_of(tmp_path, 9)
    assert precheck(catalogue, NEW, nobody) is not None
    write_skills(tmp_path, {"one-more": "x"})
    assert precheck(catalogue, NEW, nobody) is None


def test_a_plugins_notice_goes_first(tmp_path: Path) -> None:
    own = Notice(code="maintenance", count=7)
    assert precheck(catalogue_of(tmp_path, 1), NEW, lambda count: own) == own


@pytest.mark.parametrize("odd", ["text", 3, ("few_skills", 1), False])
def test_a_notice_of_the_wrong_type_is_left_out(tmp_path: Path, odd: object) -> None:
    assert precheck(catalogue_of(tmp_path, 20), NEW, lambda count: odd) is None


@pytest.mark.requirement("STA-3")
@pytest.mark.parametrize(("language", "words"), [("en", "GitHub repository"), ("zh", "GitHub 仓库")])
def test_the_reminder_says_what_can_be_done(language: str, words: str) -> None:
    text = say("notice.few_skills", "zh" if language == "zh" else "en", count=3)
    assert words in text
    assert "docs/skills-mapping.md" in text and "3" in text
