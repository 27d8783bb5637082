"""Installed skills follow an upstream that edits, deletes, moves, renames and rewrites its history."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.cli.main import run
from skill_repositories import commit, git, make_repo, skill_text

pytestmark = pytest.mark.sample(1)

SKILLS = (".claude", "skills")
Seen = dict[str, tuple[int, int, bytes]]


@dataclass
class Project:
    """A project with skills of one upstream, and the command line in this process."""

    root: Path
    upstream: Path
    capture: pytest.CaptureFixture[str]

    def said(self, *words: str) -> tuple[int, Any]:
        """Runs `navigator skill <words> --json`; returns the exit code and the document."""
        self.capture.readouterr()
        code = run(["--root", str(self.root), "skill", *words, "--json"])
        return code, json.loads(self.capture.readouterr().out)

    def did(self, *words: str) -> Any:
        """The document; the exit code must be 7 if no source answered, 1 if some did not."""
        code, document = self.said(*words)
        lost = [one.get("state") == "unreachable" for one in document.get("skills", ())]
        assert (code, document["exit_code"]) == ((7 if all(lost) else 1) if any(lost) else 0,) * 2, document
        return document

    def install(self, *names: str, more: Sequence[str] = ()) -> None:
        self.did("install", f"file://{self.upstream}", *(f"--skill={name}" for name in names), *more)

    def states(self, *words: str) -> dict[str, str]:
        return {one["name"]: one["state"] for one in self.did("outdated", *words)["skills"]}

    def actions(self, *words: str) -> dict[str, str]:
        return {one["name"]: one["action"] for one in self.did("update", *words)["skills"]}

    def path(self, *parts: str) -> Path:
        return self.root.joinpath(*SKILLS, *parts)

    def receipt(self, name: str) -> Any:
        return json.loads(self.path(".navigator", f"{name}.json").read_text())

    def seen(self, *without: str) -> Seen:
        """Everything in the project except the folders `without`: mode, time of change, bytes."""
        return seen(self.root, {self.root.joinpath(*name.split("/")) for name in without})


def seen(top: Path, without: Container[Path] = ()) -> Seen:
    found: Seen = {}
    for place, folders, files in os.walk(top):
        folders[:] = [name for name in folders if Path(place, name) not in without]
        for path in (Path(place), *(Path(place, name) for name in files)):
            held = path.lstat()
            data = path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(top))] = (held.st_mode, held.st_mtime_ns, data)
    return found


@pytest.fixture
def project(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Project:
    """A project with three skills, all installed from the default branch."""
    files = {
        "skills/alpha/SKILL.md": skill_text("alpha"),
        "skills/alpha/notes.md": "one\n",
        "skills/beta/SKILL.md": skill_text("beta"),
        "skills/gamma/SKILL.md": skill_text("gamma"),
    }
    root = tmp_path / "project"
    (root / "mybox").mkdir(parents=True)
    made = Project(root, make_repo(tmp_path, files), capfd)
    made.install("alpha", "beta", "gamma")
    return made


# Changes in the upstream repository


def edit(repo: Path) -> None:
    commit(repo, {"skills/alpha/notes.md": "two\n"})


def delete(repo: Path) -> None:
    git(repo, "rm", "-r", "--quiet", "skills/alpha")
    git(repo, "commit", "--quiet", "--message", "gone")


def move(repo: Path) -> None:
    (repo / "tools").mkdir()
    git(repo, "mv", "skills/alpha", "tools/alpha")
    git(repo, "commit", "--quiet", "--message", "moved")


def rename_folder(repo: Path) -> None:
    git(repo, "mv", "skills/alpha", "skills/first")
    git(repo, "commit", "--quiet", "--message", "renamed")


def rename_skill(repo: Path) -> None:
    commit(repo, {"skills/alpha/SKILL.md": skill_text("omega")})


def force_push(repo: Path) -> None:
    (repo / "skills/alpha/notes.md").write_text("rewritten\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--amend", "--message", "another history")


def disappear(repo: Path) -> None:
    repo.rename(repo.with_name("elsewhere"))


CHANGES: dict[Callable[[Path], None], tuple[str, str]] = {
    edit: ("changed", "updated"),
    force_push: ("changed", "updated"),
    move: ("moved", "updated"),
    rename_folder: ("moved", "updated"),
    delete: ("deleted", "deleted"),
    rename_skill: ("deleted", "deleted"),
    disappear: ("unreachable", "unreachable"),
}
each_change = pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)


@pytest.mark.requirement("SAF-1")
@each_change
@pytest.mark.parametrize("words", [("outdated",), ("update", "--check"), ("update", "--dry-run")], ids=" ".join)
def test_looking_leaves_every_byte_and_time_as_it_was(
    project: Project, change: Callable[[Path], None], words: Sequence[str]
) -> None:
    change(project.upstream)
    before = project.seen()
    project.did(*words)
    project.did(*words, "alpha")
    assert project.seen() == before


@each_change
def test_outdated_shows_the_state_of_a_skill_after_each_upstream_change(
    project: Project, change: Callable[[Path], None]
) -> None:
    change(project.upstream)
    others = "unreachable" if change is disappear else "current"
    assert project.states() == {"alpha": CHANGES[change][0], "beta": others, "gamma": others}


@each_change
def test_update_follows_what_can_be_followed_and_touches_nothing_else(
    project: Project, change: Callable[[Path], None]
) -> None:
    change(project.upstream)
    before = {name: seen(project.path(name)) for name in ("alpha", "beta", "gamma")}
    assert project.actions()["alpha"] == CHANGES[change][1]
    after = {name: seen(project.path(name)) for name in before}
    assert (after["beta"], after["gamma"]) == (before["beta"], before["gamma"])
    assert CHANGES[change][1] == "updated" or after["alpha"] == before["alpha"]
    assert project.did("verify")["exit_code"] == 0


@pytest.mark.wide
@each_change
def test_an_update_dry_run_reports_the_result_of_the_real_update(
    project: Project, change: Callable[[Path], None]
) -> None:
    change(project.upstream)
    told, done = project.did("update", "--dry-run"), project.did("update")
    assert (told.pop("dry_run"), done.pop("dry_run")) == (True, False)
    assert told == done


@each_change
def test_a_second_update_changes_nothing(project: Project, change: Callable[[Path], None]) -> None:
    change(project.upstream)
    project.did("update")
    before = project.seen("mybox/cache")
    assert project.did("update")["changed"] is False
    assert project.seen("mybox/cache") == before


@pytest.mark.parametrize("change", [edit, force_push], ids=lambda change: change.__name__)
def test_an_update_brings_the_bytes_and_the_commit_of_the_source(
    project: Project, change: Callable[[Path], None]
) -> None:
    change(project.upstream)
    project.did("update")
    assert project.path("alpha", "notes.md").read_bytes() == (project.upstream / "skills/alpha/notes.md").read_bytes()
    assert project.receipt("alpha")["commit"] == git(project.upstream, "rev-parse", "HEAD").strip()


@pytest.mark.wide
@pytest.mark.parametrize(("change", "place"), [(move, "tools/alpha"), (rename_folder, "skills/first")])
def test_a_moved_skill_is_followed_to_its_new_place(
    project: Project, change: Callable[[Path], None], place: str
) -> None:
    change(project.upstream)
    project.did("update")
    assert project.receipt("alpha")["subpath"] == place
    commit(project.upstream, {f"{place}/notes.md": "three\n"})
    assert project.actions()["alpha"] == "updated"
    assert project.path("alpha", "notes.md").read_text() == "three\n"


def test_a_moved_skill_with_another_of_its_name_is_not_guessed_at(project: Project) -> None:
    move(project.upstream)
    commit(project.upstream, {"other/alpha/SKILL.md": skill_text("alpha", "another one")})
    assert project.states()["alpha"] == "deleted"


def test_a_renamed_skill_says_what_it_is_called_now(project: Project) -> None:
    rename_skill(project.upstream)
    (alpha,) = project.did("outdated", "alpha")["skills"]
    assert (alpha["state"], alpha["problem"]) == ("deleted", "it calls itself 'omega' now")
    assert (alpha["path"], alpha["to"]) == ("skills/alpha", git(project.upstream, "rev-parse", "HEAD").strip())


def edited(project: Project) -> None:
    project.path("alpha", "notes.md").write_text("mine\n")
    project.path("alpha", "extra.md").write_text("more of mine\n")


@pytest.mark.parametrize("change", [edit, force_push, move], ids=lambda change: change.__name__)
def test_an_edited_skill_is_not_replaced_and_its_files_are_named(
    project: Project, change: Callable[[Path], None]
) -> None:
    edited(project)
    change(project.upstream)
    commit(project.upstream, {"skills/beta/SKILL.md": skill_text("beta", "better")})
    before = project.seen("mybox/cache")
    for words in (("update",), ("update", "--dry-run"), ("update", "alpha")):
        code, document = project.said(*words)
        assert (code, document["error"]["edited"]) == (3, {"alpha": ["extra.md", "notes.md"]})
        assert all(name in document["error"]["msg"] for name in ("alpha", "extra.md", "notes.md"))
    assert project.seen("mybox/cache") == before


def test_the_others_can_be_updated_beside_an_edited_one(project: Project) -> None:
    edited(project)
    commit(project.upstream, {"skills/alpha/notes.md": "two\n", "skills/beta/SKILL.md": skill_text("beta", "better")})
    assert project.actions("beta", "gamma") == {"beta": "updated", "gamma": "kept"}
    assert project.path("alpha", "notes.md").read_text() == "mine\n"


def test_an_edited_skill_without_news_is_left_alone(project: Project) -> None:
    edited(project)
    before = project.seen("mybox/cache")
    assert project.actions() == {"alpha": "kept", "beta": "kept", "gamma": "kept"}
    assert project.seen("mybox/cache") == before


def test_force_replaces_an_edited_skill_and_keeps_a_copy(project: Project) -> None:
    edited(project)
    edit(project.upstream)
    (alpha,) = project.did("update", "alpha", "--force")["skills"]
    kept = project.root / alpha["backup"]
    assert (kept / "notes.md").read_text() == "mine\n"
    assert (kept / "extra.md").read_text() == "more of mine\n"
    assert project.path("alpha", "notes.md").read_text() == "two\n"
    assert not project.path("alpha", "extra.md").exists()
    assert project.did("verify")["exit_code"] == 0


@pytest.mark.wide
@pytest.mark.parametrize("options", [(), ("--annotate", "--message=m")], ids=["light", "annotated"])
def test_a_tag_that_was_moved_is_followed(project: Project, options: Sequence[str]) -> None:
    git(project.upstream, "tag", *options, "v1")
    project.did("uninstall", "alpha")
    project.install("alpha", more=("--ref=v1",))
    edit(project.upstream)
    assert project.states("alpha") == {"alpha": "current"}
    git(project.upstream, "tag", "--force", *options, "v1")
    assert project.states("alpha") == {"alpha": "changed"}
    assert project.actions("alpha") == {"alpha": "updated"}
    assert project.receipt("alpha")["commit"] == git(project.upstream, "rev-parse", "v1^{commit}").strip()


def test_a_commit_stays_what_it_is(project: Project) -> None:
    first = git(project.upstream, "rev-parse", "HEAD").strip()
    project.did("uninstall", "alpha")
    project.install("alpha", more=(f"--ref={first}",))
    force_push(project.upstream)
    before = seen(project.path("alpha"))
    assert project.actions("alpha") == {"alpha": "kept"}
    assert seen(project.path("alpha")) == before


@pytest.mark.wide
def test_a_deleted_branch_makes_only_its_own_skills_unreachable(project: Project) -> None:
    git(project.upstream, "branch", "feature")
    project.did("uninstall", "alpha")
    project.install("alpha", more=("--ref=feature",))
    git(project.upstream, "branch", "--delete", "--force", "feature")
    commit(project.upstream, {"skills/beta/SKILL.md": skill_text("beta", "better")})
    told = {one["name"]: one for one in project.did("outdated")["skills"]}
    assert (told["alpha"]["state"], "feature" in told["alpha"]["problem"]) == ("unreachable", True)
    assert project.actions() == {"alpha": "unreachable", "beta": "updated", "gamma": "kept"}
    assert project.path("alpha", "SKILL.md").is_file()


@pytest.mark.wide
def test_a_missing_source_makes_only_its_own_skills_unreachable(project: Project, tmp_path: Path) -> None:
    other = make_repo(tmp_path, {"delta/SKILL.md": skill_text("delta")}, name="other")
    project.did("install", f"file://{other}")
    disappear(project.upstream)
    commit(other, {"delta/SKILL.md": skill_text("delta", "better")})
    assert project.actions() == {
        "alpha": "unreachable",
        "beta": "unreachable",
        "delta": "updated",
        "gamma": "unreachable",
    }
    assert all(one["problem"] for one in project.did("outdated", "alpha", "beta")["skills"])


def test_a_refused_skill_stays_and_the_others_are_updated(project: Project) -> None:
    """One has no usable manifest any more, one has a link that leads out of its repository."""
    (project.upstream / "skills/beta/secret").symlink_to("/etc/passwd")
    files = {"skills/alpha/SKILL.md": "---\nname: [\n", "skills/gamma/SKILL.md": skill_text("gamma", "better")}
    commit(project.upstream, files)
    code, document = project.said("outdated")
    assert (code, {one["name"]: one["state"] for one in document["skills"]}) == (
        1,
        {"alpha": "refused", "beta": "refused", "gamma": "changed"},
    )
    before = {name: seen(project.path(name)) for name in ("alpha", "beta")}
    code, document = project.said("update")
    actions = {one["name"]: one["action"] for one in document["skills"]}
    assert (code, actions) == (1, {"alpha": "refused", "beta": "refused", "gamma": "updated"})
    assert [one["name"] for one in document["left_out"]] == ["alpha", "beta"]
    assert all(one["problem"] for one in document["skills"] if one["action"] == "refused")
    assert {name: seen(project.path(name)) for name in before} == before
    assert "better" in project.path("gamma", "SKILL.md").read_text()
    code, document = project.said("update", "beta")  # alone, it is an error with its hint
    assert (code, "skills" in document) == (3, False)


def test_offline_nothing_is_asked_and_nothing_is_lost(project: Project) -> None:
    edit(project.upstream)
    before = project.seen("mybox/cache")
    assert set(project.actions("--offline").values()) <= {"kept", "unreachable"}
    assert project.seen("mybox/cache") == before


def test_a_skill_under_another_name_keeps_it(project: Project) -> None:
    project.did("uninstall", "alpha")
    project.install("alpha", more=("--as=first",))
    edit(project.upstream)
    assert project.actions("first") == {"first": "updated"}
    assert project.path("first", "notes.md").read_text() == "two\n"
    assert "name: first" in project.path("first", "SKILL.md").read_text()


@pytest.mark.wide
def test_a_whole_cycle_ends_where_the_upstream_is(project: Project) -> None:
    for change in (edit, move):
        change(project.upstream)
        project.did("update")
    commit(project.upstream, {"tools/alpha/notes.md": "four\n", "tools/alpha/more.md": "new\n"})
    git(project.upstream, "commit", "--quiet", "--amend", "--message", "another history")
    git(project.upstream, "rm", "-r", "--quiet", "skills/beta")
    git(project.upstream, "commit", "--quiet", "--message", "gone")
    assert project.actions() == {"alpha": "updated", "beta": "deleted", "gamma": "kept"}
    assert {path.name for path in project.path("alpha").iterdir()} == {"SKILL.md", "notes.md", "more.md"}
    assert project.path("beta", "SKILL.md").is_file()
    assert project.did("verify")["exit_code"] == 0
