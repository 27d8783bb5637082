"""The commands that hints name exist, with their options and arguments, and do what the hint says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.hints import bare_options, hints, problem, wrong
from cli.support import Place, place_in
from skill_repositories import commit, make_repo, skill_text

pytestmark = pytest.mark.sample(1)


def test_every_hint_names_a_command_that_exists_with_options_and_arguments_that_it_takes() -> None:
    assert [f"{hint.place}: navigator {hint.text}: {why}" for hint in hints() if (why := problem(hint))] == []


def test_every_option_that_a_hint_names_alone_is_one_of_the_commands_that_can_print_it() -> None:
    found = bare_options()
    assert len(found) > 30
    assert [f"{one.place}: {one.text}" for one in found if not one.takers] == []


def test_hints_are_found_in_all_their_forms() -> None:
    texts = {hint.text for hint in hints()}
    assert len(texts) > 90
    assert {"workflow approve NAME", "skill enable NAME", "model list 会显示其来源"} <= texts


@pytest.mark.parametrize(
    "text", ["install --forced", "verfy NAME", "skill trust", "ask --sesion NAME yes", "skill info a.b c.d", "config"]
)
def test_a_wrong_hint_is_noticed(text: str) -> None:
    assert wrong(text.split()) != ""


@pytest.fixture
def edited(tmp_path: Path) -> Place:
    """A project in which a file of an installed skill was changed, one was added and one removed."""
    place = place_in(tmp_path)
    files = {"skills/alpha/SKILL.md": skill_text("alpha", "draws"), "skills/alpha/old.txt": "old\n"}
    place.said("install", make_repo(tmp_path, files).as_uri(), "--all")
    place.write({".claude/skills/alpha/SKILL.md": "mine", ".claude/skills/alpha/new.txt": "new"})
    (place.root / ".claude/skills/alpha/old.txt").unlink()
    return place


@pytest.mark.requirement("X-38")
def test_verify_lists_the_files_that_differ(edited: Place) -> None:
    done = edited.run("skill", "verify", "alpha")
    assert done.code == 6
    said, *files = done.out.splitlines()
    assert said == "alpha: edited since it was installed"
    assert files == ["alpha: changed SKILL.md", "alpha: missing old.txt", "alpha: added new.txt"]


@pytest.mark.requirement("X-38")
@pytest.mark.parametrize(
    "words", [("install", "--frozen"), ("install", "SOURCE", "--skill", "alpha"), ("skill", "verify")]
)
def test_the_hint_about_an_edited_skill_restores_it_and_keeps_its_commit(
    edited: Place, tmp_path: Path, words: tuple[str, ...]
) -> None:
    source, lock = tmp_path / "repo", edited.root / "skills.lock.json"
    before = lock.read_bytes()
    commit(source, {"skills/alpha/SKILL.md": skill_text("alpha", "draws other things")})
    done = edited.run(*(source.as_uri() if word == "SOURCE" else word for word in words))
    hint = re.search(r"navigator (skill install --frozen --force --skill alpha) undoes", done.err)
    assert done.code in {3, 6} and hint is not None, done.err
    assert "\nrestored alpha (copy kept in " in edited.said(*hint[1].split())
    assert "draws" in (edited.root / ".claude/skills/alpha/SKILL.md").read_text()
    assert (edited.run("skill", "verify").code, lock.read_bytes()) == (0, before)
    assert [path.read_text() for path in edited.root.rglob("new.txt")] == ["new"]  # the copy


def test_a_frozen_install_without_force_or_of_an_unknown_skill_changes_nothing(edited: Place) -> None:
    unknown = edited.run("install", "--frozen", "--force", "--skill", "alpa")
    assert (unknown.code, "did you mean alpha?" in unknown.err) == (4, True)
    assert edited.run("install", "--frozen", "--ref", "main").code == 2
    assert edited.run("install", "somewhere", "--force").code == 2
    assert (edited.root / ".claude/skills/alpha/SKILL.md").read_text() == "mine"
