"""A project with as many skills as a benchmark wants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

TOPICS = ("invoice", "calendar", "weather", "photo", "backup", "kernel module", "recipe", "garden", "tax", "music")


@pytest.fixture
def many_skills(tmp_path: Path) -> Callable[[int], Path]:
    def make(count: int) -> Path:
        project = tmp_path / "project"
        for number in range(count):
            topic = TOPICS[number % len(TOPICS)]
            folder = project / ".claude" / "skills" / f"{topic.replace(' ', '-')}-{number}"
            folder.mkdir(parents=True)
            head = f"---\nname: {folder.name}\ndescription: Handles {topic} work of kind {number}\n---\n"
            text = f"{head}\n# {topic}\n\nDo it.\n"
            (folder / "SKILL.md").write_text(text)
        (project / "mybox").mkdir(parents=True, exist_ok=True)
        return project

    return make
