from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.errors import Damaged, KernelError
from navigator_kernel.skills.install import apply
from navigator_kernel.skills.install.lockfile import repository_of
from skill_repositories import commit, make_repo, skill_text, snapshot
from tables import cases

pytestmark = pytest.mark.sample(1)

TWO = {
    "skills/alpha/SKILL.md": skill_text("alpha", "first of two"),
    "skills/alpha/run.py": "print(1)\n",
    "skills/beta/SKILL.md": skill_text("beta", "second of two"),
}
ONE = {"solo/SKILL.md": skill_text("solo")}


#
@pytest.mark.parametrize("text", ["", "{", "[]", '{"_default": [1]}', "\x00" * 40, '{"skills": []}'])
@pytest.mark.parametrize("file", [".claude/skills/skills.db", "skills.lock.json"])
def test_a_damaged_record_is_reported_and_left_untouched(project: Any, tmp_path: Path, file: str, text: str) -> None:
    repo = make_repo(tmp_path, ONE)
    project.run("install", source=f"file://{repo}")
    (project.root / file).write_text(text)
    with pytest.raises(Damaged, match=r"cannot|not |no |version") as caught:
        project.run("uninstall", name="solo")
    assert "doctor --repair" in caught.value.hint
    assert (project.root / file).read_text() == text
    assert (project.skills / "solo" / "SKILL.md").exists()


#
def test_repair_rebuilds_database_and_lock_byte_for_byte(project: Any, tmp_path: Path) -> None:
    project.run("install", source=f"file://{make_repo(tmp_path, TWO)}", all=True)
    files = [project.skills / "skills.db", project.root / "skills.lock.json"]
    before = [file.read_bytes() for file in files]
    files[0].write_bytes(b"\x00" * 10)
    files[1].write_bytes(before[1][:50])
    answer = project.run("repair")
    assert answer["levels"][0]["rewritten"] == ["skills.lock.json", ".claude/skills/skills.db"]
    assert [file.read_bytes() for file in files] == before
    for file in files:
        file.unlink()
    project.run("repair")
    assert [file.read_bytes() for file in files] == before


@pytest.mark.parametrize("dry", [True, False])
def test_repair_names_the_skills_whose_folders_are_gone_and_no_others(project: Any, tmp_path: Path, dry: bool) -> None:
    project.run("install", source=f"file://{make_repo(tmp_path, TWO)}", all=True)
    shutil.rmtree(project.skills / "beta")
    level = project.run("repair", dry_run=dry)["levels"][0]
    assert (level["level"], level["target"], level["skills"], level["missing"]) == ("project", "claude", 2, ["beta"])
    assert (level["unlinked"], level["swept"]) == ([], 0)


def test_repair_of_intact_records_writes_nothing(project: Any, tmp_path: Path) -> None:
    project.run("install", source=f"file://{make_repo(tmp_path, ONE)}")
    before = snapshot(project.root)
    assert project.run("repair")["levels"][0]["rewritten"] == []
    assert snapshot(project.root) == before


def test_a_lock_of_a_newer_program_is_neither_read_nor_rebuilt(project: Any, tmp_path: Path) -> None:
    project.run("install", source=f"file://{make_repo(tmp_path, TWO)}", all=True)
    lock = project.root / "skills.lock.json"
    lock.write_text(newer := lock.read_text().replace('"version": 1', '"version": 2'))
    for operation in ("repair", "verify"):
        with pytest.raises(Damaged, match="has the version 2, not 1") as caught:
            getattr(project.lifecycle, operation)()
        assert "update this program" in caught.value.hint
    assert lock.read_text() == newer


def test_lock_entries_of_skills_that_are_not_here_are_kept(project: Any, tmp_path: Path) -> None:
    lock = project.root / "skills.lock.json"
    lock.write_text(json.dumps({"version": 1, "skills": {"elsewhere": {"digest": "sha256:0"}}}))
    project.run("install", source=f"file://{make_repo(tmp_path, ONE)}")
    assert list(json.loads(lock.read_text())["skills"]) == ["elsewhere", "solo"]


def test_rows_and_tables_of_others_in_the_database_survive(project: Any, tmp_path: Path) -> None:
    project.skills.mkdir(parents=True)
    database = project.skills / "skills.db"
    database.write_text('{"_default": {"7": {"name": "other", "stars": 9}}, "notes": {"1": {"a": 1}}}')
    project.run("install", source=f"file://{make_repo(tmp_path, ONE)}")
    tables = json.loads(database.read_text())
    assert [row["name"] for row in tables["_default"].values()] == ["solo", "other"]
    assert tables["notes"] == {"1": {"a": 1}}


