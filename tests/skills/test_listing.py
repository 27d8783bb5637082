"""A listing of a folder sees a change, however soon it follows another one."""

from __future__ import annotations

import os
import time
from pathlib import Path

from navigator_kernel.skills.catalog.listing import Listing, Sidecars


def at_the_same_time(folder: Path, name: str) -> None:
    """Adds a file in the same tick of the file system's clock as the folder's last change."""
    before = folder.stat().st_mtime_ns
    (folder / name).write_text("x")
    os.utime(folder, ns=(before, before))


def test_a_file_is_seen_that_came_in_the_tick_of_the_change_before_it(tmp_path: Path) -> None:
    skills, sidecars = Listing(tmp_path, folders=True), Sidecars(tmp_path)
    (tmp_path / "one.md").write_text("x")
    (tmp_path / "one.aliases.json").write_text("{}")
    soon = time.time_ns() + 3_600 * 10**9  # as if no time passed before the next look
    os.utime(tmp_path, ns=(soon, soon))
    assert skills.names() == ["one"] and len(sidecars.files()) == 1
    at_the_same_time(tmp_path, "two.md")
    at_the_same_time(tmp_path, "two.aliases.json")
    assert not skills.is_as_it_was()
    assert skills.names() == ["one", "two"] and len(sidecars.files()) == 2
