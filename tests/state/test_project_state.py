"""The person's state of a project is kept outside the project and follows its identity."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from pathlib import Path

import pytest

from navigator_kernel.adapters.files.writer import PRIVATE
from navigator_kernel.adapters.stores.project_state import PrivateWriter, ProjectState

pytestmark = pytest.mark.requirement("X-43")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "home" / "state" / "navigator"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def state(base: Path, root: Path) -> ProjectState:
    return ProjectState(base, root, lambda: "2026-01-01T00:00:00.000Z")


def mark(root: Path) -> Path:
    return root / "mybox" / "state" / "project-id"


def test_looking_writes_nothing(base: Path, root: Path) -> None:
    state(base, root)
    assert not base.exists() and [path.name for path in root.iterdir()] == [".git"]


@pytest.mark.requirement("X-42")
def test_a_folder_that_is_not_a_project_gets_no_id_and_keeps_its_state_when_it_becomes_one(
    base: Path, root: Path
) -> None:
    (root / ".git").rmdir()
    first = state(base, root)
    first.claim()
    (first.folder / "kept").write_text("x")
    assert list(root.iterdir()) == []
    (root / "mybox").mkdir()
    again = state(base, root)
    again.claim()
    assert (again.folder / "kept").read_text() == "x"


def test_a_claim_makes_private_folders_and_the_same_id_twice(base: Path, root: Path) -> None:
    held = state(base, root)
    held.claim()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (base, base / "projects", held.folder)}
    assert modes == {PRIVATE}
    assert mark(root).read_text().strip() in (held.folder / "project.json").read_text()


def test_a_folder_of_the_home_that_others_may_enter_is_closed(base: Path, root: Path) -> None:
    base.mkdir(parents=True, mode=0o755)
    state(base, root).claim()
    assert stat.S_IMODE(base.stat().st_mode) == PRIVATE


def test_the_next_process_finds_the_same_folder(base: Path, root: Path) -> None:
    first = state(base, root)
    first.claim()
    (first.folder / "kept").write_text("x")
    second = state(base, root)
    second.claim()
    assert (second.folder / "kept").read_text() == "x"


def test_a_copy_of_a_project_with_its_id_has_a_state_of_its_own(base: Path, root: Path, tmp_path: Path) -> None:
    first = state(base, root)
    first.claim()
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    second = state(base, copy)
    second.claim()
    assert second.folder != first.folder
    assert mark(copy).read_text() != mark(root).read_text()


@pytest.mark.parametrize("brought", [None, "0" * 32, ""], ids=["no id", "another id", "an empty id"])
def test_another_project_in_the_same_place_does_not_get_the_state_of_the_first(
    base: Path, root: Path, brought: str | None
) -> None:
    """The inode can be the same again: the ids are compared."""
    first = state(base, root)
    first.claim()
    (first.folder / "grants").write_text("all")
    shutil.rmtree(root / "mybox")
    if brought is not None:
        mark(root).parent.mkdir(parents=True)
        mark(root).write_text(brought)
    second = state(base, root)
    second.claim()
    assert second.folder == first.folder and not (second.folder / "grants").exists()
    aside = [path for path in second.folder.parent.iterdir() if ".aside-" in path.name]
    assert [(path / "grants").read_text() for path in aside] == ["all"]


def test_an_id_that_a_clone_brings_is_replaced(base: Path, root: Path) -> None:
    mark(root).parent.mkdir(parents=True)
    mark(root).write_text("f" * 32)
    state(base, root).claim()
    assert mark(root).read_text().strip() != "f" * 32


@pytest.mark.requirement("X-42")
def test_git_ignores_the_id(base: Path, root: Path) -> None:
    state(base, root).claim()
    assert "\n*\n!/workflows/\n" in (root / "mybox" / ".gitignore").read_text()


@pytest.mark.requirement("X-42")
def test_an_existing_gitignore_of_mybox_is_not_changed(base: Path, root: Path) -> None:
    (root / "mybox").mkdir()
    (root / "mybox" / ".gitignore").write_text("mine\n")
    state(base, root).claim()
    assert (root / "mybox" / ".gitignore").read_text() == "mine\n"


def test_a_project_that_cannot_be_written_to_keeps_its_state(base: Path, root: Path) -> None:
    (root / "mybox").write_text("a file where the folder should be")
    first = state(base, root)
    first.claim()
    (first.folder / "kept").write_text("x")
    again = state(base, root)
    again.claim()
    assert (again.folder / "kept").read_text() == "x"


def test_a_link_in_the_project_leads_the_id_nowhere_else(base: Path, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "mybox").symlink_to(outside)
    state(base, root).claim()
    assert list(outside.iterdir()) == []


def test_twenty_claims_at_once_make_one_state(base: Path, root: Path) -> None:
    seen: list[str] = []

    def claim() -> None:
        held = state(base, root)
        held.claim()
        seen.append((held.folder / "project.json").read_text())

    threads = [threading.Thread(target=claim) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 20 and len(set(seen)) == 1
    assert not [path for path in (base / "projects").iterdir() if ".aside-" in path.name]


def test_the_first_write_claims_the_state(base: Path, root: Path) -> None:
    held = state(base, root)
    PrivateWriter(held.folder, held.claim).write(held.folder / "x" / "y", b"data")
    assert mark(root).exists()
    assert stat.S_IMODE((held.folder / "x").stat().st_mode) == PRIVATE
    assert os.fspath(held.folder).startswith(os.fspath(base))
