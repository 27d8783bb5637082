"""A link in `.agents/skills` to a skill in `.claude/skills` comes and goes with the skill (issue 4, item 9)."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from cli.support import Place, place_in
from lifecycle.trees import content, tree
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.bootstrap import project as opened
from navigator_kernel.errors import KernelError, Refused, UsageProblem
from navigator_kernel.skills.install.apply import INTENT, InstallTransaction
from navigator_kernel.skills.options import InstallOptions
from skill_repositories import commit, skill_text
from skills.conftest import Project, make_project

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "../../.claude/skills/{}"
LINK = {"target": "agents", "link": True}


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Project:
    return make_project(tmp_path / "project", home)


@pytest.fixture
def linked(project: Project, repo: Path) -> Project:
    """A project with alpha and beta and a link to each."""
    project.run("install", source=f"file://{repo}", all=True, **LINK)
    return project


def links(folder: Path) -> dict[str, str]:
    return {path.name: os.fspath(path.readlink()) for path in folder.iterdir() if path.is_symlink()}


def told(answer: Any) -> dict[str, list[str]]:
    return {one["name"]: one["links"] for one in answer["skills"]}


@pytest.mark.requirement("LIF-2")
def test_the_skill_is_in_claude_and_a_relative_link_points_to_it(project: Project, repo: Path) -> None:
    answer = project.run("install", source=f"file://{repo}", skill="alpha", **LINK)
    assert told(answer) == {"alpha": [".agents/skills/alpha"]}
    assert answer["skills"][0]["path"] == ".claude/skills/alpha"
    assert links(project.agents) == {"alpha": TEXT.format("alpha")}
    assert (project.agents / "alpha" / "SKILL.md").samefile(project.skills / "alpha" / "SKILL.md")
    assert [path.name for path in project.agents.iterdir()] == ["alpha"]


def test_the_same_install_again_changes_nothing_not_even_times(linked: Project, repo: Path) -> None:
    before = tree(linked.root)
    answer = linked.run("install", source=f"file://{repo}", all=True, **LINK)
    assert (answer["changed"], told(answer)["alpha"]) == (False, [".agents/skills/alpha"])
    assert linked.run("install", source=f"file://{repo}", all=True)["changed"] is False
    assert tree(linked.root) == before


def test_a_skill_that_is_there_gets_its_link_and_keeps_its_bytes_and_times(project: Project, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", all=True)
    before = tree(project.skills / "alpha")
    answer = project.run("install", source=f"file://{repo}", skill="alpha", **LINK)
    assert (answer["changed"], told(answer)) == (True, {"alpha": [".agents/skills/alpha"]})
    assert links(project.agents) == {"alpha": TEXT.format("alpha")}
    assert tree(project.skills / "alpha") == before


@pytest.mark.requirement("LIF-5")
def test_uninstall_takes_the_link_too_and_says_so(linked: Project) -> None:
    planned = linked.run("uninstall", name="alpha", dry_run=True)
    assert links(linked.agents).keys() == {"alpha", "beta"}
    assert {**planned, "dry_run": False} == linked.run("uninstall", name="alpha")
    assert told(planned) == {"alpha": [".agents/skills/alpha"]}
    assert links(linked.agents) == {"beta": TEXT.format("beta")}


@pytest.mark.parametrize("kind", ["elsewhere", "absolute", "file", "folder"])
def test_uninstall_leaves_foreign_links_files_and_folders_unchanged(linked: Project, kind: str) -> None:
    path = linked.agents / "alpha"
    path.unlink()
    foreign(path, kind, linked)
    before = content(linked.agents)
    assert told(linked.run("uninstall", name="alpha")) == {"alpha": []}
    assert content(linked.agents) == before


def foreign(path: Path, kind: str, project: Project) -> None:
    """Puts somebody else's file, folder or link at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "elsewhere":
            path.symlink_to("../../README.md")
        case "absolute":
            path.symlink_to(project.skills / "alpha")
        case "file":
            path.write_text("mine\n")
        case "folder":
            path.mkdir()
            (path / "SKILL.md").write_text(skill_text("alpha", "mine"))


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry", "real"])
@pytest.mark.parametrize("kind", ["elsewhere", "absolute", "file", "folder"])
def test_something_elses_in_the_links_place_is_refused_and_nothing_is_installed(
    project: Project, repo: Path, kind: str, *, dry_run: bool
) -> None:
    foreign(project.agents / "alpha", kind, project)
    before = content(project.root)
    with pytest.raises(Refused, match="is not a link to") as caught:
        project.run("install", source=f"file://{repo}", skill="alpha", dry_run=dry_run, **LINK)
    assert caught.value.hint
    assert content(project.root) == before


def test_a_copy_of_ours_is_not_replaced_by_a_link_nor_a_link_by_a_copy(linked: Project, repo: Path) -> None:
    before = content(linked.root)
    with pytest.raises(Refused, match="was not installed by navigator"):
        linked.run("install", source=f"file://{repo}", skill="alpha", target="agents")
    with pytest.raises(Refused, match="was not installed by navigator") as caught:
        linked.run("uninstall", name="alpha", target="agents")
    assert "uninstall what it leads to" in caught.value.hint
    assert content(linked.root) == before


