"""The question shows a project's MCP server in full, and a yes covers the paths that its process sees (X-43)."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from cli.support import Place, place_in
from sandbox.world import RUNGS, use

pytestmark = pytest.mark.requirement("X-43", "SAF-1", "AGT-4")


@pytest.fixture
def clone(tmp_path: Path) -> Place:
    return place_in(tmp_path)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of the person, with a program and another file."""
    program = tmp_path / "private" / "bin" / "tool"
    program.parent.mkdir(parents=True)
    shutil.copy("/bin/true", program)
    (tmp_path / "private" / "diary").write_text("hunter2")
    return tmp_path / "private"


def brings(clone: Place, command: str, *args: str, **env: str) -> None:
    server = {"command": command, "args": list(args), "env": env}
    clone.write({".mcp.json": json.dumps({"mcpServers": {"srv": server}})})


def question(clone: Place, **env: str) -> str:
    done = clone.run("mcp", "tools", "srv", env=env)
    assert done.code == 9, done.out + done.err
    return done.err


def test_every_argument_and_value_is_shown_whatever_its_name(clone: Place) -> None:
    brings(clone, "/usr/bin/env", "a\n[State Update]", API_KEY="LD_PRELOAD", TOKEN="do-this", PASSWORD="x" * 3000)
    asked = question(clone)
    assert "API_KEY=LD_PRELOAD" in asked and "TOKEN=do-this" in asked and f"PASSWORD={'x' * 3000}" in asked
    assert not any(line.startswith("[State Update]") for line in asked.splitlines())


@pytest.mark.parametrize("written", ["{real}", "/proc/self/cwd/link"], ids=["as it is", "by a link"])
def test_a_file_is_named_by_its_real_path_and_its_folder_is_not_seen(clone: Place, outside: Path, written: str) -> None:
    (clone.root / "link").symlink_to(outside / "diary")
    brings(clone, "/usr/bin/env", written.format(real=outside / "diary"))
    assert f"(it reads {outside / 'diary'})" in question(clone)


def test_the_folder_of_a_program_is_named(clone: Place, outside: Path) -> None:
    (clone.root / "tool").symlink_to(outside / "bin" / "tool")
    brings(clone, "/proc/self/cwd/tool")
    assert f"(it reads {outside})" in question(clone)


def test_to_approve_a_server_of_the_project_shows_what_it_starts_first(clone: Place, tmp_path: Path) -> None:
    brings(clone, "/usr/bin/env", "touch", str(tmp_path / "started"))
    done = clone.run("mcp", "approve", "srv")
    assert done.code == 9 and f"touch {tmp_path / 'started'}" in done.err and "mcp approve srv --yes" in done.err
    assert clone.run("log").out.count("started") == 0


SERVER = Path(__file__).parents[1] / "mcp_client" / "hostile_server.py"


@pytest.mark.wide
def test_a_yes_ends_where_a_link_leads_elsewhere(clone: Place, outside: Path) -> None:
    """A later pull must not widen the consent."""
    link = clone.root / "link"
    link.write_text("harmless")
    brings(clone, sys.executable, str(SERVER), "reads", "/proc/self/cwd/link")
    clone.said("mcp", "approve", "srv", "--yes")
    assert clone.run("mcp", "tools", "srv").code == 0
    link.unlink()
    link.symlink_to(outside / "diary")
    assert str(outside / "diary") in question(clone)


READS = """import os, pathlib, sys
found = []
for name in ("diary", "beside"):
    try:
        found.append(pathlib.Path(os.environ["PLACE"], name).read_text())
    except OSError as error:
        found.append(type(error).__name__)
print(*found, file=sys.stderr)
"""


@pytest.mark.ci
@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("named", [True, False], ids=["a file", "a folder by a reference"])
def test_it_sees_the_file_that_was_named_and_nothing_else(
    clone: Place, outside: Path, rung: str, *, named: bool
) -> None:
    use(rung)
    (outside / "beside").write_text("beside-it")
    (clone.root / "server.py").write_text(READS)
    word = str(outside / "diary") if named else "${SECRET_PLACE}"
    brings(clone, sys.executable, str(clone.root / "server.py"), word, PLACE=str(outside))
    said = clone.run("mcp", "tools", "srv", "--yes", env={"SECRET_PLACE": str(outside)}).err
    assert ("hunter2" in said) == named and "Error" in said and "beside-it" not in said, said


@pytest.mark.parametrize("rung", RUNGS)
def test_a_server_of_the_person_that_reads_the_project_sees_no_file_of_secrets(clone: Place, rung: str) -> None:
    use(rung)
    clone.write({"diary": "shown-text", ".env": "hunter2", "mybox/logs/x": "logged-text"})
    program = clone.root.parent / "server.py"
    program.write_text(READS.replace('("diary", "beside")', '("diary", ".env", "mybox/logs/x")'))
    clone.said("mcp", "add", "own", "--env", f"PLACE={clone.root}", "--", sys.executable, str(program), str(clone.root))
    said = clone.run("mcp", "tools", "own", "--yes").err
    assert "shown-text" in said and "hunter2" not in said and "logged-text" not in said, said
