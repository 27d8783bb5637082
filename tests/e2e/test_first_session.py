"""A new user's first fifteen minutes, typed on a terminal of 80 columns, look as the guide shows them.

The guide is the script: a fence with a title is a file of the project, and a `session` fence has commands after `$ `, what
is typed at a prompt after `> ` (a `>` alone is Ctrl-D), and between them what the screen shows. `UPDATE_GOLDEN=1` writes
the screen into the guide, and `make docs` then the part of it that the README shows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pyte
import pytest

from cli.support import Place
from cli.terminals import terminal
from docs.guide_runs import FENCE, Project, project_in, title_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDES = {"en": DOCS / "guides" / "first-session.md", "zh": DOCS / "zh" / "guides" / "first-session.md"}
COLUMNS, LINES = 80, 400
# What differs from run to run → what the guide shows for it, of the same length where a line may wrap
FIXED = (
    (r"\d{8}-\d{9}-[0-9a-f]{6}", "20260914-093000000-a1b2c3"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "2026-09-14T09:30:00.000Z"),
    (r"(?<![\w.])\d+\.\d+ (s\b|秒)", r"0.5 \1"),
)


@pytest.mark.ci
@pytest.mark.timeout(300)
@pytest.mark.parametrize("language", list(GUIDES))
def test_the_first_session_looks_as_the_guide_shows_it(language: str, tmp_path: Path) -> None:
    guide = GUIDES[language]
    project = project_in(tmp_path)
    dates = {"GIT_AUTHOR_DATE": "2026-09-14T09:00:00Z", "GIT_COMMITTER_DATE": "2026-09-14T09:00:00Z"}
    place = {"LC_ALL": "", "LANG": {"en": "en_US.UTF-8", "zh": "zh_CN.UTF-8"}[language]}
    project.env |= {**dates, **place, "TERM": "xterm-256color", "HOME": os.environ["HOME"]}
    text = guide.read_text("utf-8")
    found = FENCE.sub(lambda fence: _fence(fence, project), text)
    if os.environ.get("UPDATE_GOLDEN"):
        guide.write_text(found, "utf-8")
    assert found == guide.read_text("utf-8"), "if this is better: UPDATE_GOLDEN=1, then make docs"


def _fence(fence: re.Match[str], project: Project) -> str:
    """The fence; a session with what the screen shows now."""
    ticks, info, body = fence.groups()
    if info != "session":
        project.write(title_of(info), body)
        return fence[0]
    return f"{ticks}{info}\n" + "\n".join(_screens(body, project)) + f"\n{ticks}"


def _screens(body: str, project: Project) -> Iterator[str]:
    place = Place(root=project.root, program=("/bin/bash", "-c"))
    for block in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, *rest = block.split("\n")
        typed = [line[2:] for line in rest if line == ">" or line.startswith("> ")]
        with terminal(place, command, columns=COLUMNS, env=project.env) as screen:
            screen.seen, shown = "\n", ""  # a prompt stands at the beginning of a line
            for answer in typed:
                shown += screen.wait_for("\n> ")
                screen.type(f"{answer}\n" if answer else "\x04")
            shown += screen.rest()
        told = _as_shown(shown.replace(str(project.root.parent), "/home/me"))
        yield f"$ {command}" + (f"\n{told}" if told else "")


def _as_shown(text: str) -> str:
    """What the terminal finally shows. pyte stops at the selector of an emoji, which is the second half of a mark."""
    for pattern, fixed in FIXED:
        text = re.sub(pattern, fixed, text)
    screen = pyte.Screen(COLUMNS, LINES)
    pyte.Stream(screen).feed(text.replace("\ufe0f", "").replace("\r\n", "\n").replace("\n", "\r\n"))
    shown = "\n".join(line.rstrip() for line in screen.display).strip("\n")
    return re.sub("[⏸⚠⏱]", "\\g<0>\ufe0f", shown)
