"""A frequent caller may glance: it sees additions and removals at once, and edits in place at the next full look."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
from navigator_kernel.skills.catalog.listing import Root
from navigator_kernel.values.owner import one_look
from skill_repositories import skill_text

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    for name in ("alpha", "beta"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(skill_text(name))
    os.utime(tmp_path, (1, 1))  # a recently changed folder would be read again
    return tmp_path


def names(catalogue: ResourceCatalogue) -> list[str]:
    return [skill.name for skill in catalogue.list_resources()]


def test_a_glance_costs_no_look_at_each_file(skills: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = ResourceCatalogue(roots=(Root(path=skills, level="project"),))
    assert names(catalogue) == ["alpha", "beta"]
    looked: list[object] = []
    real = os.stat

    def watched(path: Any, **more: Any) -> os.stat_result:
        looked.append(path)
        return real(path, **more)

    monkeypatch.setattr(os, "stat", watched)
    with catalogue.glance(above=0):
        assert names(catalogue) == ["alpha", "beta"]
    assert [path for path in looked if str(path).endswith("SKILL.md")] == []


def test_a_glance_sees_added_and_disabled_skills(skills: Path) -> None:
    off: set[str] = set()
    catalogue = ResourceCatalogue(roots=(Root(path=skills, level="project"),), disabled=lambda: frozenset(off))
    with catalogue.glance(above=0):
        assert names(catalogue) == ["alpha", "beta"]
        (skills / "gamma").mkdir()
        (skills / "gamma" / "SKILL.md").write_text(skill_text("gamma"))
        assert names(catalogue) == ["alpha", "beta", "gamma"]
        off.add("alpha")
        assert names(catalogue) == ["beta", "gamma"]


def test_a_glance_misses_an_edit_in_place_and_the_next_full_look_sees_it(skills: Path) -> None:
    catalogue = ResourceCatalogue(roots=(Root(path=skills, level="project"),))
    assert names(catalogue) == ["alpha", "beta"]
    (skills / "alpha" / "SKILL.md").write_text(skill_text("alpha", "does another thing"))
    with catalogue.glance(above=0):
        assert catalogue.list_resources()[0].description == "does a thing"
    assert catalogue.list_resources()[0].description == "does another thing"


def test_few_are_looked_at_each_time(skills: Path) -> None:
    catalogue = ResourceCatalogue(roots=(Root(path=skills, level="project"),))
    assert names(catalogue) == ["alpha", "beta"]
    (skills / "alpha" / "SKILL.md").write_text(skill_text("alpha", "does another thing"))
    with catalogue.glance():
        assert catalogue.list_resources()[0].description == "does another thing"


def test_a_message_looks_at_each_file_once(skills: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = ResourceCatalogue(roots=(Root(path=skills, level="project"),))
    assert names(catalogue) == ["alpha", "beta"]
    (skills / "alpha" / "SKILL.md").write_text(skill_text("alpha", "does another thing"))
    looked: list[object] = []
    real = os.stat

    def watched(path: Any, **more: Any) -> os.stat_result:
        looked.append(path)
        return real(path, **more)

    monkeypatch.setattr(os, "stat", watched)
    with one_look():
        assert [catalogue.list_resources()[0].description for _ in range(3)] == ["does another thing"] * 3
    manifests = [str(path) for path in looked if str(path).endswith("SKILL.md")]
    assert sorted(manifests) == [str(skills / name / "SKILL.md") for name in ("alpha", "beta")]
