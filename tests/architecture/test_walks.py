"""How far a reader has to walk. The limits are what was measured last, and only go down; the goals stand beside them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from architecture.source import line_count, python_files
from architecture.walks import helpers_with_one_call, modules_with_one_importer, protocols, walk_of


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("three small words\n")
    return folder


def test_ask_of_one_skill(place: Path) -> None:
    walk = walk_of(place, "ask", "count the words in @notes.txt")
    assert walk.functions <= 766  # goal 320
    assert walk.files <= 92  # goal 60


def test_install_of_one_skill(place: Path) -> None:
    source = place.parent / "source"
    skill = source / "skills" / "greet" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: greet\ndescription: Greets a person by name\n---\n\nSay hello.\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=source, check=True)
    walk = walk_of(place, "install", f"file://{source}", "--skill", "greet")
    assert walk.functions <= 484  # goal 280
    assert walk.files <= 56  # goal 45


def test_rooms() -> None:
    assert len(modules_with_one_importer()) <= 56  # goal 40
    assert len(helpers_with_one_call()) <= 797  # goal 400
    assert len(protocols()) <= 19  # goal 14


def test_lines() -> None:
    assert sum(map(line_count, python_files("kernel"))) <= 75_739  # goal 42,000
    assert sum(map(line_count, python_files("kernel/navigator_kernel"))) <= 70_690  # goal 36,000
