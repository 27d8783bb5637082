"""The lock is what the project wants, receipts are what is here: two people, one lock (LIF-13, X-38)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place
from navigator_kernel.errors import (
    ConsentNeeded,
    Damaged,
    IntegrityMismatch,
    Refused,
    SkillNotFound,
    UsageProblem,
)
from navigator_kernel.skills.catalog.receipts import is_left_behind
from navigator_kernel.skills.install.conflict import Side
from skill_repositories import commit, git, make_repo, skill_text
from skills.conftest import Project, make_project
from tables import cases

pytestmark = pytest.mark.sample(1)

NAMES = ("alpha", "beta", "gamma")


@pytest.fixture
def up(tmp_path: Path) -> Path:
    """The repository of three skills."""
    return make_repo(tmp_path, {f"{name}/SKILL.md": skill_text(name) for name in NAMES}, name="up")


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Project:
    return make_project(tmp_path / "project", home)


@pytest.fixture
def team(tmp_path: Path, home: Path, up: Path) -> tuple[Project, Project]:
    """Two clones of a project with alpha and beta; only the lock is shared."""
    one, other = make_project(tmp_path / "one", home), make_project(tmp_path / "other", home)
    for project in (one, other):
        project.run("install", source=f"file://{up}", skill=["alpha", "beta"])
    assert read(one) == read(other)
    return one, other


def read(project: Project) -> dict[str, Any]:
    entries: dict[str, Any] = json.loads((project.root / "skills.lock.json").read_text())["skills"]
    return entries


def pull(project: Project, mate: Project) -> dict[str, Any]:
    """The lock of the mate, as git brings it."""
    shutil.copy2(mate.root / "skills.lock.json", project.root / "skills.lock.json")
    return read(project)


def new(up: Path, name: str, text: str = "newer") -> None:
    commit(up, {f"{name}/SKILL.md": skill_text(name, text)})


def states(project: Project) -> dict[str, str]:
    """What `list`, `verify` and `outdated` say alike."""
    listed = {one["name"]: one["state"] for one in project.run("list")["lock"] if one["level"] == "project"}
    try:
        checked = project.run("verify")["skills"]
    except IntegrityMismatch as error:
        checked = error.data["skills"]
    verified = {one["name"]: one["state"] for one in checked if one["state"] != "same"}
    seen = {one["name"]: one["lock"] for one in project.run("outdated")["skills"] if one["lock"] != "same"}
    assert verified == listed
    assert seen == {name: state for name, state in verified.items() if state != "edited"}
    return verified


def harm(project: Project, mate: Project, up: Path) -> dict[str, Any]:
    """The mate updates alpha, installs gamma and uninstalls beta; the project pulls that."""
    new(up, "alpha")
    mate.run("update")
    mate.run("install", source=f"file://{up}", skill="gamma")
    mate.run("uninstall", name="beta")
    return pull(project, mate)


def test_what_the_lock_wants_and_is_not_here_is_named_by_each_reader(team: tuple[Project, Project], up: Path) -> None:
    one, other = team
    harm(one, other, up)
    assert states(one) == {"alpha": "stale", "beta": "extra", "gamma": "missing"}
    assert states(other) == {}


@pytest.mark.parametrize("command", ["restore", "update"])
def test_a_skill_whose_folder_is_gone_is_missing_for_each_reader_and_comes_back(
    team: tuple[Project, Project], command: str
) -> None:
    one, _ = team
    shutil.rmtree(one.skills / "alpha")
    assert states(one) == {"alpha": "missing"}
    getattr(one.lifecycle, command)()
    assert states(one) == {}
    assert (one.skills / "alpha" / "SKILL.md").is_file()


def test_an_edited_skill_is_named_by_each_reader(team: tuple[Project, Project]) -> None:
    one, _ = team
    (one.skills / "alpha" / "SKILL.md").write_text(skill_text("alpha", "mine"))
    assert states(one) == {"alpha": "edited"}


@cases("command")
def test_a_command_changes_only_the_entries_that_it_is_about(
    team: tuple[Project, Project], up: Path, command: tuple[str, str]
) -> None:
    one, other = team
    before = harm(one, other, up)
    verb, name = command
    new(up, name, "newest")
    params = {"source": f"file://{up}", "skill": name} if verb == "install" else {"name": name}
    one.run(verb, **params)
    after = read(one)
    assert {key: entry for key, entry in after.items() if key != name} == {
        key: entry for key, entry in before.items() if key != name
    }
    assert (name in after) == (verb != "uninstall")
    if verb != "uninstall":
        assert after[name] != before.get(name)


def test_an_update_of_all_brings_what_is_missing_and_leaves_what_the_lock_does_not_want(
    team: tuple[Project, Project], up: Path
) -> None:
    one, other = team
    before = harm(one, other, up)
    told = {skill["name"]: skill["action"] for skill in one.run("update")["skills"]}
    assert told == {"alpha": "updated", "beta": "extra", "gamma": "updated"}
    assert read(one) == before
    assert states(one) == {"beta": "extra"}


def test_an_install_without_a_source_brings_the_folder_to_the_lock(team: tuple[Project, Project], up: Path) -> None:
    one, other = team
    before = harm(one, other, up)
    planned = one.lifecycle.restore(frozen=False, options=_dry())
    assert states(one) != {}
    done = one.lifecycle.restore(frozen=False)
    told = {skill.name: skill.action for skill in done.skills}
    assert told == {"alpha": "restored", "beta": "removed", "gamma": "restored"}
    assert [skill.action for skill in planned.skills] == [skill.action for skill in done.skills]
    assert states(one) == {}
    assert read(one) == before
    assert not one.lifecycle.restore(frozen=False).changed


def test_a_rollback_changes_only_the_entries_that_the_last_change_was_about(
    team: tuple[Project, Project], up: Path
) -> None:
    one, other = team
    one.run("install", source=f"file://{up}", skill="gamma")
    pull(other, one)
    other.lifecycle.restore(frozen=False)
    new(up, "alpha")
    other.run("update", name="alpha")
    other.run("uninstall", name="beta")
    mates = pull(one, other)
    told = {skill["name"]: skill["action"] for skill in one.run("rollback")["skills"]}
    assert told == {"alpha": "kept", "gamma": "removed"}
    assert read(one) == {"alpha": mates["alpha"]}
    assert states(one) == {"alpha": "stale", "beta": "extra"}


def test_a_rollback_leaves_an_entry_that_somebody_else_changed_after_it(
    team: tuple[Project, Project], up: Path
) -> None:
    one, other = team
    new(up, "alpha")
    one.run("update", name="alpha")
    new(up, "alpha", "newest")
    other.run("update", name="alpha")
    mates = pull(one, other)
    assert not one.run("rollback")["changed"]
    assert read(one) == mates


def test_missing_skills_do_not_count_as_current(team: tuple[Project, Project], tmp_path: Path) -> None:
    one, _ = team
    shutil.rmtree(one.skills)
    done = Place(root=one.root).run("outdated")
    assert (done.out.splitlines()[-1], done.code) == ("2 missing here", 1)
    assert "2 skills of the lock not installed here; to install: navigator install" in done.err


def test_where_no_source_can_be_reached_nothing_is_compared_and_that_is_said(
    team: tuple[Project, Project], tmp_path: Path
) -> None:
    one, _ = team
    (tmp_path / "up").rename(tmp_path / "gone")
    done = Place(root=one.root).run("outdated")
    assert (done.out.splitlines()[-1], done.code) == ("2 unreachable", 7)
    assert "no source could be reached" in done.err


def test_update_says_why_a_source_cannot_be_reached(team: tuple[Project, Project], tmp_path: Path) -> None:
    one, _ = team
    (tmp_path / "up").rename(tmp_path / "gone")
    done = Place(root=one.root).run("update")
    assert "unreachable alpha: git fetch of " in done.out
    assert "does not appear to be a git repository" in done.out


@pytest.mark.requirement("LIF-13")
def test_a_checkout_with_other_line_ends_keeps_the_skills_as_they_are(
    team: tuple[Project, Project], tmp_path: Path
) -> None:
    """git on Windows writes CRLF: https://github.com/vercel-labs/skills/issues/781"""
    one, _ = team
    git(one.root, "init", "-q")
    git(one.root, "add", "-A")
    git(one.root, "commit", "-qm", "skills")
    git(tmp_path, "clone", "-q", "-c", "core.autocrlf=true", str(one.root), "windows")
    clone = Place(root=tmp_path / "windows")
    assert clone.run("verify").code == 0
    assert clone.run("install", "--frozen").code == 0


