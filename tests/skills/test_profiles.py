"""Profiles: named sets of skills, kept in the person's state (issue 50, item 6)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.errors import Damaged, NotFound, UsageProblem
from navigator_kernel.skills.catalog.switches import read_switches
from skill_repositories import skill_text


@pytest.fixture
def skills(project: Any) -> Any:
    """The lifecycle of a project with three skills, one of which is off."""
    for name in ("greet", "pack", "wave"):
        folder = project.skills / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(skill_text(name))
    project.lifecycle.disable("wave")
    return project.lifecycle


def on(skills: Any) -> list[str]:
    return sorted(one.name for one in skills.installed().skills if one.enabled)


def test_using_a_profile_switches_exactly_its_skills_on_and_off_returns_to_what_was(skills: Any) -> None:
    skills.save_profile("front", ["GREET", "wave"])
    skills.save_profile("back", ["pack"])
    skills.use_profile("front")
    assert on(skills) == ["greet", "wave"]
    skills.use_profile("back")
    assert on(skills) == ["pack"]
    skills.use_profile("")
    assert on(skills) == ["greet", "pack"]
    skills.use_profile("")  # nothing is in use
    assert on(skills) == ["greet", "pack"]


def test_a_profile_without_names_has_the_skills_that_are_on(skills: Any) -> None:
    [saved] = skills.save_profile("now").profiles
    assert (saved.skills, saved.active) == (["greet", "pack"], False)


def test_names_that_are_not_installed_are_kept_and_named(skills: Any) -> None:
    [saved] = skills.save_profile("front", ["greet", "later"]).profiles
    assert (saved.skills, saved.missing) == (["greet", "later"], ["later"])


def test_a_profile_that_is_saved_while_it_is_in_use_holds_at_once(skills: Any) -> None:
    skills.save_profile("front", ["greet"])
    skills.use_profile("front")
    skills.save_profile("front", ["pack"])
    assert on(skills) == ["pack"]
    skills.use_profile("")
    assert on(skills) == ["greet", "pack"]


def test_a_profile_that_is_removed_while_it_is_in_use_switches_nothing_off(skills: Any) -> None:
    skills.save_profile("front", ["greet"])
    skills.use_profile("front")
    assert skills.remove_profile("front").profiles == []
    assert on(skills) == ["greet", "pack"]


def test_enable_and_disable_keep_the_profiles(skills: Any) -> None:
    skills.save_profile("front", ["greet"])
    skills.use_profile("front")
    skills.enable("pack")
    assert on(skills) == ["greet", "pack"]
    assert [one.active for one in skills.profiles().profiles] == [True]


@pytest.mark.parametrize("name", ["", "list", "none", "../x", "a b", "-x", "x" * 65, "a\x1b"])
def test_a_name_that_a_command_or_a_path_could_be_is_refused(skills: Any, name: str) -> None:
    with pytest.raises(UsageProblem):
        skills.save_profile(name, ["greet"])


@pytest.mark.parametrize("skill", ["", " ", "a\x1bb", "a\nb"])
def test_a_skill_needs_a_plain_name(skills: Any, skill: str) -> None:
    with pytest.raises(UsageProblem):
        skills.save_profile("front", [skill])


def test_an_unknown_profile_is_not_found_and_changes_nothing(skills: Any) -> None:
    skills.save_profile("front", ["greet"])
    for run in (skills.use_profile, skills.remove_profile, skills.profiles):
        with pytest.raises(NotFound) as caught:
            run("fron")
        assert "front" in caught.value.hint
    assert on(skills) == ["greet", "pack"]


def test_switches_of_an_earlier_version_are_read_and_damaged_ones_are_reported(skills: Any) -> None:
    file: Path = skills.state / "disabled.json"
    file.write_text(json.dumps({"v": 1, "disabled": ["greet"]}))
    assert read_switches(skills.state).disabled == {"greet"}
    for damaged in (
        '{"disabled": 7}',
        "{",
        '{"disabled": [], "profiles": []}',
        '{"disabled": [], "profile": "gone", "profiles": 1}',
    ):
        file.write_text(damaged)
        with pytest.raises(Damaged):
            skills.profiles()
        assert file.read_text() == damaged


def test_a_project_brings_no_profile(project: Any, skills: Any) -> None:
    (project.root / "disabled.json").write_text('{"disabled": ["greet"], "profiles": {"evil": []}, "profile": "evil"}')
    (project.skills / "disabled.json").write_text('{"disabled": ["greet"]}')
    assert skills.profiles().profiles == []
    assert on(skills) == ["greet", "pack"]
