"""Shared by the tests of the chat page: a skill that may change files, and a person who types."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page

from cli.support import type_a
from gateway.served import Person
from person_state import accept
from specialist.turns import song

NOTES = "one\ntwo\nthree\n"


def give_skills(person: Person) -> None:
    """Adds a trusted prompt skill that may change files, and a skill that runs a command."""
    text = song("allowed-tools: read, write, edit\n")
    person.here.write({".claude/skills/song-writer/SKILL.md": text, "notes.txt": NOTES})
    counter = type_a("letter-count", "import sys\nprint(len(sys.argv[-1]), 'letters')\n")
    person.here.write({f".claude/skills/letter-count/{path}": text for path, text in counter.items()})
    with pytest.MonkeyPatch.context() as patch:
        for name, value in person.env.items():
            patch.setenv(name, value)
        accept(person.here.root, "song-writer")


def send(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def last(page: Page) -> Locator:
    return page.get_by_role("article").last
