"""What the tests of the chat page share: a skill that may change files, and a person who types."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page

import navigator_kernel.gateway
from cli.support import type_a
from gateway.served import Person
from person_state import accept
from specialist.turns import song

NOTES = "one\ntwo\nthree\n"


def give_skills(person: Person) -> None:
    """A prompt skill that may change files, which they trust, and a command."""
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


def found_by_axe(page: Page) -> list[str]:
    """The rules that axe-core says are broken, with the elements. It is put in by the debugger: the policy of the page
    lets no other script in."""
    root = Path(navigator_kernel.gateway.__file__).parent / "web" / "node_modules" / "axe-core" / "axe.min.js"
    session = page.context.new_cdp_session(page)
    session.send("Runtime.evaluate", {"expression": root.read_text()})
    answer = session.send(
        "Runtime.evaluate", {"expression": "axe.run(document)", "awaitPromise": True, "returnByValue": True}
    )
    return [
        f"{one['id']}: {[node['html'] for node in one['nodes']]}" for one in answer["result"]["value"]["violations"]
    ]
