"""The public surface stays as in the last release, or a file in docs/changes/ says that it breaks."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpu_time import ran
from maintenance.compatibility import additions, breaks, excused, lowest_next, version_of
from maintenance.public_surface import CHANGES, as_text, snapshot, surface
from tables import cases

TESTS = Path(__file__).resolve().parents[1]
SECONDS = 3.0  # processor seconds that one comparison may take
Surface = dict[str, Any]
Change = Callable[[Surface], Any]

BREAKING: dict[str, tuple[Change, str]] = {
    "a command is removed": (lambda it: it["command"].pop("navigator why"), "navigator why"),
    "a flag is removed": (lambda it: it["command"]["navigator skill list"].pop("--json"), "navigator skill list"),
    "a flag loses a word": (
        lambda it: it["command"]["navigator"]["--style"]["accepts"].remove("ascii"),
        "navigator",
    ),
    "an argument becomes required": (
        lambda it: it["command"]["navigator skill list"]["required"].append("--kind"),
        "navigator skill list",
    ),
    "an exit code changes": (lambda it: it["error"]["not_found"].update({"exit code": 14}), "not_found"),
    "a state's exit code changes": (lambda it: it["error"].update({"state pending": 1}), "state pending"),
    "an event loses a field": (lambda it: it["event"]["RunStarted"].pop("session"), "RunStarted"),
    "an event's field has another type": (lambda it: it["event"]["Usage"].update(model="int"), "Usage"),
    "a hook's argument is renamed": (
        lambda it: it["hook"]["kernel_precheck"]["takes"].update(n=it["hook"]["kernel_precheck"]["takes"].pop("count")),
        "kernel_precheck",
    ),
    "a hook's results are all used": (
        lambda it: it["hook"]["kernel_precheck"].update({"first result wins": False}),
        "kernel_precheck",
    ),
    "an operation is removed": (lambda it: it["HTTP"].pop("GET /api/runs"), "GET /api/runs"),
    "an operation asks for another role": (
        lambda it: it["HTTP"]["GET /api/skills"].update(role="admin"),
        "GET /api/skills",
    ),
    "an answer may lack a field": (lambda it: it["HTTP answer"]["Problem"]["always"].remove("code"), "Problem"),
    "an answer's field may be of another type": (
        lambda it: it["HTTP answer"]["Problem"]["fields"]["code"]["is"].append("integer"),
        "Problem",
    ),
    "a body must have a further field": (
        lambda it: it["HTTP body"]["NoteCreate"]["required"].append("colour"),
        "NoteCreate",
    ),
    "a document loses a field": (lambda it: it["output"]["why"]["fields"].pop("exit_code"), "why"),
    "a document may lack a field": (lambda it: it["output"]["why"]["always"].remove("exit_code"), "why"),
    "a method loses an argument": (lambda it: it["library"]["Kernel"]["ask"]["takes"].pop("session"), "Kernel"),
    "a name of the library is removed": (lambda it: it["library"].pop("Route"), "Route"),
    "a setting loses a word": (lambda it: it["setting"]["encoder"]["accepts"].remove("off"), "encoder"),
    "a file has another version": (
        lambda it: it["file format"]["skills.lock.json"].update(version=9),
        "skills.lock.json",
    ),
    "a key of SKILL.md is not read": (lambda it: it["file format"]["SKILL.md"]["accepts"].remove("tags"), "SKILL.md"),
}
FINE: dict[str, Change] = {
    "a command": lambda it: it["command"].update({"navigator new": {}}),
    "a flag": lambda it: it["command"]["navigator skill list"].update({"--new": {"accepts": ["flag"]}}),
    "a word of a flag": lambda it: it["command"]["navigator"]["--style"]["accepts"].append("plain"),
    "an event": lambda it: it["event"].update({"RunPaused": {}}),
    "a field of an answer": lambda it: it["HTTP answer"]["Problem"]["fields"].update({"new": {"is": ["string"]}}),
    "an optional argument": lambda it: it["library"]["Kernel"]["ask"]["takes"].update({"new": {}}),
    "a field of a document": lambda it: it["output"]["why"]["always"].append("new"),
}


@pytest.fixture(scope="module")
def today() -> Surface:
    return surface()


def test_nothing_public_was_removed_or_changed_since_the_last_release(today: Surface) -> None:
    assert [str(one) for one in breaks(snapshot(), today) if not excused(one, CHANGES)] == []


@pytest.mark.parametrize("what", BREAKING)
def test_a_change_that_breaks_programs_is_found_and_named(today: Surface, what: str) -> None:
    change, name = BREAKING[what]
    later = copy.deepcopy(today)
    change(later)
    (found, *_) = list(breaks(today, later))
    assert found.name == name
    assert "docs/changes/" in str(found) and f"`{name}`" in str(found) and "major version" in str(found)


@pytest.mark.parametrize("what", FINE)
def test_an_addition_breaks_nothing_and_is_found(today: Surface, what: str) -> None:
    later = copy.deepcopy(today)
    FINE[what](later)
    assert list(breaks(today, later)) == []
    assert len(list(additions(today, later))) == 1


def test_a_break_is_excused_by_a_fragment_that_names_it(today: Surface, tmp_path: Path) -> None:
    later = copy.deepcopy(today)
    del later["command"]["navigator why"]
    (found,) = breaks(today, later)
    fragment = tmp_path / "why.md"
    for text, is_excused in (
        ("`navigator why` shows more.\n", False),
        ("Breaking: `navigator log` is gone.\n", False),
        ("Breaking: `navigator why` is gone; use `navigator log`.\n", True),
    ):
        fragment.write_text(text)
        assert excused(found, tmp_path) is is_excused, text


@cases("last, broken, added, lowest")
def test_the_version_follows_from_the_changes(last: str, broken: bool, added: bool, lowest: str) -> None:
    assert lowest_next(version_of(last), broken=broken, added=added) == version_of(lowest)


@pytest.mark.parametrize("text", ["1.4", "v1.4.0", "1.4.0rc1", "01.4.0", "one"])
def test_a_version_is_three_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="three numbers"):
        version_of(text)


@pytest.mark.wide
def test_two_processes_describe_the_same_surface_in_little_time(today: Surface) -> None:
    program = "from maintenance.public_surface import as_text, surface; print(as_text(surface()), end='')"
    done = ran([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(TESTS), "PYTHONHASHSEED": "7"})
    assert (done.code, done.out) == (0, as_text(today))
    assert done.seconds < SECONDS
