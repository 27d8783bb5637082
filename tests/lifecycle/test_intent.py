"""A killed change is finished from its intent, which only this very project can have made (X-38)."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cli.support import SOURCE
from lifecycle.trees import content, tree
from navigator_kernel.adapters.stores.project_state import look
from navigator_kernel.errors import Damaged, Refused
from navigator_kernel.skills.install import apply
from navigator_kernel.skills.install.apply import INTENT, _seal
from skill_repositories import make_repo, skill_text
from skills.conftest import Project, make_project

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.sample(1)

SEALED = "change-0123456789abcdef"

# An install in a process that is killed right after the writer changed a path of the name `last`.
DYING = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
from navigator_kernel.adapters.files.writer import FolderWriter
from skills.conftest import make_project

root, home, source, last = sys.argv[3:]

class Dying(FolderWriter):
    def write(self, path, data, **named):
        super().write(path, data, **named)
        self.end(path)

    def write_new(self, folder, files):
        super().write_new(folder, files)
        self.end(folder.with_name("staged-" + folder.name))

    def move(self, source, target):
        super().move(source, target)
        self.end(target)

    def remove(self, path):
        super().remove(path)
        self.end(path)

    def end(self, path):
        if path.name == last:
            os.kill(os.getpid(), signal.SIGKILL)

make_project(Path(root), Path(home), writer=Dying).run("install", source=source, all=True)
"""