def test_a_name_that_reads_like_another_link_is_refused(project: Project, repo: Path) -> None:
    foreign(project.agents / "ALPHA", "folder", project)
    with pytest.raises(Refused, match="looks like"):
        project.run("install", source=f"file://{repo}", skill="alpha", **LINK)


def test_a_link_without_its_target_is_a_usage_error(project: Project, repo: Path) -> None:
    for more in ({}, {"target": "claude"}):
        with pytest.raises(UsageProblem, match="--link") as caught:
            project.run("install", source=f"file://{repo}", skill="alpha", link=True, **more)
        assert "--target agents" in caught.value.hint


def test_a_person_has_links_too(tmp_path: Path, home: Path, repo: Path) -> None:
    project = make_project(tmp_path / "project", home)
    project.run("install", source=f"file://{repo}", skill="alpha", user=True, **LINK)
    assert links(home / ".agents" / "skills") == {"alpha": TEXT.format("alpha")}
    assert content(project.root) == {}
    project.run("uninstall", name="alpha", user=True)
    assert links(home / ".agents" / "skills") == {}


def test_a_home_whose_agents_folder_is_elsewhere_gets_no_dangling_link(tmp_path: Path, home: Path, repo: Path) -> None:
    project = make_project(tmp_path / "project", home)
    (tmp_path / "dots" / "agents" / "skills").mkdir(parents=True)
    (home / ".agents").symlink_to(tmp_path / "dots" / "agents")
    with pytest.raises(Refused, match="leads elsewhere"):
        project.run("install", source=f"file://{repo}", skill="alpha", user=True, **LINK)
    assert not (home / ".claude" / "skills" / "alpha").exists()
    assert links(tmp_path / "dots" / "agents" / "skills") == {}


def test_verify_update_and_rollback_work_with_links_there(linked: Project, repo: Path) -> None:
    commit(repo, {"skills/alpha/SKILL.md": skill_text("alpha", "newer")})
    assert linked.run("verify")["count"] == 2
    assert told(linked.run("update"))["alpha"] == [".agents/skills/alpha"]
    assert (linked.agents / "alpha" / "SKILL.md").read_text() == skill_text("alpha", "newer")
    assert told(linked.run("rollback"))["alpha"] == [".agents/skills/alpha"]
    assert (linked.agents / "alpha" / "SKILL.md").read_text() == skill_text("alpha", "first of two")
    assert links(linked.agents).keys() == {"alpha", "beta"}


