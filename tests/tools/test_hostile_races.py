"""Attacks by a process that changes the workspace while a tool works in it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tools.bench_of_tools import Toolbox, toolbox

pytestmark = pytest.mark.sample(1)

RACING: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("read", {"file_path": "turn/file"}),
    ("write", {"file_path": "turn/file", "content": "mine"}),
    ("write", {"file_path": "turn/new", "content": "mine"}),
    ("edit", {"file_path": "turn/file", "old_string": "side", "new_string": "SIDE"}),
)
SWAP = """
import ctypes, sys
one, other = (word.encode() for word in sys.argv[1:])
rename, exchange, here = ctypes.CDLL(None).renameat2, 2, -100
print(flush=True)
while True:
    rename(here, one, here, other, exchange)
"""


@pytest.mark.wide
@pytest.mark.requirement("SAF-2", "SAF-8")
@pytest.mark.parametrize("what", ["turn", "turn/file"])
def test_a_link_that_takes_the_place_of_a_folder_or_a_file_at_any_moment_leads_nowhere(
    tmp_path: Path, what: str
) -> None:
    """A process swaps it with a link as fast as it can while the tools work."""
    root, outside = tmp_path.resolve() / "project", tmp_path / "held"
    root.mkdir()
    box: Toolbox = toolbox(root)
    outside.mkdir()
    (outside / "file").write_text("outside\n")
    box.call("write", 30, file_path="turn/file", content="inside\n")
    (box.workspace / "link").symlink_to(outside if what == "turn" else outside / "file")
    argv = [sys.executable, "-c", SWAP, str(box.workspace / what), str(box.workspace / "link")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as swapping:
        assert swapping.stdout is not None and swapping.stdout.readline()
        told = [box.call(tool, number, **given) for number in range(40, 140) for tool, given in RACING]
        swapping.kill()
    assert {one.failed for one in told} == {True, False}
    assert not any("outside" in one.text for one in told if not one.failed)
    assert [path.name for path in outside.iterdir()] == ["file"] and (outside / "file").read_text() == "outside\n"
