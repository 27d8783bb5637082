from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from navigator_kernel.errors import NotFound, Refused
from navigator_kernel.skills.catalog.receipts import file_digest, folder_digest, folder_files, tree_digest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "skill" / "sub").mkdir(parents=True)
    (tmp_path / "skill" / "SKILL.md").write_text("a")
    (tmp_path / "skill" / "sub" / "b").write_text("b")
    return tmp_path / "skill"


def test_a_digest_names_its_algorithm_and_does_not_change(folder: Path) -> None:
    assert folder_digest(folder) == folder_digest(folder)
    assert folder_digest(folder).startswith("sha256:")
    assert len(folder_digest(folder)) == 71


@pytest.mark.parametrize("change", ["content", "mode", "name", "more", "less"])
def test_every_change_changes_the_digest(folder: Path, change: str) -> None:
    before = folder_digest(folder)
    file = folder / "sub" / "b"
    match change:
        case "content":
            file.write_text("c")
        case "mode":
            file.chmod(0o755)
        case "name":
            file.rename(folder / "sub" / "c")
        case "more":
            (folder / "c").write_text("")
        case _:
            file.unlink()
    assert folder_digest(folder) != before


def test_the_order_of_files_does_not_matter(folder: Path) -> None:
    files = folder_files(folder)
    assert tree_digest(files) == tree_digest(reversed(files)) == folder_digest(folder)


def test_links_and_special_files_are_refused(folder: Path) -> None:
    (folder / "link").symlink_to("SKILL.md")
    with pytest.raises(Refused):
        folder_digest(folder)
    (folder / "link").unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(Refused):
        folder_digest(folder)


def test_a_link_to_a_folder_is_refused_and_a_missing_one_not_found(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(Refused):
        folder_digest(tmp_path / "link")
    with pytest.raises(NotFound):
        folder_digest(tmp_path / "nowhere")


def test_a_single_file_has_a_digest_too(folder: Path) -> None:
    assert file_digest(folder / "SKILL.md") != file_digest(folder / "sub" / "b")
