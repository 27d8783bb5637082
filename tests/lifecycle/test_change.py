"""A change of the installed skills happens whole or not at all, and only where it may (X-38; issue 4, items 5 to 7)."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, place_in
from lifecycle.trees import content, tree
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.errors import FetchFailed, IntegrityMismatch, KernelError, NotFound, Refused
from navigator_kernel.skills.install.lockfile import entries_in, lock_bytes
from skill_repositories import commit, git, skill_text
from skills.conftest import Project, make_project
from tables import table

pytestmark = pytest.mark.sample(1)


class Failing(FolderWriter):
    """A writer that fails once, before its `left`-th operation."""

    left = -1
    error: BaseException = KernelError("the disk is full")

    def fail(self) -> None:
        Failing.left -= 1
        if Failing.left == 0:
            raise Failing.error

    def write(self, path: Path, data: bytes, *, mode: int = 0o644) -> None:
        self.fail()
        super().write(path, data, mode=mode)

    def make_folder(self, path: Path) -> None:
        self.fail()
        super().make_folder(path)

    def move(self, source: Path, target: Path) -> None:
        self.fail()
        super().move(source, target)

    def link(self, path: Path, text: str) -> None:
        self.fail()
        super().link(path, text)

    def remove(self, path: Path, *, durable: bool = True) -> None:
        self.fail()
        super().remove(path, durable=durable)


# The parameters of each command, given the repository of alpha and beta.
COMMANDS: Mapping[str, Callable[[Path], dict[str, Any]]] = {
    "install": lambda repo: {"source": f"file://{repo}", "all": True},
    "update": lambda repo: {"force": True},
    "uninstall": lambda repo: {"name": ["alpha", "beta"]},
    "rollback": lambda repo: {},
    "repair": lambda repo: {},
    "link": lambda repo: {"source": f"file://{repo}", "all": True, "target": "agents", "link": True},
    "unlink": lambda repo: {"name": ["alpha", "beta"]},
}
OPERATIONS = {"link": "install", "unlink": "uninstall"}
Ready = Callable[[str], Project]


def upstream(repo: Path) -> str:
    """Changes alpha and moves beta; returns the id of the commit."""
    git(repo, "mv", "skills/beta", "skills/elsewhere")
    return commit(repo, {"skills/alpha/SKILL.md": skill_text("alpha", "newer"), "skills/alpha/new.py": "2\n"})


def edit(project: Project) -> None:
    (project.skills / "alpha" / "run.py").write_text("print('mine')\n")


@pytest.fixture
def ready(tmp_path: Path, home: Path, repo: Path, other: Path) -> Ready:
    """Makes a project in which the command has something to do."""

    def make(command: str) -> Project:
        project = make_project(tmp_path / "project", home, writer=Failing)
        project.run("install", source=f"file://{other}")
        if command not in {"install", "link"}:
            link = {"target": "agents", "link": True} if command == "unlink" else {}
            project.run("install", source=f"file://{repo}", all=True, **link)
        if command == "update":
            upstream(repo)
            edit(project)
        if command == "repair":
            (project.skills / "skills.db").unlink()
            (project.root / "skills.lock.json").write_text("{")
        return project

    return make


def settled(project: Project) -> dict[str, tuple[int, bytes]]:
    """The contents of the project without staged files and copies of damaged ones; an intent counts."""
    aside = r"/change-[0-9a-f]{16}/|\.damaged-[0-9a-f]{8}$"
    return {name: one for name, one in content(project.root).items() if not re.search(aside, name)}


def copied(project: Project, to: Path, home: Path) -> Project:
    shutil.copytree(project.root, to, symlinks=True)
    return make_project(to, home)


#
@pytest.mark.parametrize("error", [KernelError("the disk is full"), KeyboardInterrupt()], ids=["disk", "ctrl-c"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_failure_at_any_step_takes_everything_back(
    ready: Ready, tmp_path: Path, home: Path, repo: Path, monkeypatch: pytest.MonkeyPatch, command: str, error: Any
) -> None:
    project, params = ready(command), COMMANDS[command](repo)
    done = copied(project, tmp_path / "done", home)
    operation = OPERATIONS.get(command, command)
    done.run(operation, **params)
    before, after, steps = settled(project), settled(done), 0
    assert before != after
    monkeypatch.setattr(Failing, "error", error)
    while settled(project) != after:
        steps += 2 if isinstance(error, KernelError) else 5
        monkeypatch.setattr(Failing, "left", steps)
        try:
            project.run(operation, **params)
        except type(error):
            assert settled(project) in (before, after), f"{command} fails at {steps}"
    monkeypatch.setattr(Failing, "left", -1)
    project.run("repair")
    assert content(project.root) == content(done.root)
    assert steps > 5


@pytest.mark.wide
def test_a_second_identical_install_changes_nothing_not_even_times(held: Project, repo: Path, other: Path) -> None:
    before = tree(held.root)
    assert held.run("install", source=f"file://{repo}", all=True)["changed"] is False
    assert held.run("install", source=f"file://{other}", skill="solo")["changed"] is False
    assert held.run("frozen")["changed"] is False
    assert held.run("update")["changed"] is False
    assert tree(held.root) == before


def test_a_failed_install_changes_nothing_not_even_times(held: Project, tmp_path: Path) -> None:
    before = tree(held.root)
    for source in (f"file://{tmp_path}/nothing", str(tmp_path / "nothing")):
        with pytest.raises(KernelError):
            held.run("install", source=source)
    with pytest.raises(KernelError):
        held.run("uninstall", name="nothing")
    assert tree(held.root) == before


@pytest.mark.parametrize("command", ["install", "update", "uninstall"])
def test_rollback_returns_the_lock_byte_for_byte(ready: Ready, repo: Path, command: str) -> None:
    project, lock = ready(command), "skills.lock.json"
    before, folders = (project.root / lock).read_bytes(), set(folder_names(project))
    project.run(command, **COMMANDS[command](repo))
    assert (project.root / lock).read_bytes() != before
    answer = project.run("rollback")
    assert answer["changed"]
    assert (project.root / lock).read_bytes() == before
    assert set(folder_names(project)) == folders
    assert project.run("verify")["count"] == len(folders)


@pytest.mark.wide
def test_rollback_goes_back_to_each_lock_that_was(held: Project, repo: Path) -> None:
    lock, seen = held.root / "skills.lock.json", []
    for step in (lambda: upstream(repo), lambda: held.run("update"), lambda: held.run("uninstall", name="solo")):
        step()
        seen.append(lock.read_bytes())
    held.run("uninstall", name=["alpha", "beta"])
    stamps = {lock_bytes(entries_in(path.read_bytes(), path)): path.stem for path in (held.inner / "locks").iterdir()}
    for data in [*seen, *reversed(seen)]:
        held.run("rollback", to=stamps[data])
        assert lock.read_bytes() == data
        assert held.run("verify")["count"] == len(json.loads(data)["skills"])
    before = tree(held.root)
    with pytest.raises(NotFound, match="no earlier lock"):
        held.run("rollback", to="1999")
    assert tree(held.root) == before


def folder_names(project: Project) -> list[str]:
    return sorted(path.name for path in project.skills.iterdir() if path.is_dir() and path.name != ".navigator")


def test_frozen_restores_exactly_what_the_lock_says(held: Project, tmp_path: Path, home: Path, repo: Path) -> None:
    upstream(repo)
    fresh = make_project(tmp_path / "fresh", home)
    shutil.copy2(held.root / "skills.lock.json", fresh.root / "skills.lock.json")
    fresh.run("frozen")
    parts = (".claude/skills/", "skills.lock.json")
    wanted, found = ({k: v for k, v in content(one.root).items() if k.startswith(parts)} for one in (held, fresh))
    assert {name: one for name, one in wanted.items() if "/locks/" not in name} == found


def forged(lock: dict[str, Any]) -> None:
    lock["alpha"]["files"][0]["sha256"] = "0" * 64


def redirected(lock: dict[str, Any]) -> None:
    lock["alpha"]["digest"] = "sha256:" + "0" * 64


def elsewhere(lock: dict[str, Any]) -> None:
    lock["alpha"]["commit"] = "0" * 40


def misplaced(lock: dict[str, Any]) -> None:
    lock["alpha"]["subpath"] = "skills/none"


def taken(lock: dict[str, Any]) -> None:
    lock["alpha"], lock["beta"] = lock["beta"], lock["alpha"]


def escaping(lock: dict[str, Any]) -> None:
    lock["../out"] = lock.pop("alpha")


@pytest.mark.parametrize("harm", [forged, redirected, elsewhere, misplaced, taken, escaping])
def test_frozen_fails_closed_where_the_lock_asks_for_other_bytes(
    held: Project, tmp_path: Path, home: Path, harm: Callable[[dict[str, Any]], None]
) -> None:
    fresh = make_project(tmp_path / "fresh", home)
    lock = json.loads((held.root / "skills.lock.json").read_text())
    harm(lock["skills"])
    (fresh.root / "skills.lock.json").write_text(json.dumps(lock))
    before = content(tmp_path)
    with pytest.raises(KernelError) as caught:
        fresh.run("frozen")
    assert caught.value.exit_code in {3, 4, 6, 7}
    now = content(tmp_path)
    assert [name for name in now if now[name] != before.get(name) and "/.git/" not in name] == []


def test_frozen_fails_closed_where_the_source_is_gone(held: Project, repo: Path) -> None:
    shutil.rmtree(held.skills / "beta")
    shutil.rmtree(repo)
    before = tree(held.root)
    with pytest.raises(FetchFailed):
        held.run("frozen")
    assert tree(held.root) == before


def test_frozen_refuses_to_replace_what_was_edited_here(held: Project) -> None:
    edit(held)
    before = tree(held.root)
    with pytest.raises((Refused, IntegrityMismatch), match="alpha"):
        held.run("frozen")
    assert tree(held.root) == before


def test_an_update_of_an_edited_skill_is_refused_and_names_the_files(ready: Ready) -> None:
    project = ready("update")
    (project.skills / "alpha" / "mine.txt").write_text("mine\n")
    before = tree(project.root)
    with pytest.raises(Refused, match=r"alpha: mine\.txt, run\.py") as caught:
        project.run("update")
    assert caught.value.data["edited"] == {"alpha": ["mine.txt", "run.py"]}
    assert tree(project.root) == before


def test_a_forced_update_keeps_a_backup_of_an_edited_skill(ready: Ready) -> None:
    project = ready("update")
    mine = content(project.skills / "alpha")
    told = {one["name"]: one for one in project.run("update", force=True)["skills"]}
    assert content(project.root / told["alpha"]["backup"]) == mine
    assert (project.skills / "alpha" / "new.py").read_text() == "2\n"
    assert project.run("verify")["count"] == 3


@pytest.mark.parametrize("command", COMMANDS)
def test_a_dry_run_writes_nothing_and_reports_the_result_of_the_real_run(
    ready: Ready, repo: Path, command: str
) -> None:
    project, params = ready(command), COMMANDS[command](repo)
    before = tree(project.root)
    operation = OPERATIONS.get(command, command)
    told = project.run(operation, dry_run=True, **params)
    assert told["dry_run"] is True
    assert tree(project.root) == before
    done = project.run(operation, **params)
    assert tree(project.root) != before
    assert {**told, "dry_run": False} == done


WORDS: Mapping[str, str] = table(__file__, "WORDS")


@pytest.mark.wide
@pytest.mark.parametrize("command", WORDS)
def test_a_dry_run_of_the_command_line_writes_nothing_in_the_project(
    tmp_path: Path, repo: Path, other: Path, command: str
) -> None:
    place: Place = place_in(tmp_path)
    place.said("skill", "install", f"file://{other}")
    if command != "install":
        place.said("skill", "install", f"file://{repo}", "--all")
    if command == "frozen":
        shutil.rmtree(place.root / ".claude" / "skills" / "alpha")
    upstream(repo) if command == "update" else None
    before = tree(place.root)
    told = place.json("skill", *WORDS[command].format(f"file://{repo}").split(), "--dry-run")
    assert told["dry_run"] is True
    assert tree(place.root) == before
