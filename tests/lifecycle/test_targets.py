"""`.agents/skills` is a separate place: copies there have receipts, a database and a lock (issue 4, item 9)."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from cli.support import Place, place_in
from lifecycle.trees import content, tree
from navigator_kernel.errors import Damaged, IntegrityMismatch, NotFound, Refused, SkillNotFound
from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
from navigator_kernel.skills.catalog.listing import Root
from navigator_kernel.skills.install.apply import INTENT, _seal
from skill_repositories import commit, skill_text
from skills.conftest import Project, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.sample(1)


@pytest.fixture
def both(held: Project, repo: Path) -> Project:
    """A project with solo, alpha and beta in .claude/skills, and alpha also in .agents/skills."""
    held.run("install", source=f"file://{repo}", skill="alpha", target="agents")
    return held


def names(project: Project, **given: Any) -> list[tuple[str, str, str]]:
    return [(one["name"], one["path"], one["status"]) for one in project.run("list", **given)["skills"]]


@pytest.mark.requirement("LIF-2")
def test_a_copy_has_its_folder_receipt_database_and_lock_below_agents(tmp_path: Path, home: Path, repo: Path) -> None:
    project = make_project(tmp_path / "project", home)
    answer = project.run("install", source=f"file://{repo}", skill="alpha", target="agents")
    assert (answer["target"], answer["skills"][0]["path"]) == ("agents", ".agents/skills/alpha")
    held = {name for name in content(project.root) if "mybox" not in name}
    inner = ".agents/skills/.navigator"
    assert held == {
        ".agents/skills.lock.json",
        ".agents/skills/alpha/SKILL.md",
        ".agents/skills/alpha/run.py",
        ".agents/skills/skills.db",
        f"{inner}/alpha.json",
    }
    assert list(json.loads((project.root / ".agents/skills.lock.json").read_text())["skills"]) == ["alpha"]


def test_a_copy_leaves_the_skills_of_claude_alone(held: Project, repo: Path) -> None:
    before = content(held.root)
    held.run("install", source=f"file://{repo}", all=True, target="agents")
    now = content(held.root)
    assert {name: one for name, one in now.items() if not name.startswith(".agents/")} == before
    assert held.run("install", source=f"file://{repo}", all=True, target="agents")["changed"] is False


@pytest.mark.requirement("LIF-4")
def test_a_copy_is_listed_as_managed_and_a_persons_own_skill_beside_it_as_theirs(
    tmp_path: Path, home: Path, repo: Path
) -> None:
    project = make_project(tmp_path / "project", home)
    project.run("install", source=f"file://{repo}", skill="alpha", target="agents")
    (project.agents / "mine").mkdir()
    (project.agents / "mine" / "SKILL.md").write_text(skill_text("mine"))
    listed = [("alpha", ".agents/skills/alpha", "managed"), ("mine", ".agents/skills/mine", "unmanaged")]
    assert names(project) == names(project, target="agents") == listed
    assert names(project, target="claude") == names(project, user=True) == []


def test_the_skill_of_claude_is_read_where_both_are_there_and_another_text_is_reported(both: Project) -> None:
    answer = both.run("list")
    assert [one["path"] for one in answer["skills"] if one["name"] == "alpha"] == [".claude/skills/alpha"]
    assert answer["problems"] == []
    (both.agents / "alpha" / "SKILL.md").write_text(skill_text("alpha", "does another thing"))
    assert [problem["code"] for problem in both.run("list")["problems"]] == ["shadowed"]


def test_verify_looks_at_both_places_or_at_the_one_that_is_named(both: Project) -> None:
    assert both.run("verify")["count"] == 4
    (both.agents / "alpha" / "run.py").write_text("print('mine')\n")
    assert both.run("verify", target="claude")["count"] == 3
    with pytest.raises(IntegrityMismatch) as caught:
        both.run("verify", name="alpha")
    told = [(one["target"], one["modified"]) for one in caught.value.data["skills"]]
    assert told == [("claude", []), ("agents", ["run.py"])]


def test_a_changed_copy_is_not_run(both: Project) -> None:
    catalogue = ResourceCatalogue(roots=(Root(path=both.agents, level="project"),))
    before = catalogue.create_executor("skill:alpha").is_changed
    (both.agents / "alpha" / "run.py").write_text("print('mine')\n")
    assert (before, catalogue.create_executor("skill:alpha").is_changed) == (False, True)


@pytest.mark.wide
def test_an_update_follows_the_copy_that_is_named(both: Project, repo: Path) -> None:
    commit(repo, {"skills/alpha/SKILL.md": skill_text("alpha", "newer")})
    told = both.run("outdated", target="agents")
    assert (told["level"], told["target"], told["count"]) == ("project", "agents", 1)
    before = content(both.skills)
    answer = both.run("update", target="agents")
    assert [(one["name"], one["action"]) for one in answer["skills"]] == [("alpha", "updated")]
    assert (both.agents / "alpha" / "SKILL.md").read_text() == skill_text("alpha", "newer")
    assert content(both.skills) == before
    both.run("rollback", target="agents")
    assert (both.agents / "alpha" / "SKILL.md").read_text() == skill_text("alpha", "first of two")


@pytest.mark.requirement("LIF-5")
def test_uninstall_takes_the_copy_of_the_place_that_is_named(both: Project) -> None:
    before = content(both.skills)
    told = both.run("uninstall", name="alpha", target="agents")
    assert (told["level"], told["target"], told["dry_run"]) == ("project", "agents", False)
    assert content(both.skills) == before
    assert not (both.agents / "alpha").exists()
    with pytest.raises(SkillNotFound):
        both.run("uninstall", name="alpha", target="agents")


def test_frozen_restores_the_copies_from_their_own_lock(both: Project) -> None:
    before = content(both.agents)
    shutil.rmtree(both.agents)
    assert both.run("frozen", target="agents")["changed"]
    assert {name: one for name, one in before.items() if "/locks/" not in name} == content(both.agents)
    (both.root / ".agents" / "skills.lock.json").unlink()
    with pytest.raises(NotFound, match=r"\.agents/skills\.lock\.json"):
        both.run("frozen", target="agents")


def test_repair_rebuilds_the_records_of_the_copies(both: Project) -> None:
    lock, database = both.root / ".agents" / "skills.lock.json", both.agents / "skills.db"
    before = lock.read_bytes(), database.read_bytes()
    lock.write_text("{")
    database.unlink()
    with pytest.raises(Damaged):
        both.run("check")
    told = [(one["level"], one["target"], one["rewritten"]) for one in both.run("repair")["levels"]]
    rewritten = [".agents/skills.lock.json", ".agents/skills/skills.db"]
    assert told == [("project", "claude", []), ("project", "agents", rewritten), ("user", "claude", [])]
    assert (lock.read_bytes(), database.read_bytes()) == before


def test_a_person_has_a_place_for_copies_too(tmp_path: Path, home: Path, repo: Path) -> None:
    project = make_project(tmp_path / "project", home)
    project.run("install", source=f"file://{repo}", skill="alpha", target="agents", user=True)
    assert content(project.root) == {}
    assert (home / ".agents" / "skills" / "alpha" / "SKILL.md").is_file()
    assert (home / ".agents" / "skills.lock.json").is_file()
    assert names(project, user=True, target="agents") == [("alpha", "skills/alpha", "managed")]
    assert project.run("verify", user=True)["count"] == 1


def test_a_lock_of_the_npm_package_can_be_imported_there(tmp_path: Path, home: Path, repo: Path) -> None:
    project = make_project(tmp_path / "project", home)
    entry = {"source": f"file://{repo}", "sourceType": "git", "skillPath": "skills/beta/SKILL.md"}
    (project.root / "skills-lock.json").write_text(json.dumps({"version": 1, "skills": {"beta": entry}}))
    answer = project.run("import-lock", target="agents")
    assert [one["path"] for one in answer["imported"]] == [".agents/skills/beta"]


def test_a_copy_is_exported_from_the_place_that_is_named(both: Project, tmp_path: Path) -> None:
    (both.agents / "alpha" / "more.md").write_text("more\n")
    both.run("export", name="alpha", of="agents", target=str(tmp_path / "out"))
    assert (tmp_path / "out" / "alpha" / "more.md").is_file()


def test_an_unfinished_change_there_is_finished_by_any_command(both: Project, tmp_path: Path) -> None:
    """The intent is that of a change that adds nothing and drops alpha."""
    inner = both.agents / ".navigator"
    scratch = inner / "change-0123456789abcdef"
    scratch.mkdir()
    body = {"v": 2, "scratch": scratch.name, "seal": _seal(scratch), "folders": {"alpha": [False, ""]}, "files": {}}
    (inner / INTENT).write_text(json.dumps(body))
    both.run("list")
    assert not (both.agents / "alpha").exists()
    assert not (inner / INTENT).exists()


@pytest.mark.parametrize("link", [".agents", ".agents/skills"])
@pytest.mark.parametrize("out", [True, False], ids=["out", "claude"])
def test_a_place_that_is_really_elsewhere_is_refused_and_nothing_written(
    held: Project, repo: Path, tmp_path: Path, link: str, *, out: bool
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "skills").mkdir(parents=True)
    ahead = elsewhere if out else held.root / ".claude"
    (held.root / link).parent.mkdir(exist_ok=True)
    (held.root / link).symlink_to(ahead if link == ".agents" else ahead / "skills")
    before = tree(tmp_path)
    for more in ({}, {"link": True}):
        with pytest.raises(Refused):
            held.run("install", source=f"file://{repo}", skill="alpha", target="agents", **more)
    with pytest.raises(Refused):
        held.run("uninstall", name="alpha", target="agents")
    assert {name: one for name, one in tree(tmp_path).items() if ".git/" not in name} == {
        name: one for name, one in before.items() if ".git/" not in name
    }
    assert held.run("verify")["count"] == 3


@pytest.mark.wide
def test_the_command_line_takes_the_target(tmp_path: Path, repo: Path) -> None:
    place: Place = place_in(tmp_path)
    place.said("skill", "install", f"file://{repo}", "--all", "--target", "agents")
    mine: list[Any] = place.json("skill", "list", "--target", "agents")["skills"]
    assert [(one["name"], one["status"]) for one in mine] == [("alpha", "managed"), ("beta", "managed")]
    assert place.json("skill", "verify", "--target", "agents")["count"] == 2
    assert place.json("skill", "outdated", "--target", "agents")["count"] == 0
    place.said("skill", "export", "alpha", "out", "--target", "agents")
    assert (place.root / "out" / "alpha" / "SKILL.md").is_file()
    assert place.said("skill", "uninstall", "alpha", "--target", "agents") == "uninstalled alpha\n"
    assert "project, .agents: 1 skill," in place.said("skill", "repair")
    assert place.run("skill", "list", "--target", "cursor").code == 2