def test_rollback_to_before_a_skill_takes_its_link(project: Project, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", skill="beta")
    project.run("install", source=f"file://{repo}", skill="alpha", **LINK)
    assert told(project.run("rollback")) == {"alpha": [".agents/skills/alpha"], "beta": []}
    assert links(project.agents) == {}


def test_frozen_brings_links_where_they_are_asked_for(linked: Project) -> None:
    before = content(linked.agents)
    shutil.rmtree(linked.root / ".claude")
    shutil.rmtree(linked.root / ".agents")
    assert told(linked.run("frozen")) == {"alpha": [], "beta": []}
    planned = linked.run("frozen", dry_run=True, **LINK)
    assert {**planned, "dry_run": False} == linked.run("frozen", **LINK)
    assert planned["changed"] is True
    assert content(linked.agents) == before
    assert linked.run("frozen", **LINK)["changed"] is False


@pytest.mark.parametrize("whole", [True, False], ids=["all", "one"])
def test_repair_removes_links_of_ours_that_lead_to_nothing_and_names_them(linked: Project, *, whole: bool) -> None:
    shutil.rmtree(linked.root / ".claude" if whole else linked.skills / "alpha")
    (linked.agents / "theirs").symlink_to("../../nothing")
    gone = ["alpha", "beta"] if whole else ["alpha"]
    paths = [f".agents/skills/{name}" for name in gone]
    assert linked.run("repair", dry_run=True)["levels"][0]["unlinked"] == paths
    assert linked.run("repair")["levels"][0]["unlinked"] == paths
    assert links(linked.agents).keys() == {"alpha", "beta", "theirs"} - set(gone)
    assert linked.run("repair")["levels"][0]["unlinked"] == []


# Reading


@pytest.mark.requirement("LIF-4")
def test_a_linked_skill_is_listed_once_with_its_link_and_without_a_remark(linked: Project) -> None:
    answer = linked.run("list")
    assert told(answer) == {"alpha": [".agents/skills/alpha"], "beta": [".agents/skills/beta"]}
    assert [one["path"] for one in answer["skills"]] == [".claude/skills/alpha", ".claude/skills/beta"]
    assert answer["problems"] == []
    catalogue = opened.Project(linked.root, agents=False).catalogue
    assert [skill.path for skill in catalogue.list_resources() if skill.name == "alpha"] == [
        linked.skills / "alpha" / "SKILL.md"
    ]
    assert "shadowed" not in [note.code for note in catalogue.diagnostics()]


def test_a_link_in_claude_to_a_skill_in_agents_is_not_a_second_skill(project: Project, repo: Path) -> None:
    """Other installers do this: the skill in .agents/skills, the link in .claude/skills."""
    project.run("install", source=f"file://{repo}", skill="alpha", target="agents")
    project.skills.mkdir(parents=True)
    (project.skills / "alpha").symlink_to("../../.agents/skills/alpha")
    assert [problem["code"] for problem in project.run("list")["problems"]] == []
    assert project.run("list")["count"] == 1


def test_a_link_to_a_skill_of_the_person_is_not_a_second_skill(
    project: Project, home: Path, repo: Path, tmp_path: Path
) -> None:
    project.run("install", source=f"file://{repo}", skill="alpha", user=True)
    project.agents.mkdir(parents=True)
    (project.agents / "alpha").symlink_to(home / ".claude" / "skills" / "alpha")
    listed = project.run("list")
    assert (listed["count"], listed["problems"]) == (1, [])


# The write-ahead intent


class Ending(FolderWriter):
    """A writer that ends at the first link, as a killed process does."""

    ended = False

    def link(self, path: Path, text: str) -> None:
        self.ended = True
        raise KernelError(f"no link {text!r} at {str(path)!r}")

    def remove(self, path: Path, *, durable: bool = True) -> None:
        if self.ended:
            raise KernelError("it has ended")
        super().remove(path, durable=durable)


#
@pytest.mark.parametrize("taken", [True, False], ids=["taken", "free"])
def test_a_change_that_ended_at_a_link_is_finished_and_somebody_elses_stays(
    tmp_path: Path, home: Path, repo: Path, *, taken: bool
) -> None:
    ended = make_project(tmp_path / "project", home, writer=Ending)
    with pytest.raises(KernelError):
        ended.run("install", source=f"file://{repo}", skill="alpha", **LINK)
    assert (ended.inner / INTENT).exists()
    if taken:
        foreign(ended.agents / "alpha", "file", ended)
    project = make_project(tmp_path / "project", home)
    assert [one["status"] for one in project.run("list")["skills"]] == ["managed"]
    assert not (project.inner / INTENT).exists()
    assert (links(project.agents) == {}) is taken
    assert not taken or (project.agents / "alpha").read_text() == "mine\n"


@pytest.mark.parametrize("slot", ["link/..", "link/a/b", "link/", "link//etc/passwd"])
def test_no_change_can_make_a_link_of_another_name(project: Project, slot: str) -> None:
    project.inner.mkdir(parents=True)
    with InstallTransaction(project.lifecycle.target(InstallOptions()), project.lifecycle.deps.writer) as change:
        change.write(slot, b"../../.claude/skills/alpha")
        with pytest.raises(Refused):
            change.commit()


# The command line


def test_the_command_line_makes_and_takes_links(tmp_path: Path, repo: Path) -> None:
    place: Place = place_in(tmp_path)
    words = ["skill", "install", f"file://{repo}", "--skill", "alpha"]
    refused = place.run(*words, "--link")
    assert (refused.code, "--target agents" in refused.err) == (2, True)
    assert "linked from .agents/skills/alpha" in place.said(*words, "--target", "agents", "--link")
    assert place.said("skill", "uninstall", "alpha") == "uninstalled alpha and .agents/skills/alpha\n"
    (place.root / ".agents/skills/alpha").mkdir()
    assert place.json(*words, "--target", "agents", "--link")["exit_code"] == 3
    assert json.loads((place.root / "skills.lock.json").read_text())["skills"] == {}


# The writer


@pytest.fixture
def writer(tmp_path: Path) -> FolderWriter:
    return FolderWriter([tmp_path / "in" / "a", tmp_path / "in" / "b", tmp_path / "home"], within=tmp_path / "in")


def test_a_link_is_made_as_it_is_written(writer: FolderWriter, tmp_path: Path) -> None:
    writer.link(tmp_path / "in" / "a" / "x", "../b/x")
    assert os.fspath((tmp_path / "in" / "a" / "x").readlink()) == "../b/x"
    with pytest.raises(Refused, match="already exists"):
        writer.link(tmp_path / "in" / "a" / "x", "../b/x")


@pytest.mark.parametrize("text", ["", "/etc", "../c", "../../out", "../../home/x", "../../../../../etc", "a\0b"])
def test_an_invalid_link_target_or_one_outside_the_writable_project_folders_is_refused(
    writer: FolderWriter, tmp_path: Path, text: str
) -> None:
    with pytest.raises(Refused):
        writer.link(tmp_path / "in" / "a" / "x", text)
    assert not (tmp_path / "in").exists()


def test_a_link_must_have_the_same_target_from_the_real_place_of_its_folder(
    writer: FolderWriter, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a" / "deep" / "er").mkdir(parents=True)
    (tmp_path / "in" / "a" / "y").symlink_to("deep/er")
    with pytest.raises(Refused, match="would point elsewhere"):
        writer.link(tmp_path / "in" / "a" / "y" / "x", "../../b/x")
