"""Commands in the text of a prompt skill run only if its manifest asks and the person agreed to these bytes (X-4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, place_in

pytestmark = [pytest.mark.requirement("SAF-1", "PRE-6"), pytest.mark.sample(1)]

HEAD = "---\nname: brief\ndescription: Says what is here\n{more}---\n"
ON = 'metadata:\n  navigator-dynamic: "true"\n'


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


def brief(place: Place, body: str, more: str = ON) -> None:
    place.write({".claude/skills/brief/SKILL.md": HEAD.format(more=more) + body})


def told(place: Place, *words: str) -> Any:
    return place.run("ask", "--show-prompt", "--json", *words).document["report"]


def test_without_the_key_the_text_stays_as_it_is_and_nothing_runs(here: Place) -> None:
    brief(here, "Now: !`echo ran > ran; echo 5`\n", more="")
    report = told(here, "/brief x", "--yes")
    assert ("!`echo ran > ran; echo 5`" in report["raw"], list(here.root.rglob("ran"))) == (True, [])


def test_nobody_agreed_and_nothing_runs(here: Place) -> None:
    brief(here, "Now: !`echo ran > ran`\n")
    report = told(here, "/brief x")
    assert (report["state"], "echo ran" in report["summary"], list(here.root.rglob("ran"))) == ("pending", True, [])


def test_the_output_of_an_approved_command_takes_its_place_in_the_text(here: Place) -> None:
    brief(here, "Two: !`echo $((1+1))` and !`printf 'three words here'`\n")
    assert "Two: 2 and three words here" in told(here, "/brief x", "--yes")["raw"]


def test_trust_in_the_bytes_is_enough_and_ends_with_them(here: Place) -> None:
    brief(here, "Two: !`echo $((1+1))`\n")
    here.said("skill", "trust", "brief")
    before = told(here, "/brief x")["state"]
    brief(here, "Two: !`echo $((1+2))`\n")
    assert (before, told(here, "/brief x")["state"]) == ("success", "pending")


@pytest.mark.parametrize("words", ["/brief !`echo out > mine`", "/brief '!`echo out > mine`'"])
def test_a_command_in_a_message_is_not_run(here: Place, words: str) -> None:
    brief(here, "You said $ARGUMENTS, {request}. Two: !`echo $((1+1))`\n")
    here.said("skill", "trust", "brief")
    here.run("ask", "--json", words)
    assert list(here.root.rglob("mine")) == []


def test_the_output_of_a_command_is_not_expanded_again(here: Place) -> None:
    brief(here, "It says: !`printf '%s' '$ARGUMENTS {request} !\\140echo no\\140'`\n")
    raw = told(here, "/brief secret-word", "--yes")["raw"]
    assert "It says: $ARGUMENTS {request} !" in raw


def test_a_command_sees_no_network_and_no_other_folder(here: Place, tmp_path: Path) -> None:
    (tmp_path / "dear").write_text("dear")
    brief(here, f"Now: !`cat {tmp_path}/dear || echo hidden`\n")
    assert "Now: hidden" in told(here, "/brief x", "--yes")["raw"]


def test_a_failed_command_is_an_error_with_its_stderr(here: Place) -> None:
    brief(here, "Now: !`echo no disk >&2; exit 3`\n")
    report = told(here, "/brief x", "--yes")
    assert (report["state"], "no disk" in report["data"]["msg"]) == ("error", True)


def test_the_skills_own_folder_is_known_to_it(here: Place) -> None:
    brief(here, "Now: !`cat $SKILL_ROOT/fact.txt`\n")
    here.write({".claude/skills/brief/fact.txt": "a fact"})
    assert "Now: a fact" in told(here, "/brief x", "--yes")["raw"]


def test_without_a_model_a_command_in_the_text_is_not_even_asked_about(here: Place) -> None:
    brief(here, "Now: !`echo ran > ran`\n")
    report = here.run("ask", "--yes", "--json", "/brief x").document["report"]
    assert (report["state"], report["data"]["reason"]) == ("pending", "no_model")
