"""Commands that no file of their own tests: routes, the help of groups, the short form of replies, and the scripts of bin/."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.support import SOURCE, Place, place_in
from tables import cases

pytestmark = pytest.mark.sample(1)


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


@pytest.mark.parametrize(
    "text", ["review this code", "审查代码", "nothing that anybody knows", "   ", "first list todos, then review code"]
)
def test_a_route_without_options_says_what_it_says_with_them(here: Place, text: str) -> None:
    """The first is answered before the command line is parsed, the second after it."""
    assert here.run("route", *text.split(" ")) == here.run("route", *text.split(" "), "-k", "5")


@pytest.mark.requirement("INT-1")
@cases("text, kind, entity, tier")
def test_route_says_what_would_be_done_and_does_nothing(
    here: Place, text: str, kind: str, entity: str | None, tier: str
) -> None:
    told = here.json("route", text)
    assert (told["kind"], told["entity"], told["tier"]) == (kind, entity, tier)
    # identifies the project's skill index in the person's state
    assert set(here.files()) <= {"mybox/.gitignore", "mybox/state/project-id"}


@pytest.mark.parametrize("words", [(), ("host",), ("skill",), ("config",), ("mcp",)], ids=" ".join)
def test_a_group_alone_shows_its_help_and_no_error(here: Place, words: tuple[str, ...]) -> None:
    done = here.run(*words)
    assert (done.code, done.out, done.err) == (2, "", here.said(*words, "--help"))


@pytest.mark.requirement("OUT-4")
@cases("words")
def test_abilities_short_formats_and_questions_are_shown_without_a_logic_trace(
    here: Place, words: tuple[str, ...]
) -> None:
    assert "[Logic Trace]" not in here.run("ask", *words).out


@pytest.mark.parametrize("script", ["skill_manager.py", "chat.py", "doctor.py"])
def test_a_script_of_bin_is_short_and_starts(here: Place, script: str) -> None:
    assert len((SOURCE / "bin" / script).read_text().splitlines()) <= 10
    program = (here.program[0], str(SOURCE / "bin" / script))
    assert Place(root=here.root, program=program).run("--help").code == 0
