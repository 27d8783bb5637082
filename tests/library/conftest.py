"""A project with skills that run and one for a model, which answers over its real protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.support import Place, below, place_in, type_a
from models.wire_server import WireServer, serving
from navigator_kernel import Kernel
from navigator_kernel.bootstrap.places import open_consents
from navigator_kernel.bootstrap.project import Project
from person_state import accept
from specialist.turns import settings, song

SKILLS = ".claude/skills"
NOTES = "one\ntwo\nthree\n"
DOZE = "import pathlib, time\npathlib.Path('begun').write_text('yes')\ntime.sleep(60)\n"
SHOUT = """import pathlib, sys
path = pathlib.Path(sys.argv[1])
print((path.read_text() if path.is_file() else " ".join(sys.argv[1:])).upper())
"""


def shouting(name: str) -> dict[str, str]:
    files = type_a(name, SHOUT, description="shouts a text back in capitals")
    return {path: text.replace("/run.py\n", "/run.py $ARGUMENTS\n") for path, text in files.items()}


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """`shout` and `doze` run, `song-writer` is for a model and has a reference and a script; nobody accepted `stranger`
    and `loud-stranger`."""
    place = place_in(tmp_path)
    place.write({"notes.txt": NOTES, ".env": "TOKEN=made-up\n"})
    place.write(below(f"{SKILLS}/shout", shouting("shout")))
    place.write(below(f"{SKILLS}/doze", type_a("doze", DOZE, description="sleeps for a minute")))
    place.write(
        {f"{SKILLS}/song-writer/SKILL.md": song(), f"{SKILLS}/song-writer/references/rhymes.md": "boat, float\n"}
    )
    place.write(
        {
            f"{SKILLS}/song-writer/scripts/count.py": "import sys\nprint(len(open(sys.argv[1]).read().split()), 'words')\n"
        }
    )
    place.write({f"{SKILLS}/stranger/SKILL.md": song().replace("song-writer", "stranger")})
    place.write(below(f"{SKILLS}/loud-stranger", shouting("loud-stranger")))
    accept(place.root, "shout", "doze", "song-writer")
    executors = [
        Project(place.root, agents=False).catalogue.create_executor(f"skill:{name}") for name in ("shout", "doze")
    ]
    open_consents().trust(*(executor.consent for executor in executors), note="a test")
    return place


@pytest.fixture
def kernel(place: Place) -> Kernel:
    return Kernel(place.root)


@pytest.fixture
def with_model(place: Place, home: Path, server: WireServer) -> Kernel:
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings(server))
    server.requests.clear()
    server.scripts.clear()
    return Kernel(place.root)
