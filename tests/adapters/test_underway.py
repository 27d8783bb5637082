"""The record of a turn's calls, and how several turns at once keep their own."""

from __future__ import annotations

from pathlib import Path

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.underway import Underway
from navigator_kernel.values.request import Session


def opened(folder: Path) -> Underway:
    return Underway(folder, FolderWriter([folder]), SystemClock())


def test_a_file_that_another_turn_has_just_made_is_not_work_that_was_left(tmp_path: Path) -> None:
    (tmp_path / "run-1.jsonl").touch()
    assert opened(tmp_path).left() == []
    with opened(tmp_path).kept("run-2", Session(id="s"), ()):
        pass
    assert (tmp_path / "run-1.jsonl").exists()


def test_half_a_first_line_is_not_work_that_was_left(tmp_path: Path) -> None:
    (tmp_path / "run-1.jsonl").write_bytes(b'{"v": 1, "session"')
    assert opened(tmp_path).left() == []
