"""A project whose folder the person cannot write to is asked all the same; its files lie in the person's own state."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cli.support import NOBODY, Place, as_nobody, environment, open_to_nobody, place_in

pytestmark = pytest.mark.ci


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    place = place_in(tmp_path)
    place.write({"a.txt": "one two three\n", "mybox/README.md": ""})
    open_to_nobody(place.root)
    folders = (place.root / "mybox", place.root)
    for folder in folders:
        folder.chmod(0o555)
    yield place
    for folder in folders:
        folder.chmod(0o755)


@pytest.fixture
def env(tmp_path: Path) -> Mapping[str, str]:
    home = tmp_path / "own"
    home.mkdir()
    if os.geteuid() == 0:
        os.chown(home, NOBODY, NOBODY)
    usual = {name: value for name, value in environment().items() if not name.startswith("XDG_")}
    return {**usual, "HOME": str(home)}


def test_it_is_asked_and_remembers(here: Place, env: Mapping[str, str]) -> None:
    for _ in range(2):
        done = as_nobody(here, "ask", "--session", "s", "--yes", "!echo one two three", env=env)
        assert (done.code, "one two three" in done.out) == (0, True), done
    assert as_nobody(here, "session", "show", "s", "--json", env=env).document["turns"] == 2
    assert "echo one two three" in as_nobody(here, "why", env=env).out
    checked = as_nobody(here, "doctor", env=env)
    assert (checked.code, "you cannot write to" in checked.out and "it can be asked" in checked.out) == (0, True)
    assert sorted(path.name for path in here.root.rglob("*")) == ["README.md", "a.txt", "mybox"]


def test_the_files_of_a_run_are_named_where_they_are(here: Place, env: Mapping[str, str]) -> None:
    skill = Path(env["HOME"], ".claude", "skills", "maker")
    skill.mkdir(parents=True)
    text = "---\nname: maker\ndescription: makes\nmetadata:\n  navigator-command: sh ${SKILL_ROOT}/make.sh\n---\nIt makes.\n"
    (skill / "SKILL.md").write_text(text)
    (skill / "make.sh").write_text("echo hi | tee made.txt\n")
    open_to_nobody(skill)
    report = as_nobody(here, "ask", "--yes", "/maker", "--json", env=env).document["report"]
    (made,) = Path(env["HOME"]).rglob("made.txt")
    assert (report["state"], report["data"]["files"]) == ("success", [str(made)])
    assert made.parent.parent.parts[-2:] == ("mybox", "workspace")


@pytest.mark.parametrize("words", [("config", "set", "steps", "4"), ("install", "z", "--all")])
def test_what_changes_the_project_says_that_it_cannot(
    here: Place, env: Mapping[str, str], tmp_path: Path, words: tuple[str, ...]
) -> None:
    source = tmp_path / "source" / "z"
    source.mkdir(parents=True)
    (source / "SKILL.md").write_text("---\nname: z\ndescription: does z\n---\nz\n")
    given = [str(source) if word == "z" else word for word in words]
    done = as_nobody(here, *given, env=env)
    assert done.code == 1 and str(here.root) in done.err and "Permission denied" in done.err
