"""Skills are installed, described, switched, updated and removed in plain words, also while a question waits (LIF-7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.support import Place
from skill_repositories import skill_text
from workflows.project import project_in

pytestmark = pytest.mark.requirement("SEN-3", "SEN-5", "LIF-7", "AGT-6")


@pytest.fixture
def here(tmp_path: Path) -> Place:
    team = tmp_path / "team"
    for name, text in {"tidy-up": "Tidies a folder up", "draw-map": "Draws a map of a place"}.items():
        (team / name).mkdir(parents=True)
        (team / name / "SKILL.md").write_text(skill_text(name, text))
    return Place(root=project_in(tmp_path))


def replies(here: Place, *messages: str) -> list[str]:
    """The line with the state of the reply to each message of one session."""
    done = [here.run("ask", "--session", "s", message).out.splitlines() for message in messages]
    return [next(line for line in lines if line[:1] in "✅⏸❌⚠") for lines in done]


def test_a_skill_from_its_source_to_its_end(here: Place) -> None:
    session = {
        "which skills are in ../team?": "has 2 skills",
        "install tidy-up and draw-map from ../team": "this needs your approval: install ../team ",
        "yes": "installed tidy-up (no commit), installed draw-map (no commit)",
        "what does tidy-up do?": "tidy-up: Tidies a folder up",
        "turn off the tidy-up skill": "this needs your approval: disable tidy-up",
        "是": "switched off: tidy-up",
        "把 tidy-up 启用": "需要你的授权：enable tidy-up",
        "好": "已启用：tidy-up",
        "is draw-map up to date?": "up to date: draw-map",
        "update all skills": "this needs your approval: update",
        "go ahead": "up to date: draw-map, tidy-up",
        "verify my skills": "2 skills unchanged since installation",
        "卸载 draw-map": "需要你的授权：uninstall draw-map",
        "可以": "已卸载 draw-map",
        "which skills do I have?": "skills",
    }
    for message, part in session.items():
        assert part in replies(here, message)[0]
    assert [path.name for path in sorted((here.root / ".claude" / "skills").glob("t*-up"))] == ["tidy-up"]


@pytest.mark.parametrize(
    "text", ["uninstall shout-loud", "把 shout-loud 卸载掉", "update shout-loud", "what does shout-loud do?"]
)
@pytest.mark.parametrize("waits", ["/shout-loud", "run shout-loud on @notes.txt and then count the terms in it"])
def test_an_order_about_a_skill_answers_no_question(here: Place, waits: str, text: str) -> None:
    """A question that offers a skill was answered with yes by `uninstall` and its name."""
    asked, reply = replies(here, waits, text)
    assert "needs" in asked or "run them?" in asked
    assert "shout-loud" in reply and "run them?" not in reply and "needs:" not in reply


def test_changed_files_are_named(here: Place) -> None:
    replies(here, "install tidy-up from ../team", "yes")
    (here.root / ".claude" / "skills" / "tidy-up" / "SKILL.md").write_text("changed")
    done = here.run("ask", "verify my skills")
    assert (done.code, "changed since installed: 'tidy-up'" in done.out) == (6, True)
