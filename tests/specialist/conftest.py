"""A project with a prompt skill, and a model that answers over its real protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.support import Place, place_in
from models.wire_server import HELLO, WireServer, serving
from person_state import accept
from specialist.turns import says, settings, song


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture
def mine(home: Path, server: WireServer) -> Path:
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings(server))
    return file


@pytest.fixture
def here(tmp_path: Path, mine: Path, server: WireServer) -> Place:
    here = place_in(tmp_path)
    here.write({".claude/skills/song-writer/SKILL.md": song()})
    accept(here.root, "song-writer")
    server.requests.clear()
    server.scripts.clear()
    server.declines.clear()
    says(server, HELLO)
    return here
