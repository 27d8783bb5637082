"""Processes that change the skills of one project at the same time all get what they asked for (issue 4, item 10)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, environment, place_in
from skill_repositories import git, make_repo, skill_text

pytestmark = pytest.mark.ci

LIMIT = 100  # seconds to wait for each command
FILES = ["SKILL.md", *(f"ref{number}.md" for number in range(5))]
NAMES = [f"skill-{number:02}" for number in range(20)]


def at_once(place: Place, commands: Sequence[Sequence[str]]) -> list[tuple[int, str]]:
    """Runs all commands at the same time; returns the exit code and stderr of each."""
    pipe, own = subprocess.PIPE, environment()
    words = [[*place.program, "skill", *command] for command in commands]
    running = [subprocess.Popen(one, cwd=place.root, env=own, stdout=pipe, stderr=pipe) for one in words]
    said = [process.communicate(timeout=LIMIT) for process in running]
    return [(process.returncode, err.decode()) for process, (_, err) in zip(running, said, strict=True)]


def failed(ends: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    return [end for end in ends if end[0]]


def names_in(place: Place) -> dict[str, list[str]]:
    """The names in the folders, receipts, lock and database."""
    skills = place.root / ".claude" / "skills"
    lock = json.loads((place.root / "skills.lock.json").read_text())["skills"]
    rows: Any = json.loads((skills / "skills.db").read_text())["_default"]
    return {
        "folders": sorted(path.name for path in skills.iterdir() if path.is_dir() and path.name != ".navigator"),
        "receipts": sorted(path.stem for path in (skills / ".navigator").glob("*.json")),
        "lock": sorted(lock),
        "database": sorted(row["name"] for row in rows.values()),
    }


def all_are(names: Sequence[str]) -> dict[str, list[str]]:
    return {kind: sorted(names) for kind in ("folders", "receipts", "lock", "database")}


def one_repository(tmp_path: Path) -> list[list[str]]:
    repo = make_repo(tmp_path, {f"{name}/SKILL.md": skill_text(name) for name in NAMES})
    return [["install", f"file://{repo}", "--skill", name] for name in NAMES]


def many_repositories(tmp_path: Path) -> list[list[str]]:
    made = [make_repo(tmp_path, {f"{name}/SKILL.md": skill_text(name)}, name=f"repo-{name}") for name in NAMES]
    return [["install", f"file://{repo}"] for repo in made]


def installed_by_all(tmp_path: Path, commands: Sequence[Sequence[str]]) -> Place:
    place = place_in(tmp_path)
    assert failed(at_once(place, commands)) == []
    assert names_in(place) == all_are(NAMES)
    assert place.json("skill", "verify")["count"] == len(NAMES)
    assert [path.name for path in (place.root / ".claude/skills/.navigator").glob("change-*")] == []
    return place


def race(tmp_path: Path) -> None:
    """Installs one half of the skills while the other half is uninstalled."""
    commands = one_repository(tmp_path)
    place = place_in(tmp_path)
    assert place.run("skill", *commands[0][:2], *(word for name in NAMES[:10] for word in ("--skill", name))).code == 0
    assert names_in(place) == all_are(NAMES[:10])
    leaving = [["uninstall", name] for name in NAMES[:10]]
    mixed = [command for pair in zip(commands[10:], leaving, strict=True) for command in pair]
    assert failed(at_once(place, mixed)) == []
    assert names_in(place) == all_are(NAMES[10:])
    assert place.json("skill", "verify")["count"] == 10


#
@pytest.mark.requirement("LIF-13")
def test_twenty_processes_installing_from_one_repository_all_get_in(tmp_path: Path) -> None:
    installed_by_all(tmp_path, one_repository(tmp_path))


def test_twenty_processes_installing_from_twenty_repositories_all_get_in(tmp_path: Path) -> None:
    place = installed_by_all(tmp_path, many_repositories(tmp_path))
    known = {row["name"] for row in place.json("skill", "mapping")["rows"]}
    assert [name for name in NAMES if name not in known] == []


@pytest.mark.requirement("LIF-5")
def test_ten_installs_and_ten_uninstalls_at_once_leave_the_ten_that_came(tmp_path: Path) -> None:
    race(tmp_path)


def test_processes_installing_the_same_skill_at_once_agree(tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"solo/SKILL.md": skill_text("solo")})
    place = place_in(tmp_path)
    assert failed(at_once(place, [["install", f"file://{repo}"]] * 6)) == []
    assert names_in(place) == all_are(["solo"])


def updatable(tmp_path: Path) -> Place:
    """A project with twelve skills that all have an update."""
    repo = make_repo(tmp_path, {f"{name}/{file}": skill_text(name) for name in NAMES[:12] for file in FILES})
    place = place_in(tmp_path)
    place.said("skill", "install", f"file://{repo}", "--all")
    for name in NAMES[:12]:
        (repo / name / "more.md").write_text("news\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-m", "news")
    return place


@pytest.mark.requirement("LIF-13")
@pytest.mark.parametrize("attempt", range(20))
def test_an_update_beside_an_uninstall_updates_the_others_and_blames_nobody(tmp_path: Path, attempt: int) -> None:
    place, gone = updatable(tmp_path), NAMES[attempt % 12]
    ends = at_once(place, [["update"], ["uninstall", gone], ["update"], ["verify"]])
    assert failed(ends) == []
    assert names_in(place) == all_are([name for name in NAMES[:12] if name != gone])
    assert all((place.root / ".claude/skills" / name / "more.md").exists() for name in NAMES[:12] if name != gone)


@pytest.mark.parametrize("attempt", range(2))
def test_what_is_exported_beside_an_update_is_one_version(tmp_path: Path, attempt: int) -> None:
    place = updatable(tmp_path)
    exports = [["export", "--all", f"out{number}", "--json"] for number in range(3)]
    assert failed(at_once(place, [*exports, ["update"], ["verify"]])) == []
    for folder in place.root.glob("out*/*"):
        assert len(list(folder.iterdir())) in {len(FILES), len(FILES) + 1}
    assert place.json("skill", "verify")["count"] == 12


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(20))
def test_each_of_twenty_tries_of_twenty_processes_succeeds(tmp_path: Path, attempt: int) -> None:
    made = many_repositories if attempt % 4 == 3 else one_repository
    installed_by_all(tmp_path, made(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(3))
def test_each_of_three_races_ends_well(tmp_path: Path, attempt: int) -> None:
    race(tmp_path)