def _dry() -> Any:
    from navigator_kernel.skills.options import InstallOptions

    return InstallOptions(dry_run=True)


def test_a_frozen_install_refuses_what_the_lock_would_have_to_change_for(
    team: tuple[Project, Project], up: Path
) -> None:
    one, other = team
    harm(one, other, up)
    with pytest.raises(Refused, match="not in the lock: beta"):
        one.run("frozen")
    assert states(one) == {"alpha": "stale", "beta": "extra", "gamma": "missing"}


def test_an_edited_skill_is_not_replaced_by_an_install_without_a_source(
    team: tuple[Project, Project], up: Path
) -> None:
    one, other = team
    harm(one, other, up)
    mine = one.skills / "beta" / "SKILL.md"
    mine.write_text(skill_text("beta", "mine"))
    with pytest.raises(Refused, match="'beta' was changed"):
        one.lifecycle.restore(frozen=False)
    assert mine.read_text() == skill_text("beta", "mine")


def test_without_a_lock_and_a_source_nothing_is_installed(project: Project) -> None:
    with pytest.raises(UsageProblem, match="no source"):
        project.lifecycle.restore(frozen=False)


def test_a_restored_skill_keeps_its_pin(project: Project, up: Path) -> None:
    git(up, "tag", "v1")
    project.run("install", source=f"file://{up}", skill="alpha", ref="v1")
    before = read(project)
    new(up, "alpha")
    (project.skills / "alpha" / "SKILL.md").write_text("mine")
    project.run("frozen", skill="alpha", force=True)
    assert read(project) == before
    assert before["alpha"]["ref"] == "v1"
    assert project.run("verify")["count"] == 1


