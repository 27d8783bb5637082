"""An MCP server that uses more disk than its limit is killed, whatever kind of files it makes (SAF-2)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.support import SOURCE, Place, place_in
from person_state import state_of
from processes import working_in
from sandbox.world import RUNGS, use

pytest.importorskip("mcp")
pytestmark = [pytest.mark.requirement("SAF-2", "X-43", "AGT-9"), pytest.mark.sample(1)]

SERVER = str(SOURCE / "tests" / "mcp_client" / "hostile_server.py")


@pytest.fixture(params=RUNGS)
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    use(request.param)
    place = place_in(tmp_path)
    place.said("mcp", "add", "there", "--", sys.executable, SERVER, "fills")
    return place


@pytest.mark.wide
@pytest.mark.parametrize("where", ["its own folder", "temporary", "without a name"])
def test_a_server_over_the_limit_of_disk_is_killed_with_a_typed_error(here: Place, where: str) -> None:
    done = here.run("mcp", "call", "there", "echo", f"words={where}", "--yes", "--timeout", "15")
    folder = state_of(here.root) / "servers" / "mcp-there"
    for left in folder.glob("part-*"):
        left.unlink()
    assert (done.code, "over its limit of disk" in done.err, str(folder) in done.err) == (7, True, True), done.err
    assert working_in(folder) == set()


def test_a_server_below_the_limit_continues(here: Place) -> None:
    here.said("mcp", "add", "there", "--force", "--", sys.executable, SERVER, "good")
    assert here.said("mcp", "call", "there", "echo", "words=hello", "--yes") == "hello\n"