class FailsAt(FolderWriter):
    """A writer that fails at one step of an install, as on a full disk."""

    step = ""

    def write(self, path: Path, data: bytes, *, mode: int = 0o644) -> None:
        if path.name == self.step:
            raise KernelError("the disk is full")
        super().write(path, data, mode=mode)

    def write_new(self, folder: Path, files: Any) -> None:
        if any(Path(name).name == self.step for name in files):
            raise KernelError("the disk is full")
        super().write_new(folder, files)

    def move(self, source: Path, target: Path) -> None:
        if target.name == self.step and source.parent.name == "new":
            raise KernelError("the disk is full")
        super().move(source, target)


STEPS = ["run.py", "alpha", "beta", "alpha.json", "beta.json", "skills.lock.json", "skills.db"]


#
@pytest.mark.parametrize("step", STEPS)
def test_an_install_that_fails_anywhere_leaves_all_as_it_was(
    maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    project = maker(writer=FailsAt)
    project.run("install", source=f"file://{make_repo(tmp_path, ONE, name='first')}")
    before = snapshot(project.root)
    monkeypatch.setattr(FailsAt, "step", step)
    with pytest.raises(KernelError, match="disk is full"):
        project.run("install", source=f"file://{make_repo(tmp_path, TWO)}", all=True)
    after = snapshot(project.root)
    assert {path: data for path, (_, data) in after.items()} == {path: data for path, (_, data) in before.items()}
    assert not list(project.inner.glob("change-*"))


@pytest.mark.parametrize("step", ["alpha", "alpha.json", "skills.lock.json", "skills.db"])
def test_an_update_that_fails_brings_the_old_skill_back(
    maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    project, repo = maker(writer=FailsAt), make_repo(tmp_path, TWO)
    project.run("install", source=f"file://{repo}", skill="alpha")
    before = {path: data for path, (_, data) in snapshot(project.root).items()}
    commit(repo, {"skills/alpha/SKILL.md": skill_text("alpha", "newer")})
    monkeypatch.setattr(FailsAt, "step", step)
    with pytest.raises(KernelError, match="disk is full"):
        project.run("install", source=f"file://{repo}", skill="alpha")
    monkeypatch.setattr(FailsAt, "step", "")
    assert {path: data for path, (_, data) in snapshot(project.root).items()} == before
    assert project.run("verify")["count"] == 1


INSTALLER = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from conftest import make_project
project = make_project(Path(sys.argv[3]), Path(sys.argv[4]))
project.run("install", source=sys.argv[5], skill=sys.argv[6])
"""


#
@pytest.mark.wide
def test_two_processes_installing_at_once_both_get_in(project: Any, tmp_path: Path, home: Path) -> None:
    names = [f"skill-{number}" for number in range(6)]
    repo = make_repo(tmp_path, {f"{name}/SKILL.md": skill_text(name) for name in names})
    kernel = Path(sys.modules["navigator_kernel"].__file__ or "").parents[1]
    words = [sys.executable, "-c", INSTALLER, str(kernel), str(Path(__file__).parent), str(project.root), str(home)]
    running = [subprocess.Popen([*words, f"file://{repo}", name], stderr=subprocess.PIPE) for name in names]
    complaints = [process.communicate()[1].decode() for process in running]
    assert [process.returncode for process in running] == [0] * len(names), complaints
    lock = json.loads((project.root / "skills.lock.json").read_text())["skills"]
    rows = json.loads((project.skills / "skills.db").read_text())["_default"].values()
    assert sorted(lock) == sorted(row["name"] for row in rows) == names
    assert [project.mapping.find(name) for name in names] == [(f"file://{repo}", name) for name in names]


def test_only_the_newest_of_the_earlier_lock_files_are_kept(
    project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "KEPT_LOCKS", 3)
    repo = make_repo(tmp_path, TWO)
    project.run("install", source=f"file://{repo}", skill="alpha")
    earlier = []
    for at in range(5):
        project.lifecycle.deps.clock.time = f"2026-01-31T09:3{at}:00.000Z"
        earlier.append(json.loads((project.root / "skills.lock.json").read_bytes()))
        project.run("uninstall", name="beta") if at % 2 else project.run(
            "install", source=f"file://{repo}", skill="beta"
        )
        held = sorted((project.inner / "locks").iterdir())
        kept = [json.loads(path.read_bytes()) for path in held]
        assert [list(lock.pop("made")) for lock in kept] == [["beta"]] * len(kept)
        assert kept == earlier[-3:]


@cases("source, repository")
def test_only_a_source_at_github_has_the_short_name_of_a_repository(source: str, repository: str) -> None:
    assert repository_of(source) == repository


def test_many_skills_are_written_side_by_side_with_the_same_bytes(
    project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "MANY", 2)
    project.run("install", source=f"file://{make_repo(tmp_path, TWO)}", all=True)
    for path, text in TWO.items():
        assert (project.skills / path.removeprefix("skills/")).read_text() == text