def test_a_locked_skill_that_is_not_here_can_be_uninstalled(team: tuple[Project, Project], up: Path) -> None:
    one, other = team
    harm(one, other, up)
    one.run("uninstall", name="gamma")
    assert list(read(one)) == ["alpha"]
    with pytest.raises(SkillNotFound):
        one.run("uninstall", name="gamma")


def test_a_locked_skill_is_not_replaced_from_another_source(
    team: tuple[Project, Project], up: Path, tmp_path: Path
) -> None:
    one, other = team
    before = harm(one, other, up)
    fork = make_repo(tmp_path, {"gamma/SKILL.md": skill_text("gamma", "not the same")}, name="fork")
    with pytest.raises(Refused, match="from another source"):
        one.run("install", source=f"file://{fork}", skill="gamma")
    assert read(one) == before


# Files that are left behind


@cases("path")
def test_a_file_that_a_system_or_an_editor_leaves_does_not_count(team: tuple[Project, Project], path: str) -> None:
    one, _ = team
    assert is_left_behind(path)
    file = one.skills / "alpha" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"\0left")
    assert states(one) == {}
    assert not one.lifecycle.restore().changed


@cases("path")
def test_any_other_file_is_a_change(team: tuple[Project, Project], path: str) -> None:
    one, _ = team
    file = one.skills / "alpha" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"left")
    assert states(one) == {"alpha": "edited"}


def test_a_left_file_that_the_skill_itself_names_is_a_change(project: Project, tmp_path: Path) -> None:
    files = {"alpha/SKILL.md": skill_text("alpha"), "alpha/run.sh": "sh ./.DS_Store\n"}
    project.run("install", source=f"file://{make_repo(tmp_path, files)}")
    (project.skills / "alpha" / ".DS_Store").write_text("rm -rf ~\n")
    assert states(project) == {"alpha": "edited"}


def test_a_system_may_rewrite_its_file_that_the_source_has(project: Project, tmp_path: Path) -> None:
    files = {"alpha/SKILL.md": skill_text("alpha"), "alpha/.DS_Store": "as published"}
    project.run("install", source=f"file://{make_repo(tmp_path, files)}")
    file = project.skills / "alpha" / ".DS_Store"
    if file.exists():
        file.write_text("as the system wants it")
        assert states(project) == {}
        file.unlink()
    assert states(project) == {}


# Merges


def shell(*words: str, cwd: Path) -> int:
    return subprocess.run(["git", *words], cwd=cwd, capture_output=True, timeout=60, check=False).returncode


