"""A person's session with a model on a pseudo-terminal, in English and Chinese: two PDFs are merged, with an approval, a
refusal with a reason, an edit, an undo and a thank-you. `GOLDEN=write` rewrites the transcripts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cli.hints import Hint, commands_in, problem
from cli.support import Place, place_in
from cli.terminals import Terminal, terminal
from models.wire_server import Said, WireServer, serving
from person_state import accept
from skill_repositories import skill_text
from specialist.turns import says, settings
from tables import table

pytestmark = pytest.mark.sample(1)

KEPT = Path(__file__).with_name("transcripts")
MERGE = """\
import pathlib, sys
pathlib.Path(sys.argv[-1]).write_bytes(b"".join(pathlib.Path(path).read_bytes() for path in sys.argv[1:-1]))
print("merged", len(sys.argv) - 2, "files")
"""
CONTENTS = "# Contents\n\n- a.pdf\n- b.pdf\n"
TEXTS = table(__file__, "TEXTS")
LETTERS = {"en": "[n]o  [e]dit  [?]", "zh": "[n] 否  [e] 修改  [?]"}
WHY = {"en": "why not, or what instead: ", "zh": "原因，或希望改成什么："}


@pytest.fixture
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture
def here(tmp_path: Path, home: Path, server: WireServer) -> Place:
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings(server))
    place = place_in(tmp_path)
    guide = skill_text("pdf-merge", "Merges PDF files. Use when several PDF files are to become one.")
    place.write({".claude/skills/pdf-merge/SKILL.md": guide, ".claude/skills/pdf-merge/scripts/merge.py": MERGE})
    place.write({"a.pdf": "%PDF-1.4 a\n", "b.pdf": "%PDF-1.4 b\n", "contents.md": CONTENTS})
    accept(place.root, "pdf-merge")
    return place


def script(place: Place, words: dict[str, str]) -> Sequence[Said]:
    """The model's answers."""

    def call(name: str, **arguments: str) -> tuple[str, str]:
        return name, json.dumps(arguments, ensure_ascii=False)

    run = f"python3 scripts/merge.py {place.root}/a.pdf {place.root}/b.pdf merged.pdf"
    edits = [
        call("edit", file_path="contents.md", old_string="- b.pdf", new_string=f"- b.pdf\n{words[name]}")
        for name in ("first", "second")
    ]
    return (
        Said(text=words["begin"], calls=[call("run", command=run)]),
        Said(calls=[edits[0]]),
        Said(calls=[edits[1]]),
        Said(text=words["end"]),
    )


def session_of(place: Place, language: str, *more: str) -> str:
    """What the terminal shows of the session, and of the messages `more` after it."""
    words = TEXTS[language]
    started = terminal(place, "--language", language, "chat", columns=200, env={"LC_ALL": "C.UTF-8"})
    with started as screen:
        told = [typed(screen, words["message"], LETTERS[language])]
        told.append(typed(screen, "?", LETTERS[language]))
        told.append(typed(screen, "y", LETTERS[language]))
        told.append(typed(screen, "e", WHY[language]))
        screen.type(f"{words['reason']}\n")
        told.append(screen.wait_for(LETTERS[language]))
        told.append(typed(screen, "y", words["end"]))
        for message in more:
            told.append(screen.wait_for("\n> "))
            screen.type(f"{message}\n")
        told.append(screen.wait_for("\n> "))
        screen.type("\x04")
        told.append(screen.rest())
    return without_values("".join(told), place)


def typed(screen: Terminal, line: str, wanted: str) -> str:
    """Types a line at the prompt and returns what is shown up to `wanted`."""
    shown = screen.wait_for("> ")
    screen.type(f"{line}\n")
    return shown + screen.wait_for(wanted)


def without_values(text: str, place: Place) -> str:
    """The text with what differs from run to run replaced by names, and as a person sees it, line by line."""
    text = text.replace("\r\n", "\n").replace(str(place.root), "PROJECT")
    text = re.sub(r"(?m)^(… run .*merge\.py ).*$", r"\1…", text)
    text = re.sub(r"\d{8}-\d{9}-[0-9a-f]{6}", "RUN", text)
    return re.sub(r"[0-9a-f]{64}", "DIGEST", text)


def compare(text: str, name: str) -> None:
    kept = KEPT / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        kept.write_text(text, encoding="utf-8")
    assert text == kept.read_text("utf-8")


def assert_hints_work(text: str) -> None:
    assert [(one, why) for one in commands_in(text) if (why := problem(Hint("", one)))] == []


@pytest.mark.wide
@pytest.mark.requirement("JIT-12")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_session_with_an_approval_a_refusal_and_an_edit_looks_as_it_is_kept(
    here: Place, server: WireServer, language: str
) -> None:
    says(server, *script(here, TEXTS[language]))
    text = session_of(here, language)
    assert TEXTS[language]["second"] in (here.root / "contents.md").read_text("utf-8")
    (merged,) = here.root.glob("mybox/workspace/*/merged.pdf")
    assert merged.read_text() == "%PDF-1.4 a\n%PDF-1.4 b\n"
    assert_hints_work(text)
    compare(text, f"dialogue-{language}")


@pytest.mark.wide
@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_undo_and_a_thank_you_after_it_look_as_they_are_kept(here: Place, server: WireServer, language: str) -> None:
    says(server, *script(here, TEXTS[language]))
    text = session_of(here, language, TEXTS[language]["undo"], "y", TEXTS[language]["thanks"])
    assert (here.root / "contents.md").read_text("utf-8") == CONTENTS
    assert_hints_work(text)
    compare(text, f"dialogue-undo-{language}")
