"""Files in /tmp, where models put their scripts: of one command, and never those of the machine."""

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
KEPT = "is kept in the workspace"


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
    assert written == "exit code 0\nhi" and not os.path.lexists(f"/tmp/{name}")


def test_what_is_gone_with_its_command_is_named_with_the_place_that_stays(there: Place, server: WireServer) -> None:
    gone, refused = ran(
        there, server, call("run", command="cat /tmp/gone"), call("write", file_path="/tmp/a.txt", content="a\n")
    )
    assert gone.endswith("keep files in the workspace") and f"'a.txt' alone {KEPT}" in refused
