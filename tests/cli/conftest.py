"""A release with few skills, and a repository of skills."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cli.support import SOURCE
from skill_repositories import make_repo, skill_text


@pytest.fixture(scope="session")
def lean(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a release that ships only four skills, for tests that need few."""
    site = tmp_path_factory.mktemp("lean")
    package = site / "navigator_kernel"
    plain = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE / "kernel" / "navigator_kernel", package, ignore=plain)
    for name in ("agents", "bin", "docs"):
        shutil.copytree(SOURCE / name, package / "shipped" / name, ignore=plain)
    for name in ("code-review", "csv-report", "git-workflow", "word-count"):
        shutil.copytree(SOURCE / ".claude" / "skills" / name, package / "shipped" / "skills" / name, ignore=plain)
    return {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": ""}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A git repository with two skills."""
    files = {
        "skills/alpha-one/SKILL.md": skill_text("alpha-one", "first of the two"),
        "skills/alpha-one/notes.md": "notes\n",
        "skills/beta-two/SKILL.md": skill_text("beta-two", "second of the two"),
        "README.md": "two skills\n",
    }
    return make_repo(tmp_path, files, name="repository")
