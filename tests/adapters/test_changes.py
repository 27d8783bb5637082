"""The changes of the project are kept for the whole work of several runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.adapters.files.changes import ChangeStore
from navigator_kernel.adapters.files.writer import FolderWriter

pytestmark = pytest.mark.requirement("JIT-12")


@pytest.fixture
def store(tmp_path: Path) -> ChangeStore:
    """Of a project in which the run `third` goes on with `first`."""
    (tmp_path / "project").mkdir()
    (tmp_path / "kept").mkdir()
    writer = FolderWriter([tmp_path / "kept"])
    return ChangeStore(
        tmp_path / "kept" / "changes", writer, tmp_path / "project", began=lambda run: {"third": "first"}.get(run, run)
    )


def test_the_runs_of_one_work_are_undone_together_by_any_of_their_names(store: ChangeStore, tmp_path: Path) -> None:
    store.make("first", "a.txt", None, b"1")
    store.make("third", "a.txt", b"1", b"2")
    store.make("third", "b.txt", None, b"3")
    assert [change.after for change in store.of("third")] == [change.after for change in store.of("first")]
    assert store.undo("third") == (("a.txt", "undone"), ("b.txt", "undone"))
    assert list((tmp_path / "project").iterdir()) == [] and store.is_undone("first")


def test_the_work_that_changed_something_last_is_the_first_of_the_runs(store: ChangeStore) -> None:
    for run, name in (("first", "a.txt"), ("second", "b.txt"), ("third", "c.txt")):
        store.make(run, name, None, b"x")
    assert store.runs() == ("first", "second")
