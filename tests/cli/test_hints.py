"""The commands that hints name exist, with their options and arguments, and do what the hint says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.hints import hints, problem, wrong
from cli.support import Place, place_in
from skill_repositories import make_repo, skill_text

pytestmark = pytest.mark.sample(1)


def test_every_hint_names_a_command_that_exists_with_options_and_arguments_that_it_takes() -> None:
    assert [f"{hint.place}: navigator {hint.text}: {why}" for hint in hints() if (why := problem(hint))] == []


def test_hints_are_found_in_all_their_forms() -> None:
    texts = {hint.text for hint in hints()}
    assert len(texts) > 90
    assert {"workflow approve NAME", "skill enable NAME", "model list 会显示其来源"} <= texts


@pytest.mark.parametrize(
    "text", ["install --force", "verify NAME", "skill trust", "ask --sesion NAME yes", "skill info a.b c.d", "config"]
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
    assert done.out.splitlines() == ["alpha: changed SKILL.md", "alpha: missing old.txt", "alpha: added new.txt"]


@pytest.mark.requirement("X-38")
def test_the_hint_of_a_frozen_install_restores_an_edited_skill(edited: Place, tmp_path: Path) -> None:
    done = edited.run("install", "--frozen")
    hint = re.search(r"navigator (skill verify alpha) names the changes; to restore it, move '(.*)' away", done.err)
    assert done.code == 3 and hint is not None
    assert "changed SKILL.md" in edited.run(*hint[1].split()).out
    Path(hint[2]).rename(tmp_path / "away")
    assert edited.said("install", "--frozen") == "restored alpha\n"
