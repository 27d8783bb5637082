"""Install writes names in the other language beside a receipt, keeps a person's own, and leaves the skill unchanged."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from navigator_kernel.errors import Refused
from navigator_kernel.skills.catalog.aliases import MOST, other_words
from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
from navigator_kernel.skills.catalog.listing import Root
from navigator_kernel.skills.catalog.receipts import folder_digest
from skill_repositories import skill_text
from tables import cases

if TYPE_CHECKING:
    from pathlib import Path


@cases("texts, words", lists=True)
def test_words_in_the_glossary_are_translated_into_the_other_language(texts: list[str], words: list[str]) -> None:
    assert other_words(texts) == words


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name in ("code-review", "frobnicate"):
        path = tmp_path / "source" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(skill_text(name))
    return tmp_path / "source"


def sidecar(project: Any) -> Path:
    path: Path = project.inner / "code-review.aliases.json"
    return path


def catalogue(project: Any) -> ResourceCatalogue:
    return ResourceCatalogue(roots=(Root(path=project.skills, level="project"),))


def test_an_install_writes_what_a_skill_is_called_in_the_other_language(project: Any, source: Path) -> None:
    project.run("install", source=str(source), all=True)
    assert json.loads(sidecar(project).read_text()) == {"v": 1, "aliases": [], "words": ["代码审查"]}
    assert not (project.inner / "frobnicate.aliases.json").exists()
    assert folder_digest(project.skills / "code-review") == folder_digest(source / "code-review")
    assert project.run("install", source=str(source), all=True)["changed"] is False
    held = catalogue(project).find("code-review")
    assert held is not None and held.keywords_cn == ("代码审查",)


def test_a_name_that_a_person_gave_finds_the_skill_and_outlives_an_install(project: Any, source: Path) -> None:
    project.run("install", source=str(source), all=True)
    sidecar(project).write_text(json.dumps({"aliases": ["kritik", "审稿"], "words": ["old"]}))
    assert catalogue(project).find("审稿") == catalogue(project).find("code-review")
    (source / "code-review" / "SKILL.md").write_text(skill_text("code-review", "another text"))
    project.run("update")
    assert json.loads(sidecar(project).read_text()) == {"v": 1, "aliases": ["kritik", "审稿"], "words": ["代码审查"]}


def test_a_catalogue_that_is_open_sees_an_edit(project: Any, source: Path) -> None:
    project.run("install", source=str(source), all=True)
    held = catalogue(project)
    assert held.find("kritik") is None
    sidecar(project).write_text(json.dumps({"aliases": ["kritik"]}))
    assert held.find("kritik") is not None
    sidecar(project).unlink()
    assert held.find("kritik") is None


def test_an_uninstall_takes_it_away(project: Any, source: Path) -> None:
    project.run("install", source=str(source), all=True)
    project.run("uninstall", name="code-review")
    assert not sidecar(project).exists()


def test_an_install_that_changes_nothing_leaves_it_alone(project: Any, source: Path) -> None:
    project.run("install", source=str(source), all=True)
    sidecar(project).write_text("{}")
    assert project.run("install", source=str(source), all=True)["changed"] is False
    assert sidecar(project).read_text() == "{}"


@pytest.mark.parametrize("harm", ["", "[", "[]", '{"aliases": 5}', '{"words": "x"}', "[" * 9_000, "\udcff"])
def test_one_that_cannot_be_read_is_read_past_and_stays(project: Any, source: Path, harm: str) -> None:
    project.run("install", source=str(source), all=True)
    data = harm.encode("utf-8", "surrogateescape")
    sidecar(project).write_bytes(data)
    held = catalogue(project).find("code-review")
    assert held is not None and held.keywords_cn == ()
    (source / "code-review" / "SKILL.md").write_text(skill_text("code-review", "another text"))
    project.run("update")
    assert sidecar(project).read_bytes() == data or harm == '{"words": "x"}'


def test_aliases_are_limited_in_number_and_length_and_cleaned(project: Any, source: Path) -> None:
    project.run("install", source=str(source), all=True)
    said = ["\x1b[31mred", "x" * 65, "", 7, *(f"n{at}" for at in range(100))]
    sidecar(project).write_text(json.dumps({"aliases": said}))
    held = catalogue(project).find("code-review")
    assert held is not None and held.aliases == ("red", *(f"n{at}" for at in range(MOST - 1)))


def test_a_link_in_its_place_is_not_followed(project: Any, source: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('{"aliases": ["leaked"]}')
    project.inner.mkdir(parents=True)
    sidecar(project).symlink_to(tmp_path / "secret")
    with pytest.raises(Refused):
        project.run("install", source=str(source), all=True)
    assert set(os.listdir(project.skills)) == {".navigator", ".gitignore"}
    path = project.skills / "code-review" / "SKILL.md"
    path.parent.mkdir()
    path.write_text(skill_text("code-review"))
    assert catalogue(project).find("leaked") is None


def test_an_install_keeps_the_words_of_the_plugin_that_brings_a_skill(project: Any, source: Path) -> None:
    rows = [
        {"name": "reviews", "source": "./", "skills": ["./code-review"], "keywords": ["audit", 3], "category": "dev"}
    ]
    (source / ".claude-plugin").mkdir()
    (source / ".claude-plugin" / "marketplace.json").write_text(json.dumps({"name": "market", "plugins": rows}))
    project.run("install", source=str(source), all=True)
    assert json.loads(sidecar(project).read_text())["words"] == ["代码审查", "reviews", "audit", "dev"]
    held = catalogue(project).find("code-review")
    assert held is not None
    assert held.tags == ("reviews", "audit", "dev")
