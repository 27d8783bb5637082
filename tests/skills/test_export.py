"""Installed skills are exported to folders and archives."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from navigator_kernel.errors import Refused, SkillNotFound, UsageProblem
from navigator_kernel.skills.catalog.receipts import folder_digest
from skill_repositories import commit, make_repo, skill_text, snapshot

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.sample(1)

FILES = {
    "skills/alpha/SKILL.md": skill_text("alpha"),
    "skills/alpha/scripts/run.sh": "#!/bin/sh\necho hi\n",
    "skills/alpha/naïve 名.md": "text\n",
    "skills/beta/SKILL.md": skill_text("beta"),
}


@pytest.fixture
def held(project: Any, tmp_path: Path) -> Any:
    """A project with alpha and beta installed; one file of alpha is executable."""
    repo = make_repo(tmp_path, FILES)
    (repo / "skills/alpha/scripts/run.sh").chmod(0o755)
    commit(repo, {})
    project.run("install", source=f"file://{repo}", all=True)
    return project


def write_skill(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text(name))
    return folder


@pytest.mark.requirement("LIF-15")
def test_an_exported_folder_is_the_skill_byte_for_byte(held: Any, tmp_path: Path) -> None:
    answer = held.run("export", name="Alpha", target=str(tmp_path / "out"))
    (told,) = answer["skills"]
    assert folder_digest(tmp_path / "out" / "alpha") == folder_digest(held.skills / "alpha") == told["digest"]
    assert (told["path"], told["files"], answer["form"]) == (str(tmp_path / "out" / "alpha"), 3, "folder")


def test_several_skills_go_into_one_folder(held: Any, tmp_path: Path) -> None:
    held.run("export", name=["alpha", "beta", "alpha"], target=str(tmp_path / "out"))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["alpha", "beta"]


def test_all_are_exported_with_all(held: Any, tmp_path: Path) -> None:
    write_skill(held.skills / "mine", "mine")
    answer = held.run("export", all=True, target=str(tmp_path / "out"))
    assert [one["name"] for one in answer["skills"]] == ["alpha", "beta", "mine"]


@pytest.mark.requirement("LIF-15")
@pytest.mark.parametrize("name", ["alpha.skill", "alpha.zip", "ALPHA.ZIP"])
def test_an_exported_archive_is_the_folder_of_the_skill(held: Any, tmp_path: Path, name: str) -> None:
    assert held.run("export", name="alpha", target=str(tmp_path / name))["form"] == "archive"
    with zipfile.ZipFile(tmp_path / name) as archive:
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
        assert archive.read("alpha/SKILL.md").decode() == FILES["skills/alpha/SKILL.md"]
    assert modes == {"alpha/SKILL.md": 0o100644, "alpha/naïve 名.md": 0o100644, "alpha/scripts/run.sh": 0o100755}


def test_an_archive_of_the_same_skills_is_the_same_to_the_byte(held: Any, tmp_path: Path) -> None:
    held.run("export", name=["alpha", "beta"], target=str(tmp_path / "one.zip"))
    (held.skills / "alpha" / "SKILL.md").touch()
    held.run("export", name=["beta", "alpha"], target=str(tmp_path / "two.zip"))
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


@pytest.mark.requirement("LIF-15")
def test_an_exported_archive_can_be_installed_and_is_the_same_skill(held: Any, maker: Any, tmp_path: Path) -> None:
    held.run("export", name="alpha", target=str(tmp_path / "alpha.skill"))
    other = maker("other")
    other.run("install", source=str(tmp_path / "alpha.skill"))
    assert folder_digest(other.skills / "alpha") == folder_digest(held.skills / "alpha")


def test_each_skill_has_its_own_file_with_zip_and_a_folder(held: Any, tmp_path: Path) -> None:
    held.run("export", all=True, zip=True, target=str(tmp_path / "out"))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["alpha.skill", "beta.skill"]


def test_each_skill_has_its_own_archive_as_zip(held: Any, tmp_path: Path) -> None:
    held.lifecycle.export(["alpha", "beta"], tmp_path / "out", form="zip")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["alpha.zip", "beta.zip"]
    assert held.run("info", source=str(tmp_path / "out" / "beta.zip"))["count"] == 1


def test_a_skill_file_contains_one_skill(held: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="holds one skill"):
        held.run("export", name=["alpha", "beta"], target=str(tmp_path / "both.skill"))


@pytest.mark.parametrize("target", ["out", "out.zip", "out.skill"])
def test_a_dry_run_of_export_gives_the_same_answer_and_writes_nothing(held: Any, tmp_path: Path, target: str) -> None:
    before = snapshot(tmp_path)
    planned = held.run("export", name="alpha", target=str(tmp_path / target), dry_run=True)
    assert snapshot(tmp_path) == before and not (tmp_path / "out").exists()
    assert {**planned, "dry_run": False} == held.run("export", name="alpha", target=str(tmp_path / target))


@pytest.mark.parametrize(("target", "taken"), [("out", "out/alpha"), ("out.zip", "out.zip")])
@pytest.mark.parametrize("dry_run", [True, False])
def test_export_does_not_overwrite_an_existing_skill_or_archive(
    held: Any, tmp_path: Path, target: str, taken: str, dry_run: bool
) -> None:
    held.run("export", name="alpha", target=str(tmp_path / target))
    before = snapshot(tmp_path)
    with pytest.raises(Refused) as caught:
        held.run("export", name=["beta", "alpha"], target=str(tmp_path / target), dry_run=dry_run)
    assert caught.value.data["paths"] == [str(tmp_path / taken)]
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("target", ["out", "out.zip"])
def test_force_replaces_a_skill_or_an_archive(held: Any, tmp_path: Path, target: str) -> None:
    held.run("export", name="alpha", target=str(tmp_path / target))
    if target == "out":
        (tmp_path / "out" / "alpha" / "old.md").write_text("old")
    held.run("export", name="alpha", target=str(tmp_path / target), force=True)
    if target == "out":
        assert folder_digest(tmp_path / "out" / "alpha") == folder_digest(held.skills / "alpha")
    assert not list(tmp_path.rglob(".navigator-*"))


def test_force_replaces_nothing_but_a_skill(held: Any, tmp_path: Path) -> None:
    (tmp_path / "out" / "alpha").mkdir(parents=True)
    (tmp_path / "out" / "alpha" / "thesis.tex").write_text("years of work")
    with pytest.raises(Refused, match="is not a skill"):
        held.run("export", name="alpha", target=str(tmp_path / "out"), force=True)
    assert (tmp_path / "out" / "alpha" / "thesis.tex").is_file()


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize(("target", "link"), [("out", "out"), ("out", "out/alpha"), ("out.zip", "out.zip")])
def test_no_link_is_written_through(held: Any, tmp_path: Path, target: str, link: str, force: bool) -> None:
    elsewhere = write_skill(tmp_path / "elsewhere", "alpha")
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(elsewhere)
    before = snapshot(elsewhere)
    with pytest.raises(Refused):
        held.run("export", name="alpha", target=str(tmp_path / target), force=force)
    assert snapshot(elsewhere) == before


@pytest.mark.parametrize("target", ["out", "out.zip"])
def test_a_link_in_a_skill_is_not_followed(project: Any, tmp_path: Path, target: str) -> None:
    (write_skill(project.skills / "mine", "mine") / "data").symlink_to("/etc/hostname")
    with pytest.raises(Refused, match="is a link"):
        project.run("export", name="mine", target=str(tmp_path / target))
    assert not (tmp_path / target).exists()


@pytest.mark.parametrize(
    "target", [".claude/skills", ".claude/skills/new", ".claude/skills/x.zip", ".claude/../.claude/skills"]
)
def test_nothing_is_exported_to_where_skills_are_installed(held: Any, target: str) -> None:
    before = snapshot(held.root)
    with pytest.raises(Refused, match="where skills are installed"):
        held.run("export", name="alpha", target=target)
    assert snapshot(held.root) == before


def test_force_does_not_replace_the_folder_that_contains_the_project(held: Any, tmp_path: Path) -> None:
    write_skill(held.skills / held.root.name, held.root.name)
    (held.root / "SKILL.md").write_text(skill_text("looks-like-one"))
    with pytest.raises(Refused, match="where skills are installed"):
        held.run("export", name=held.root.name, target=str(tmp_path), force=True)
    assert held.skills.is_dir()


def test_a_skill_of_one_file_gets_a_folder(project: Any, tmp_path: Path) -> None:
    project.skills.mkdir(parents=True)
    (project.skills / "lone.md").write_text(skill_text("lone"))
    project.run("export", name="lone", target=str(tmp_path / "out"))
    assert (tmp_path / "out" / "lone" / "SKILL.md").read_text() == skill_text("lone")


def test_a_repository_in_a_skill_of_ones_own_stays_at_home(project: Any, tmp_path: Path) -> None:
    own = write_skill(project.skills / "mine", "mine")
    for name in (".git/config", "lib/__pycache__/a.pyc", "lib/a.py"):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text("x")
    project.run("export", name="mine", target=str(tmp_path / "out"))
    assert sorted(snapshot(tmp_path / "out" / "mine")) == ["SKILL.md", "lib/a.py"]


def test_export_marks_a_skill_that_was_changed_since_its_install(held: Any, tmp_path: Path) -> None:
    (held.skills / "alpha" / "SKILL.md").write_text(skill_text("alpha", "changed"))
    answer = held.run("export", all=True, target=str(tmp_path / "out"))
    assert [one["changed_since_installed"] for one in answer["skills"]] == [True, False]


def test_an_unknown_name_suggests_and_exports_none(held: Any, tmp_path: Path) -> None:
    with pytest.raises(SkillNotFound) as caught:
        held.run("export", name=["beta", "alfa"], target=str(tmp_path / "out"))
    assert caught.value.data["suggestions"] == ["alpha"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("params", [{}, {"name": "alpha", "all": True}])
def test_names_or_all_are_needed_and_not_both(held: Any, tmp_path: Path, params: dict[str, Any]) -> None:
    with pytest.raises(UsageProblem):
        held.run("export", target=str(tmp_path / "out"), **params)
