"""The terminal list in which a person marks skills, if a source holds several and none is named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prompt_toolkit.output import DummyOutput

from cli.support import Place, place_in
from cli.terminals import Terminal, terminal
from navigator_kernel.cli.picker import Marked
from skill_repositories import make_repo, skill_text

pytestmark = pytest.mark.sample(1)

TERM = {"TERM": "xterm-256color"}
HELP = "Esc leaves"
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\u200b"


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


@pytest.fixture
def source(tmp_path: Path) -> str:
    said = {"alpha": "draws charts", "beta": "制作幻灯片", "gamma": "reads mail", "delta": "writes mail"}
    files = {f"skills/{name}/SKILL.md": skill_text(name, text) for name, text in said.items()}
    return make_repo(tmp_path, files, name="repository").as_uri()


@contextmanager
def picking(place: Place, *words: str, columns: int = 80) -> Iterator[Terminal]:
    with terminal(place, *words, columns=columns, env=TERM) as screen:
        yield screen


def installed(place: Place) -> set[str]:
    return {path.parent.name for path in place.root.glob(".claude/skills/*/SKILL.md")}


@pytest.mark.requirement("LIF-2")
def test_marked_skills_are_installed(here: Place, source: str) -> None:
    with picking(here, "install", source) as screen:
        assert "4 skills in" in screen.wait_for(HELP)
        screen.type(" ")  # alpha, the first
        screen.type("\x1b[B\x1b[B ")  # two further down: delta
        screen.type("\r")
        assert "2 installed" in screen.rest()
    assert screen.process.returncode == 0
    assert installed(here) == {"alpha", "delta"}


@pytest.mark.wide
@pytest.mark.parametrize(("typed", "name"), [("gam", "gamma"), ("CHART", "alpha"), ("幻灯", "beta")])
def test_typing_filters_by_name_and_description(here: Place, source: str, typed: str, name: str) -> None:
    with picking(here, "skill", "install", source) as screen:
        screen.wait_for(HELP)
        screen.type(f"{typed} \r")
        assert f"installed {name} " in screen.rest()
    assert installed(here) == {name}


@pytest.mark.wide
def test_a_mark_stays_while_something_else_is_typed(here: Place, source: str) -> None:
    with picking(here, "add", source) as screen:
        screen.wait_for(HELP)
        screen.type("gam \x7f\x7f\x7fdel \r")
        assert "2 installed" in screen.rest()
    assert installed(here) == {"gamma", "delta"}


@pytest.mark.wide
@pytest.mark.parametrize("key", ["\x1b", "\x03", "\x04"], ids=["esc", "ctrl-c", "ctrl-d"])
def test_leaving_changes_nothing(here: Place, source: str, key: str) -> None:
    before = here.files()
    with picking(here, "install", source) as screen:
        screen.wait_for(HELP)
        screen.type(f" {key}")
        shown = screen.rest()
    assert screen.process.returncode == 130
    assert "nothing was installed" in shown
    assert "Traceback" not in shown
    assert here.files() == before


@pytest.mark.wide
def test_enter_with_nothing_marked_says_what_to_do(here: Place, source: str) -> None:
    with picking(here, "install", source) as screen:
        screen.wait_for(HELP)
        screen.type("\r")
        screen.wait_for("yet: space")  # only changed text is drawn
        screen.type("\x1b")
        screen.rest()
    assert installed(here) == set()


@pytest.mark.wide
def test_foreign_text_is_cleaned_and_cut_before_it_is_shown(here: Place, tmp_path: Path) -> None:
    files = {f"skills/{name}/SKILL.md": skill_text(name, f'"{name} 说明{"很长" * 60}"') for name in ("one", "two")}
    files["skills/three/SKILL.md"] = skill_text("three", "does \u202eevil\u200b")
    repo = make_repo(tmp_path, files, name="hostile")
    with picking(here, "install", repo.as_uri(), columns=60) as screen:
        shown = screen.wait_for("0 marked")
        screen.type("\x1b")
        shown += screen.rest()
    assert "\u202e" not in shown
    assert "does evil" in shown
    assert shown.count("…") >= 2


def test_a_line_of_the_list_contains_nothing_that_steers_a_terminal() -> None:
    lines = Marked([("plain", "text"), (f"name {HOSTILE}", f"said {HOSTILE}\nand more")], DummyOutput()).lines()
    shown = "".join(line[1] for line in lines)
    assert [line.strip() for line in shown.splitlines()] == [
        "> [ ] plain      text",
        "[ ] name evil  said evil and more",
    ]


@pytest.mark.wide
@pytest.mark.parametrize("words", [("--all",), ("--skill", "alpha"), ("--dry-run", "--all")])
def test_no_picker_opens_when_skills_are_named_or_all_are_chosen(
    here: Place, source: str, words: tuple[str, ...]
) -> None:
    with picking(here, "install", source, *words) as screen:
        assert HELP not in screen.rest()
    assert screen.process.returncode == 0


@pytest.mark.wide
def test_one_skill_alone_is_not_asked_about(here: Place, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"skills/solo/SKILL.md": skill_text("solo")}, name="single")
    with picking(here, "install", repo.as_uri()) as screen:
        assert HELP not in screen.rest()
    assert installed(here) == {"solo"}


@pytest.mark.parametrize("how", ["pipe", "dumb", "json"])
def test_without_a_terminal_there_is_a_list_and_a_hint(here: Place, source: str, how: str) -> None:
    if how == "pipe":
        done = here.run("install", source)
        shown, code = done.out + done.err, done.code
    else:
        words = ["--json"] if how == "json" else []
        env = TERM if how == "json" else {}
        with terminal(here, "install", source, *words, env=env) as screen:
            shown = screen.rest()
        code = screen.process.returncode
    assert code == 2
    assert "add --skill NAME or --all; it has: alpha, beta, delta, gamma" in shown
    assert installed(here) == set()
