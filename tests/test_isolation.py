"""No test reads or writes the home of the person who runs it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from homes import contents, fill


@pytest.fixture(scope="module", autouse=True)
def _a_person_with_settings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NAVIGATOR_MODEL", "of the person")
        patch.setenv("GIT_DIR", "/of/the/person")
        yield


def test_the_home_of_a_test_is_its_own(home: Path) -> None:
    assert Path.home() == home
    assert [path.name for path in home.iterdir() if path.is_file()] == [".gitconfig"]


@pytest.mark.parametrize(
    "change",
    [
        lambda home: (home / "new").touch(),
        lambda home: (home / ".gitconfig").unlink(),
        lambda home: os.utime(home / ".gitconfig", (0, 0)),  # as if rewritten with the same size
        lambda home: (home / ".run").chmod(0o755),
        lambda home: (home / ".run" / "new").mkdir(),
    ],
    ids=["new-file", "removed-file", "changed-file", "mode", "new-folder"],
)
def test_a_home_that_a_test_changed_is_not_used_again(tmp_path: Path, change: Callable[[Path], object]) -> None:
    """Only a home with the same contents is used again (`conftest.home`)."""
    before = contents(fill(tmp_path, {}))
    assert contents(tmp_path) == before
    change(tmp_path)
    assert contents(tmp_path) != before


def test_settings_of_the_person_are_gone() -> None:
    held = {name: value for name, value in os.environ.items() if name.startswith(("NAVIGATOR_", "GIT_DIR"))}
    assert held == {}


def test_git_can_commit(tmp_path: Path) -> None:
    for argv in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *argv], cwd=tmp_path, check=True, capture_output=True)
    log = subprocess.run(["git", "log", "--format=%an"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert log.stdout == "Test\n"
