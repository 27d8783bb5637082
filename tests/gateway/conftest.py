"""A project with a prompt skill, a model that answers over its real protocol, and a server for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from cli.support import Place
from gateway.served import Person, Served, serving
from homes import made_home
from models.wire_server import HELLO, WireServer
from models.wire_server import serving as serving_models
from person_state import accept
from specialist.turns import says, settings, song


@pytest.fixture(scope="module")
def model_server() -> Iterator[WireServer]:
    with serving_models() as held:
        yield held


@pytest.fixture
def model(model_server: WireServer) -> WireServer:
    """A model that says hello until a test gives it something else to say."""
    model_server.requests.clear()
    model_server.scripts.clear()
    says(model_server, HELLO)
    return model_server


@pytest.fixture(scope="module")
def person(new_folder: Callable[[str], Path], caches: Mapping[str, Sequence[Path]], model_server: WireServer) -> Person:
    """A person with a home and a project, who has set a model and trusts one skill."""
    with pytest.MonkeyPatch.context() as patch:
        home = made_home(new_folder("home"), caches, patch)
        file = home / ".config" / "navigator" / "config.toml"
        file.parent.mkdir(parents=True)
        file.write_text(settings(model_server))
        here = Place(root=new_folder("project"))
        (here.root / "mybox").mkdir()
        here.write({".claude/skills/song-writer/SKILL.md": song()})
        accept(here.root, "song-writer")
        return Person(here, {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"})


@pytest.fixture(scope="module")
def served(person: Person) -> Iterator[Served]:
    with serving(person, roles=("admin", "approve", "chat", "read")) as held:
        yield held
