"""A project with the shipped skills and two hundred others, and the router over it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.bootstrap.places import shipped_home
from routing.distractors import write_distractors
from routing.place import Routing, routing_at, write_skills


@pytest.fixture(scope="package")
def crowd(tmp_path_factory: pytest.TempPathFactory, encoder: UseEncoder) -> Routing:
    """The shipped skills among two hundred others."""
    root = tmp_path_factory.mktemp("crowd")
    shutil.copytree(shipped_home().skills, root / ".claude" / "skills", ignore=shutil.ignore_patterns(".*", "*.db"))
    write_distractors(root / ".claude" / "skills")
    return routing_at(root, encoder)


Village = Callable[..., Routing]


@pytest.fixture
def village(tmp_path: Path, encoder: UseEncoder) -> Village:
    """Makes a project with the named skills, each `name="description"` or `name=(description, extra keys)`."""

    def make(skills: dict[str, str | tuple[str, str]]) -> Routing:
        write_skills(tmp_path, skills)
        return routing_at(tmp_path, encoder)

    return make