def begun(tmp_path: Path, home: Path, repo: Path, other: Path, last: str) -> Project:
    """A project in which an install of both skills was killed after `last`."""
    project = make_project(tmp_path / "project", home)
    project.run("install", source=f"file://{other}")
    paths = [str(SOURCE / "kernel"), str(SOURCE / "tests"), str(project.root), str(home), f"file://{repo}", last]
    done = subprocess.run([sys.executable, "-c", DYING, *paths], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    return project


STEPS = [INTENT, "alpha", "beta", "beta.json", "skills.lock.json", "skills.db"]


@pytest.mark.parametrize("last", STEPS)
def test_a_reader_finishes_what_a_killed_process_began(
    tmp_path: Path, home: Path, repo: Path, other: Path, last: str
) -> None:
    project = begun(tmp_path, home, repo, other, last)
    assert [one["name"] for one in project.run("list")["skills"]] == ["alpha", "beta", "solo"]
    assert project.run("verify")["count"] == 3
    assert [path.name for path in project.inner.iterdir() if path.name == INTENT or "change" in path.name] == []
    whole = make_project(tmp_path / "whole", home)
    whole.run("install", source=f"file://{other}")
    whole.run("install", source=f"file://{repo}", all=True)
    assert content(project.root) == content(whole.root)


def test_a_killed_change_is_finished_after_its_disk_got_another_device_number(
    tmp_path: Path, home: Path, repo: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not look(str(tmp_path)).born:
        pytest.skip("the file system of the tests has no birth times")
    project = begun(tmp_path, home, repo, other, "alpha")
    monkeypatch.setattr(apply, "look", lambda path: replace(look(path), device=look(path).device + 1))
    assert [one["name"] for one in project.run("list")["skills"]] == ["alpha", "beta", "solo"]


def test_a_change_that_was_staged_but_not_begun_is_discarded_by_the_next_change(
    tmp_path: Path, home: Path, repo: Path, other: Path
) -> None:
    project = begun(tmp_path, home, repo, other, "staged-beta")
    assert [one["name"] for one in project.run("list")["skills"]] == ["solo"]
    project.run("install", source=f"file://{repo}", skill="alpha")
    assert list(project.inner.glob("change-*")) == []
    assert not (project.skills / "beta").exists()


#
def test_an_intent_that_came_with_a_copy_of_the_project_moves_nothing(
    tmp_path: Path, home: Path, repo: Path, other: Path
) -> None:
    copied = begun(tmp_path, home, repo, other, "alpha").root
    copy = make_project(tmp_path / "copy", home)
    shutil.copytree(copied, copy.root, dirs_exist_ok=True)
    before = tree(copy.root)
    assert [one["name"] for one in copy.run("list")["skills"]] == ["alpha", "solo"]
    assert copy.run("list")["problems"] == []
    assert copy.run("verify")["count"] == 1
    assert tree(copy.root) == before


def planted(project: Project, *, made: bool = True, **given: Any) -> dict[str, tuple[int, bytes]]:
    """Puts an intent into the project, with the right seal unless another is given; returns the content before it."""
    scratch = project.inner / SEALED
    if made:
        scratch.mkdir()
    before = content(project.root)
    body = {"v": 2, "scratch": SEALED, "seal": _seal(scratch), "folders": {}, "files": {}, **given}
    (project.inner / INTENT).write_text(json.dumps(body))
    return before


def kept(project: Project, before: Mapping[str, tuple[int, bytes]]) -> bool:
    now = content(project.root)
    return {name: one for name, one in now.items() if Path(name).name != INTENT} == before


DROPS: dict[str, Any] = {
    "folders": {"solo": [False, ""], "mine": [False, ""]},
    "files": {key: [None, None] for key in ["lock", "database"]},
}
SEALS: list[object] = ["", "0:0", "1:2", None, 7]


@pytest.mark.parametrize("made", [False, True], ids=["no-scratch", "scratch"])
@pytest.mark.parametrize("seal", SEALS, ids=repr)
def test_an_intent_that_was_not_sealed_here_moves_nothing(
    held: Project, other: Path, seal: object, *, made: bool
) -> None:
    (held.skills / "mine").mkdir()
    (held.skills / "mine" / "SKILL.md").write_text(skill_text("mine"))
    before = planted(held, made=made, seal=seal, **DROPS)
    for verb in ("list", "verify", "repair"):
        held.run(verb)
        assert kept(held, before)
    held.run("install", source=f"file://{other}")
    assert kept(held, before)


NO_FOLDERS: list[Any] = [["alpha"], "alpha", {"alpha": True}, {"alpha": []}, None]
HOSTILE: list[dict[str, Any]] = [
    *({"folders": {name: [False, ""]}} for name in ["..", ".", "", "a/b", "../alpha", "/etc", ".navigator", "a\0b"]),
    *({"folders": {"alpha": [False, keep]}} for keep in ["../../out", "/tmp/out", "a/b", "..", "."]),
    *(
        {"files": {slot: [None, None]}}
        for slot in ["", "lock/x", "receipt", "receipt/", "receipt/../x", "receipt//etc/passwd"]
    ),
    *(
        {"files": {slot: [None, None]}}
        for slot in ["locks/../../x", "locks/a/b", "guard", "/etc/passwd", "../skills.lock.json"]
    ),
    *({"scratch": name} for name in ["..", ".", "../change-0123456789abcdef", "alpha", "/tmp", ""]),
    *({"v": version} for version in [0, 1, 3, None, "2"]),
    *({"folders": folders} for folders in NO_FOLDERS),
    *({"files": files} for files in [7, None, ["lock"], {"lock": None}, {"lock": ["x"]}, {"lock": [7, 7]}]),
]


@pytest.mark.parametrize("given", HOSTILE, ids=str)
def test_an_intent_that_names_what_no_change_names_is_refused(held: Project, given: dict[str, Any]) -> None:
    """Even if its seal fits."""
    before = planted(held, **given)
    with pytest.raises(Damaged, match="cannot be read") as caught:
        held.run("list")
    assert "doctor --repair" in caught.value.hint
    assert kept(held, before)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null", "\0" * 40, "[" * 100_000])
def test_a_damaged_intent_is_reported_and_repair_starts_again(held: Project, text: str) -> None:
    before = content(held.root)
    (held.inner / INTENT).write_text(text)
    with pytest.raises(Damaged, match="cannot be read"):
        held.run("list")
    held.run("repair")
    assert content(held.root) == before
    assert held.run("verify")["count"] == 3


@pytest.mark.parametrize("name", ["intent", "lock", "locks", "backups", "change-0123456789abcdef"])
def test_a_skill_may_be_called_like_a_record_of_ours(tmp_path: Path, held: Project, name: str) -> None:
    """The skill's receipt lies beside the records."""
    source = f"file://{make_repo(tmp_path, {f'{name}/SKILL.md': skill_text(name)}, name='odd')}"
    before = content(held.root)
    try:
        held.run("install", source=source)
    except Refused:
        assert content(held.root) == before
        return
    assert held.run("verify")["count"] == 4
    held.run("uninstall", name=name)
    assert held.run("verify")["count"] == 3
