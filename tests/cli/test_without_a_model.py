"""What a person sees of a prompt skill if no model is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.support import Place, place_in
from cli.terminals import terminal
from skill_repositories import skill_text


@pytest.fixture
def here(tmp_path: Path) -> Place:
    here = place_in(tmp_path)
    here.write({".claude/skills/song-writer/SKILL.md": skill_text("song-writer", "writes songs. Use when asked.")})
    return here


@pytest.mark.requirement("X-41")
@pytest.mark.parametrize(
    ("message", "said", "way"),
    [
        (
            "/song-writer a song",
            "a model has to carry it out, and none is set; nothing was done",
            "navigator model use",
        ),
        ("/song-writer 一首歌", "需要模型来执行，但尚未设置模型；未执行任何操作", "设置模型：navigator model use"),
    ],
    ids=["en", "zh"],
)
def test_a_missing_model_is_reported_with_the_ways_to_continue(here: Place, message: str, said: str, way: str) -> None:
    with terminal(here, "ask", message, columns=160) as screen:
        shown = screen.rest()
    assert said in shown and way in shown and "--show-prompt" in shown
    assert "✅" not in shown and "[OK]" not in shown and "\\n" not in shown


def test_the_prompt_is_printed_as_text_where_it_is_asked_for(here: Place) -> None:
    done = here.run("ask", "--show-prompt", "/song-writer a song")
    assert (done.code, done.out) == (0, "# song-writer\n\nDo it.\n\na song\n")