@pytest.fixture
def merging(tmp_path: Path, home: Path, up: Path) -> Project:
    """A project in a repository, with alpha, and a branch `mate` that adds beta and updates alpha to `theirs`; here gamma
    was added and alpha updated to `ours`, and the merge of both has conflicts."""
    project = make_project(tmp_path / "merged", home)
    root, source = project.root, f"file://{up}"
    (root / ".gitignore").write_text(".claude/\n.agents/\n")
    project.run("install", source=source, skill="alpha")
    for words in (["init", "-qb", "main"], ["add", "-A"], ["commit", "-qm", "base"], ["checkout", "-qb", "mate"]):
        assert shell(*words, cwd=root) == 0
    project.run("install", source=source, skill="beta")
    new(up, "alpha", "theirs")
    project.run("update", name="alpha")
    assert shell("commit", "-qam", "mate", cwd=root) == 0
    assert shell("checkout", "-q", "main", cwd=root) == 0
    project.lifecycle.restore(frozen=False)
    new(up, "alpha", "ours")
    project.run("update")
    project.run("install", source=source, skill="gamma")
    assert shell("commit", "-qam", "main", cwd=root) == 0
    assert shell("merge", "mate", cwd=root) != 0
    return project


def test_a_lock_with_conflict_markers_is_named_as_such(merging: Project) -> None:
    [problem] = merging.run("list")["problems"]
    assert problem["code"] == "lock-damaged" and "conflict markers" in problem["message"]
    with pytest.raises(Damaged, match="conflict markers") as caught:
        merging.run("verify")
    assert "doctor --repair" in caught.value.hint


@pytest.mark.parametrize("side", ["ours", "theirs"])
@pytest.mark.parametrize("staged", [True, False])
def test_a_repair_merges_entry_by_entry_and_asks_about_one_that_both_changed(
    merging: Project, side: Side, staged: bool
) -> None:
    lock = merging.root / "skills.lock.json"
    wanted = {name: json.loads(_shown(merging, f"{name}:skills.lock.json"))["skills"] for name in ("main", "mate")}
    before = lock.read_bytes()
    if not staged:
        shutil.rmtree(merging.root / ".git")
    with pytest.raises(ConsentNeeded) as caught:
        merging.lifecycle.repair()
    assert [one.name for one in caught.value.data["conflicts"]] == ["alpha"]
    assert lock.read_bytes() == before
    merging.lifecycle.repair(take={"alpha": side})
    chosen = wanted["main" if side == "ours" else "mate"]["alpha"]
    assert read(merging) == {"alpha": chosen, "beta": wanted["mate"]["beta"], "gamma": wanted["main"]["gamma"]}
    merging.lifecycle.restore(frozen=False)
    assert states(merging) == {}


def _shown(project: Project, what: str) -> str:
    return subprocess.run(["git", "show", what], cwd=project.root, capture_output=True, text=True, check=True).stdout


def test_a_repair_leaves_a_lock_that_can_be_read_as_it_is(team: tuple[Project, Project], up: Path) -> None:
    one, other = team
    harm(one, other, up)
    before = (one.root / "skills.lock.json").read_bytes()
    one.run("repair")
    assert (one.root / "skills.lock.json").read_bytes() == before


def test_a_repair_saves_the_entries_of_a_broken_lock(team: tuple[Project, Project], up: Path) -> None:
    one, other = team
    before = harm(one, other, up)
    lock = one.root / "skills.lock.json"
    lock.write_text(lock.read_text().replace('  "version": 1\n', ""))
    one.run("repair")
    assert read(one)["gamma"] == before["gamma"]


def test_only_the_persons_word_makes_the_skills_of_a_lock_trusted(tmp_path: Path) -> None:
    text = skill_text("run", extra="command: echo ran\n")
    up = make_repo(tmp_path, {"run/SKILL.md": text}, name="commands")
    maker, clone = Place(root=tmp_path / "maker"), Place(root=tmp_path / "clone")
    for place in (maker, clone):
        place.root.mkdir()
    make_project(maker.root, tmp_path / "elsewhere").run("install", source=f"file://{up}")
    shutil.copy2(maker.root / "skills.lock.json", clone.root / "skills.lock.json")
    assert clone.run("install", "--frozen").code == 0
    assert clone.run("ask", "/run now").code == 9
    assert "trusted as the lock has them: run" in clone.said("install", "--frozen", "--trust-lock")
    assert clone.run("ask", "/run now").code != 9
