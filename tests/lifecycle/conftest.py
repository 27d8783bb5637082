"""A project with skills from two repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from skill_repositories import make_repo, skill_text
from skills.conftest import Project, make_project

TWO = {
    "skills/alpha/SKILL.md": skill_text("alpha", "first of two"),
    "skills/alpha/run.py": "print(1)\n",
    "skills/beta/SKILL.md": skill_text("beta", "second of two"),
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """The repository of alpha and beta."""
    return make_repo(tmp_path, TWO)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The repository of solo."""
    return make_repo(tmp_path, {"solo/SKILL.md": skill_text("solo")}, name="other")


@pytest.fixture
def held(tmp_path: Path, home: Path, repo: Path, other: Path) -> Project:
    """A project with solo, then alpha and beta."""
    project = make_project(tmp_path / "project", home)
    project.run("install", source=f"file://{other}")
    project.run("install", source=f"file://{repo}", all=True)
    return project
