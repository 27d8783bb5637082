"""Files in /tmp, where models put their scripts, and in folders of other agents: those of the workspace, and never the
machine's."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, place_in
from models.wire_server import HELLO, WireServer
from person_state import accept
from specialist.test_built_in_tools import answers, call
from specialist.turns import says, song

pytestmark = [pytest.mark.ci, pytest.mark.requirement("JIT-5", "AGT-2")]


@pytest.fixture
def there(mine: Path, server: WireServer) -> Iterator[Place]:
    """A project that does not lie in /tmp."""
    if not shutil.which("bwrap"):
        pytest.skip("only bubblewrap gives a command a /tmp of its own")
    base = Path(tempfile.mkdtemp(dir="/var/tmp"))
    there = place_in(base)
    there.write({".claude/skills/song-writer/SKILL.md": song()})
    accept(there.root, "song-writer")
    server.requests.clear()
    yield there
    shutil.rmtree(base)


def ran(there: Place, server: WireServer, *calls: Any) -> list[str]:
    says(server, *calls, HELLO)
    there.said("ask", "--allow", "run", "/song-writer a song")
    return answers(server)


def test_a_line_may_write_a_script_to_tmp_and_run_it(there: Place, server: WireServer) -> None:
    name = f"x{os.getpid()}"
    write = f"cat > /tmp/{name}.py <<'E'\nopen('/tmp/{name}', 'w').write('hi')\nE\npython3 /tmp/{name}.py && cat /tmp/{name}"
    (written,) = ran(there, server, call("run", command=write))
    assert written == f"exit code 0\nwrote: /tmp/{name}, /tmp/{name}.py\nhi" and not os.path.lexists(f"/tmp/{name}")


def test_what_is_in_tmp_or_in_another_agents_folder_is_there_for_every_tool(there: Place, server: WireServer) -> None:
    *_, shown, copied, found = ran(
        there,
        server,
        call("write", file_path="/tmp/a.py", content="print(open('/tmp/b.txt').read())\n"),
        call("write", file_path="/workspace/c.txt", content="of the workspace\n"),
        call("run", command="echo beside > /tmp/b.txt && mkdir -p /mnt/user-data/outputs"),
        call("run", command="python3 /tmp/a.py && cat c.txt"),
        call("run", command="cp /tmp/b.txt /mnt/user-data/outputs/d.txt; ls /tmp/gone"),
        call("read", file_path="/home/claude/d.txt"),
    )
    assert shown == "exit code 0\nbeside\n\nof the workspace" and "beside" in found
    assert "wrote: d.txt" in copied and "a command sees its workspace" in copied


def test_a_script_in_tmp_is_shown_to_the_person_who_is_asked_about_it(there: Place, server: WireServer) -> None:
    says(
        server, call("write", file_path="/tmp/a.py", content="print('hi')\n"), call("run", command="python3 /tmp/a.py")
    )
    waits = there.json("ask", "/song-writer a song")
    assert waits["exit_code"] == 9 and "print('hi')" in waits["report"]["summary"]


@pytest.mark.requirement("X-18", "SAF-2")
def test_a_link_in_place_of_tmp_leads_nowhere(there: Place, server: WireServer) -> None:
    base = there.root.parent
    lines = [f"mv .tmp aside && ln -s {base} .tmp && ls -l .tmp", "echo hi > /tmp/planted; cat /tmp/planted"]
    linked, wrote = ran(there, server, *(call("run", command=line) for line in lines))
    assert f"-> {base}" in linked and wrote == "exit code 0\nhi" and not (base / "planted").exists()
