"""`verify` names every file that is not as it was installed, and nothing else (issue 4, item 7)."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, place_in
from navigator_kernel.errors import IntegrityMismatch
from skill_repositories import add_raw, make_repo, skill_text
from skills.conftest import Project, make_project

pytestmark = pytest.mark.sample(1)

EACH = 250  # tries of each kind
NAMES = ("alpha", "beta", "gamma", "delta")
KINDS = ("modified", "missing", "extra", "mode")


def files(name: str) -> dict[str, str | bytes]:
    return {
        f"{name}/SKILL.md": skill_text(name, "has files of all kinds"),
        f"{name}/data.bin": bytes(range(256)) * 5,
        f"{name}/one-byte": b"x",
        f"{name}/references/long.md": "a line\n" * 300,
        f"{name}/references/deep/er/中文.txt": "文字\n",
        f"{name}/.hidden": "hidden\n",
    }


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Four skills, each with an executable file."""
    made = make_repo(tmp_path, {path: data for name in NAMES for path, data in files(name).items()}, partial=False)
    add_raw(made, {f"{name}/scripts/run.py": ("100755", b"print(1)\n") for name in NAMES})
    return made


@pytest.fixture
def held(repo: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The installed skills; no process can be started any more, and the repository is gone."""
    project = make_project(tmp_path / "project", home)
    project.run("install", source=f"file://{repo}", all=True)
    shutil.rmtree(repo)
    monkeypatch.setattr(subprocess, "Popen", None)
    return project


@contextmanager
def tampered(folder: Path, kind: str, chance: random.Random) -> Iterator[str]:
    """Makes one change below `folder`, yields its path, and takes it back."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    path = chance.choice(paths)
    data, mode = path.read_bytes(), path.stat().st_mode
    if kind == "extra":
        path = path.parent / chance.choice(["zz-new.txt", ".new", "__pycache__/run.py", "sub/dir/new", "SKILL.md.new"])
    yield_path = path.relative_to(folder).as_posix()
    CHANGES[kind](path, data, chance)
    yield yield_path
    if kind == "extra":
        path.unlink()
        for parent in [parent for parent in path.parents if parent != folder and folder in parent.parents]:
            if not any(parent.iterdir()):
                parent.rmdir()
    else:
        path.write_bytes(data)
        path.chmod(mode)


def _edit(path: Path, data: bytes, chance: random.Random) -> None:
    """Changes one byte and keeps the times: only the content differs."""
    at, times = chance.randrange(len(data)), path.stat()
    path.write_bytes(data[:at] + bytes([data[at] ^ chance.randrange(1, 256)]) + data[at + 1 :])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _delete(path: Path, data: bytes, chance: random.Random) -> None:
    path.unlink()


def _add(path: Path, data: bytes, chance: random.Random) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(chance.choice([b"", b"x", data]))


def _change_mode(path: Path, data: bytes, chance: random.Random) -> None:
    """Changes who may run it; the bits of readers and writers that a umask removes do not count."""
    path.chmod(chance.choice([0o644, 0o600, 0o664]) if path.stat().st_mode & 0o100 else chance.choice([0o755, 0o700]))


CHANGES: Mapping[str, Callable[[Path, bytes, random.Random], None]] = {
    "modified": _edit,
    "missing": _delete,
    "extra": _add,
    "mode": _change_mode,
}


def named(project: Project) -> dict[tuple[str, str], list[str]]:
    """What `verify` names, by skill and kind; every skill is listed, the sound ones as such."""
    with pytest.raises(IntegrityMismatch) as caught:
        project.run("verify")
    assert caught.value.exit_code == 6
    skills: Any = caught.value.data["skills"]
    assert [one["name"] for one in skills] == sorted(NAMES)
    assert [one["name"] for one in skills if not one["ok"]] == sorted({one["name"] for one in skills if _told(one)})
    return {(one["name"], kind): one[kind] for one in skills for kind in _told(one)}


def _told(one: Mapping[str, Any]) -> list[str]:
    return [kind for kind in KINDS if one[kind]]


#
@pytest.mark.wide
@pytest.mark.parametrize("kind", KINDS)
def test_verify_names_each_of_a_thousand_changes_and_nothing_else(held: Project, kind: str) -> None:
    chance = random.Random(f"seed of {kind}")
    wrong = []
    for _ in range(EACH):
        name = chance.choice(NAMES)
        with tampered(held.skills / name, kind, chance) as path:
            found = named(held)
        wrong += [] if found == {(name, kind): [path]} else [(name, path, found)]
    assert wrong == []
    assert held.run("verify")["count"] == len(NAMES)


def test_verify_names_many_changes_at_once(held: Project) -> None:
    chance = random.Random(4)
    with (
        tampered(held.skills / "alpha", "modified", chance) as edited,
        tampered(held.skills / "beta", "missing", chance) as deleted,
        tampered(held.skills / "beta", "extra", chance) as added,
    ):
        found = named(held)
    assert found == {("alpha", "modified"): [edited], ("beta", "missing"): [deleted], ("beta", "extra"): [added]}


@pytest.mark.parametrize("what", ["file", "folder", "skill"])
def test_verify_names_a_skill_in_which_a_link_took_the_place_of_the_same_bytes(
    held: Project, tmp_path: Path, what: str
) -> None:
    place = {"file": "SKILL.md", "folder": "references", "skill": ""}[what]
    path, moved = held.skills / "alpha" / place, tmp_path / "moved"
    path.rename(moved)
    path.symlink_to(moved)
    assert {name for name, _ in named(held)} == {"alpha"}


def test_verify_names_every_file_of_a_folder_that_is_gone(held: Project) -> None:
    wanted = sorted(path.removeprefix("alpha/") for path in [*files("alpha"), "alpha/scripts/run.py"])
    shutil.rmtree(held.skills / "alpha")
    assert named(held) == {("alpha", "missing"): wanted}


@pytest.fixture
def place(repo: Path, tmp_path: Path) -> Place:
    place = place_in(tmp_path)
    place.said("skill", "install", f"file://{repo}", "--all")
    shutil.rmtree(repo)
    return place


@pytest.mark.parametrize("kind", KINDS)
def test_verify_on_the_command_line_names_the_file_and_exits_with_6_without_git(
    place: Place, tmp_path: Path, kind: str
) -> None:
    nothing = {"PATH": str(tmp_path / "nothing")}
    with tampered(place.root / ".claude" / "skills" / "beta", kind, random.Random(6)) as path:
        before = place.files()
        told = place.run("skill", "verify", "--json", env=nothing)
        assert place.run("skill", "verify", "beta", env=nothing).code == 6
        assert place.run("skill", "verify", "alpha", env=nothing).code == 0
        assert place.files() == before
    assert told.code == 6
    broken = [one for one in told.document["error"]["skills"] if not one["ok"]]
    assert [(one["name"], one[kind]) for one in broken] == [("beta", [path])]
    assert place.run("skill", "verify", env=nothing).code == 0
