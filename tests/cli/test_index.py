"""The index is built before the first question: by `route --index`, and in the background after a large install."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, below, place_in
from cli.terminals import terminal
from navigator_kernel.cli.skill.change import LARGE
from person_state import state_of
from routing.serving import until
from skill_repositories import skill_text

pytestmark = pytest.mark.sample(1)

ON = {"NAVIGATOR_ENCODER": "auto", "TERM": "xterm"}


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A folder with enough skills to make an install a large one."""
    folder = tmp_path / "many"
    source = Place(root=folder)
    for number in range(LARGE):
        source.write(below(f"tool-{number}", {"SKILL.md": skill_text(f"tool-{number}", f"Counts to {number}")}))
    return folder


def heads(place: Place) -> list[Any]:
    """The contents of `current.json` of each index."""
    return [json.loads(path.read_bytes()) for path in (state_of(place.root) / "index").glob("*/current.json")]


def making(place: Place) -> list[int]:
    """The ids of the processes that build the index of this project."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:  # the process has ended
            continue
        if b"--index" in words and os.fsencode(place.root) in words:
            found.append(int(folder.name))
    return found


@pytest.mark.wide
def test_the_index_is_made_without_a_message(here: Place, many: Path) -> None:
    here.said("install", str(many), "--all")
    assert here.json("route", "--index", env=ON)["skills"] >= LARGE
    (head,) = heads(here)
    here.said("route", "count to seven", env=ON)
    assert heads(here) == [head] and head["rows"] >= LARGE


def test_without_an_encoder_an_index_is_built_and_kept(here: Place) -> None:
    env = {"NAVIGATOR_ENCODER": "off"}
    count = here.json("route", "--index", env=env)["skills"]
    (head,) = heads(here)
    assert head["rows"] == count > 0
    here.said("route", "count to seven", env=env)
    assert heads(here) == [head]


@pytest.mark.wide
@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_a_large_install_at_a_terminal_makes_it_in_the_background(here: Place, many: Path) -> None:
    with terminal(here, "install", str(many), "--all", env=ON) as shown:
        assert f"{LARGE} installed" in shown.rest()
    (head,) = until(lambda: heads(here))
    until(lambda: not making(here))
    assert head["rows"] >= LARGE


@pytest.mark.wide
@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
@pytest.mark.parametrize(
    ("words", "env"),
    [((), {"NAVIGATOR_INDEX": "off"}), ((), {"CI": "1"}), ((), {"TERM": "dumb"}), (("-q",), {}), (("--dry-run",), {})],
    ids=["switched off", "CI", "a dumb terminal", "quiet", "dry run"],
)
def test_nothing_runs_in_the_background(
    here: Place, many: Path, words: tuple[str, ...], env: Mapping[str, str]
) -> None:
    with terminal(here, "install", str(many), "--all", *words, env={**ON, **env}) as shown:
        shown.rest()
    assert making(here) == []


@pytest.mark.wide
@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_nothing_runs_in_the_background_without_a_terminal(here: Place, many: Path) -> None:
    here.said("install", str(many), "--all", env=ON)
    assert making(here) == []
