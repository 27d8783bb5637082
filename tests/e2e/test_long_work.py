"""Work of many rounds, calls and failures with a real skill ends in a file that another program opens, over both
protocols (marker ci)."""

from __future__ import annotations

import csv
import json
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, place_in
from models.wire_server import Said, WireServer, serving
from person_state import accept
from scanning.real_corpus import CORPUS
from specialist.turns import of_phase_two, says, settings

pytestmark = [pytest.mark.ci, pytest.mark.timeout(300)]
PARTS = 38
SKILL = ".claude/skills/file-organizer/SKILL.md"
PACK = "python -m zipfile -c parts.zip part-*.csv && echo packed"
MAKE = """
import csv, sys
rows = [line.split(";") for line in open(sys.argv[1], encoding="utf-8").read().splitlines()]
csv.writer(open("table.csv", "w", newline="", encoding="utf-8")).writerows(rows)
print(len(rows), "rows")
"""


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture(scope="session")
def skill(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of a skill of the corpus that works with files of any kind."""
    bundle, bare = CORPUS / "ComposioHQ+awesome-claude-skills.bundle", tmp_path_factory.mktemp("corpus") / "bare"
    if not bundle.is_file():
        pytest.skip("the corpus is not here: set NAVIGATOR_CORPUS")
    subprocess.run(["git", "clone", "-q", "--bare", str(bundle), str(bare)], check=True)
    show = ["git", "-C", str(bare), "show", "HEAD:file-organizer/SKILL.md"]
    return subprocess.run(show, check=True, capture_output=True, text=True).stdout


@pytest.fixture(params=["openai", "anthropic"])
def here(tmp_path: Path, home: Path, server: WireServer, skill: str, request: pytest.FixtureRequest) -> Place:
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings(server).replace(f'url = "{server.url}"', address(server, request.param)))
    server.requests.clear()
    server.scripts.clear()
    here = place_in(tmp_path)
    here.write({SKILL: skill, "raw.txt": "name;city\nAda;London\n"})
    accept(here.root, "file-organizer")
    return here


def address(server: WireServer, kind: str) -> str:
    url = server.url.removesuffix("/v1") if kind == "anthropic" else server.url
    return f'url = "{url}"\nkind = "{kind}"'


def call(tool: str, **arguments: Any) -> tuple[str, str]:
    return tool, json.dumps(arguments)


def one(tool: str, **arguments: Any) -> Said:
    return Said(calls=[call(tool, **arguments)])


def made(told: dict[str, Any], name: str) -> Path:
    (path,) = (Path(file["path"]) for file in told["report"]["data"]["written"] if file["path"].endswith(f"/{name}"))
    return path


def part(at: int) -> tuple[str, str]:
    return call("write", file_path=f"part-{at:02}.csv", content=f"{at},{at * at}\n")


@pytest.mark.requirement("JIT-10")
def test_a_task_of_forty_rounds_is_done_unattended(here: Place, server: WireServer) -> None:
    says(server, *[Said(calls=[part(at)]) for at in range(PARTS)], one("run", command=PACK), Said(text="All packed."))
    told = here.json("ask", "--allow", "run", "/file-organizer pack the parts")
    assert (told["exit_code"], told["report"]["raw"], told["report"]["data"]["rounds"]) == (0, "All packed.", PARTS + 1)
    with zipfile.ZipFile(made(told, "parts.zip")) as archive:
        assert len(archive.namelist()) == PARTS and archive.read("part-07.csv") == b"7,49\n"


@pytest.mark.requirement("JIT-10")
def test_thirty_calls_of_one_answer_are_all_done(here: Place, server: WireServer) -> None:
    says(server, Said(calls=[part(at) for at in range(30)]), one("run", command=PACK), Said(text="All packed."))
    told = here.json("ask", "--allow", "run", "/file-organizer pack the parts")
    assert (told["exit_code"], told["report"]["data"]["rounds"]) == (0, 2)
    with zipfile.ZipFile(made(told, "parts.zip")) as archive:
        assert len(archive.namelist()) == 30


@pytest.mark.requirement("SAF-5")
def test_a_task_that_fails_eight_times_and_then_succeeds_is_done(here: Place, server: WireServer) -> None:
    tries = [one("run", command=f"python make.py raw-{at}.txt") for at in range(4)]
    tries += [one("read", file_path=f"missing-{at}.txt") for at in range(4)]
    says(
        server,
        one("write", file_path="make.py", content=MAKE),
        *tries,
        one("run", command="python make.py raw.txt"),
        Said(text="The table is table.csv."),
    )
    told = here.json("ask", "--allow", "run", "/file-organizer make a table of raw.txt")
    assert told["exit_code"] == 0, told
    with made(told, "table.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["name", "city"], ["Ada", "London"]]


@pytest.mark.requirement("JIT-10", "SAF-7")
def test_a_task_that_hits_a_bound_is_continued_to_its_end(here: Place, home: Path, server: WireServer) -> None:
    file = home / ".config" / "navigator" / "config.toml"
    file.write_text(file.read_text().replace("retries = 0\n", "retries = 0\nturn_tokens = 1300\n"))
    first, rest = range(10), range(10, 12)
    says(
        server,
        *[Said(calls=[part(at)]) for at in first],
        Said(text="Ten are written, two are left."),
        *[Said(calls=[part(at)]) for at in rest],
        one("run", command=PACK),
        Said(text="All packed."),
    )
    told = here.json("ask", "--session", "s", "/file-organizer pack the parts")
    assert (told["exit_code"], told["report"]["state"], len(told["report"]["data"]["written"])) == (1, "partial", 10)
    told = here.json("ask", "--session", "s", "--allow", "run", "please continue")
    assert told["exit_code"] == 0, told
    with zipfile.ZipFile(made(told, "parts.zip")) as archive:
        assert len(archive.namelist()) == 12
    assert len(of_phase_two(server)) == 15
