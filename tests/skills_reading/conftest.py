"""Folders of resources, written as people write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
from navigator_kernel.skills.catalog.listing import Root

Put = Callable[..., Path]


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / ".claude" / "skills"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def put(skills: Path) -> Put:
    """Writes `<name>/SKILL.md` below `folder`."""

    def write(name: str, description: str = "does a thing", extra: str = "", folder: Path | None = None) -> Path:
        path = (folder or skills) / name / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nname: {name}\ndescription: {description}\n{extra}---\nDo it.\n")
        return path

    return write


@pytest.fixture
def catalogue(skills: Path) -> ResourceCatalogue:
    return ResourceCatalogue(roots=(Root(path=skills, level="project"),))
