from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from navigator_kernel.errors import (
    Refused,
    UsageProblem,
)
from navigator_kernel.skills.catalog.receipts import folder_digest
from skill_repositories import add_raw, commit, git, make_repo, skill_text, snapshot

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.sample(1)

TWO = {
    "skills/alpha/SKILL.md": skill_text("alpha", "first of two"),
    "skills/alpha/run.py": "print(1)\n",
    "skills/beta/SKILL.md": skill_text("beta", "second of two"),
    "README.md": "two skills\n",
}
ONE = {"solo/SKILL.md": skill_text("solo")}


@pytest.mark.requirement("LIF-2")
@pytest.mark.parametrize("partial", [True, False])
def test_a_named_skill_of_a_repository_is_installed_byte_for_byte(project: Any, tmp_path: Path, partial: bool) -> None:
    repo = make_repo(tmp_path, TWO, partial=partial)
    answer = project.run("install", source=f"file://{repo}", skill="alpha")
    assert answer["changed"] is True
    assert answer["commit"] == git(repo, "rev-parse", "HEAD").strip()
    assert (project.skills / "alpha" / "SKILL.md").read_text() == TWO["skills/alpha/SKILL.md"]
    assert (project.skills / "alpha" / "run.py").read_text() == "print(1)\n"
    assert not (project.skills / "beta").exists()


def test_executable_files_stay_executable_and_others_do_not(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, ONE)
    add_raw(repo, {"solo/go.sh": ("100755", b"#!/bin/sh\n")})
    project.run("install", source=f"file://{repo}")
    assert (project.skills / "solo" / "go.sh").stat().st_mode & 0o777 == 0o755
    assert (project.skills / "solo" / "SKILL.md").stat().st_mode & 0o777 == 0o644


@pytest.mark.requirement("LIF-2")
def test_a_local_folder_is_a_source(project: Any) -> None:
    folder = project.root / "mine" / "gamma"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text("gamma"))
    answer = project.run("install", source="./mine/gamma")
    assert [skill["name"] for skill in answer["skills"]] == ["gamma"]
    assert answer["commit"] == ""


def test_a_format_problem_that_only_the_author_can_fix_is_a_note_at_install(project: Any) -> None:
    """Nothing of the skill is lost; `skill validate` warns of the problem."""
    folder = project.root.parent / "elsewhere"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: one\ndescription: d\nallowed-tools: Read, Grep\n---\nGo.\n")
    (one,) = project.run("install", source=str(folder))["skills"]
    assert {(found["code"], found["level"]) for found in one["findings"]} == {
        ("allowed-tools-form", "note"),
        ("name-folder", "note"),
    }


def test_a_skill_at_the_top_of_a_repository_is_named_by_its_manifest(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"SKILL.md": skill_text("top-one"), "data/a.txt": "a"}, name="some-repo")
    project.run("install", source=f"file://{repo}")
    assert (project.skills / "top-one" / "data" / "a.txt").read_text() == "a"


@pytest.mark.requirement("LIF-2")
def test_several_skills_are_installed_by_name_path_and_glob(project: Any, tmp_path: Path) -> None:
    files = {f"deep/down/{name}/SKILL.md": skill_text(name) for name in ("pdf", "docx", "web-a", "web-b")}
    repo = make_repo(tmp_path, files)
    project.run("install", source=f"file://{repo}", skill=["PDF", "deep/down/docx", "web-*"])
    assert {path.name for path in project.skills.iterdir() if path.is_dir()} == {
        ".navigator",
        "pdf",
        "docx",
        "web-a",
        "web-b",
    }


def test_a_skill_can_be_named_as_its_manifest_names_it(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"x/SKILL.md": skill_text("declared"), "y/SKILL.md": skill_text("y")})
    project.run("install", source=f"file://{repo}", skill="declared")
    assert (project.skills / "declared" / "SKILL.md").exists()


@pytest.mark.parametrize("kind", ["branch", "tag", "commit"])
def test_a_ref_chooses_the_version(project: Any, tmp_path: Path, kind: str) -> None:
    repo = make_repo(tmp_path, ONE)
    old = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "tag", "-a", "-m", "v1", "v1")
    git(repo, "branch", "feature/one")
    commit(repo, {"solo/SKILL.md": skill_text("solo", "newer")})
    ref = {"branch": "feature/one", "tag": "v1", "commit": old}[kind]
    answer = project.run("install", source=f"file://{repo}#{ref}")
    assert answer["commit"] == old
    assert (project.skills / "solo" / "SKILL.md").read_text() == ONE["solo/SKILL.md"]


#
def test_receipt_lock_and_database_agree_on_the_commit_and_the_digest(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, TWO)
    project.run("install", source=f"file://{repo}", skill="alpha")
    receipt = json.loads((project.inner / "alpha.json").read_text())
    lock = json.loads((project.root / "skills.lock.json").read_text())["skills"]["alpha"]
    (row,) = json.loads((project.skills / "skills.db").read_text())["_default"].values()
    digest = folder_digest(project.skills / "alpha")
    assert receipt["digest"] == lock["digest"] == row["tree_digest"] == digest
    assert receipt["commit"] == lock["commit"] == row["commit"] == git(repo, "rev-parse", "HEAD").strip()
    assert [file["path"] for file in lock["files"]] == ["SKILL.md", "run.py"]
    assert receipt["tree"] == git(repo, "rev-parse", "HEAD:skills/alpha").strip()
    assert receipt["subpath"] == "skills/alpha"


@pytest.mark.requirement("LIF-13")
def test_the_database_has_every_documented_field(project: Any, tmp_path: Path) -> None:
    text = skill_text("solo", extra="tags: [a, b]\nkeywords_cn: [独奏]\ncategory: music\ncommand: echo hi\n")
    project.run("install", source=f"file://{make_repo(tmp_path, {'solo/SKILL.md': text})}")
    (row,) = json.loads((project.skills / "skills.db").read_text(encoding="utf-8"))["_default"].values()
    assert set(row) == set(
        "id name folder_name description category tags keywords_cn package_type parent parent_repo child_count repo "
        "stars install installed installed_path last_updated synced_at search_index source_file commit tree_digest "
        "kind".split()
    )
    assert (row["tags"], row["keywords_cn"], row["category"], row["kind"]) == (["a", "b"], ["独奏"], "music", "A")
    assert (row["package_type"], row["parent"], row["installed_path"]) == ("child", "repo", ".claude/skills/solo")


def test_an_unchanged_skill_of_a_newer_commit_is_left_untouched(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, TWO)
    project.run("install", source=f"file://{repo}", skill="alpha")
    before = snapshot(project.root)
    commit(repo, {"README.md": "other\n"})
    assert project.run("install", source=f"file://{repo}", skill="alpha")["changed"] is False
    assert snapshot(project.root) == before


def test_a_newer_version_of_an_own_untouched_skill_replaces_it(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, TWO)
    project.run("install", source=f"file://{repo}", skill="alpha")
    git(repo, "rm", "--quiet", "skills/alpha/run.py")
    commit(repo, {"skills/alpha/SKILL.md": skill_text("alpha", "second edition")})
    assert project.run("install", source=f"file://{repo}", skill="alpha")["changed"] is True
    assert sorted(path.name for path in (project.skills / "alpha").iterdir()) == ["SKILL.md"]
    assert "second edition" in (project.skills / "skills.db").read_text()
    assert not list(project.inner.glob("change-*"))


#
def test_a_folder_without_a_receipt_is_never_overwritten(project: Any, tmp_path: Path) -> None:
    mine = project.skills / "alpha"
    mine.mkdir(parents=True)
    (mine / "notes.txt").write_text("mine")
    with pytest.raises(Refused, match="not installed by navigator") as caught:
        project.run("install", source=f"file://{make_repo(tmp_path, TWO)}", skill="alpha")
    assert caught.value.exit_code == 3
    assert caught.value.hint
    assert [path.name for path in mine.iterdir()] == ["notes.txt"]


def test_the_same_name_from_another_source_is_refused(project: Any, tmp_path: Path) -> None:
    project.run("install", source=f"file://{make_repo(tmp_path, ONE)}")
    other = make_repo(tmp_path, {"solo/SKILL.md": skill_text("solo", "an impostor")}, name="other")
    before = snapshot(project.root)
    with pytest.raises(Refused, match="another source"):
        project.run("install", source=f"file://{other}")
    assert snapshot(project.root) == before


def test_a_locally_edited_skill_is_not_replaced(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, ONE)
    project.run("install", source=f"file://{repo}")
    (project.skills / "solo" / "SKILL.md").write_text("my own words")
    commit(repo, {"solo/SKILL.md": skill_text("solo", "newer")})
    with pytest.raises(Refused, match="was changed"):
        project.run("install", source=f"file://{repo}")
    assert (project.skills / "solo" / "SKILL.md").read_text() == "my own words"


#


def test_identical_duplicates_count_as_one(project: Any, tmp_path: Path) -> None:
    text = skill_text("twin")
    repo = make_repo(tmp_path, {"twin/SKILL.md": text, ".claude/skills/twin/SKILL.md": text})
    assert project.run("install", source=f"file://{repo}", skill="twin")["changed"] is True
    assert json.loads((project.inner / "twin.json").read_text())["subpath"] == "twin"


def test_a_name_of_different_skills_is_a_question_with_their_paths(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"a/twin/SKILL.md": skill_text("twin"), "b/twin/SKILL.md": skill_text("twin", "other")})
    with pytest.raises(UsageProblem) as caught:
        project.run("install", source=f"file://{repo}", skill="twin")
    assert caught.value.data["paths"] == ["a/twin", "b/twin"]
    project.run("install", source=f"file://{repo}", skill="b/twin")
    assert "other" in (project.skills / "twin" / "SKILL.md").read_text()


def test_nothing_of_a_fetched_repository_is_left_behind(
    project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    project.run("install", source=f"file://{make_repo(tmp_path, ONE)}")
    assert os.listdir(scratch) == []
