"""A project whose workflows can be killed, or held up, at any use of their journal, and what they leave."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.support import Done, Place, below, environment, place_in
from processes import found_below, working_in

KILLED = -signal.SIGKILL
LIMIT = 30.0  # seconds that anything may take to appear

# The command line, in a process that ends (or waits in a folder) at one use of the journal: "after end:1" is the
# moment at which step 1's result is durable, "after load 2" the one at which the run has been read twice.
DRIVER = """
import os, pathlib, signal, sys, time
from navigator_kernel.adapters.stores.journal import SqliteJournal
from navigator_kernel.cli.main import main

point, folder, *words = sys.argv[1:]
seen = []


def passed(here):
    seen.append(here)
    if point not in (here, f"{here} {seen.count(here)}"):
        return
    if not folder:
        os.kill(os.getpid(), signal.SIGKILL)
    (pathlib.Path(folder) / "reached").touch()
    while not (pathlib.Path(folder) / "go").exists():
        time.sleep(0.01)


def watched(name, entry):
    def call(self, token, *given, **named):
        here = f"{name}:{given[0]}" if name in ("mark", "begin", "end") else name
        passed(f"before {here}")
        found = entry(self, token, *given, **named)
        passed(f"after {here}")
        return found
    return call


for name in ("propose", "load", "mark", "begin", "end"):
    setattr(SqliteJournal, name, watched(name, getattr(SqliteJournal, name)))
main(words)
"""

ACTS = "import json, os, random, sys, time\nwith open('{name}.acts', 'a') as acts:\n    acts.write('acted\\n')\n"
DRAWS = "print(random.getrandbits(40))\n"
DOUBLES = "print(2 * int(sys.argv[-1]))\n"
REPEATS = (
    "with open(os.environ['NAVIGATOR_PREVIOUS']) as before:\n    print('seen', json.load(before)['data']['output'])\n"
)
FAILS = "sys.exit(f'no luck with {sys.argv[-1]}')\n"
WAITS = """\
with open('part', 'w') as part:
    part.write(str(os.getpid()))
os.rename('part', 'begun')
while not (os.path.exists('go') or os.path.exists('../go')):
    time.sleep(0.01)
"""
TAKES_TEXT = ("--", "{text}")


@dataclass(frozen=True, kw_only=True)
class Box:
    """A project, with the skills of a test's own."""

    place: Place

    def skill(self, name: str, script: str, *, takes: Sequence[str] = (), idempotent: bool = False) -> None:
        """A Type A skill that counts each time it acts in `<name>.acts`, then does `script`."""
        head = ["---", f"name: {name}", f"description: {name}"]
        head += [f"command: {' '.join(('python ${SKILL_ROOT}/run.py', *takes))}"]
        head += ['required_params: \'[{"name": "text", "prompt": "the text"}]\''] if takes else []
        head += ["metadata:", '  navigator-idempotent: "true"'] if idempotent else []
        text = "\n".join([*head, "---", f"# {name}", "", "Runs.", ""])
        files = {"SKILL.md": text, "run.py": ACTS.replace("{name}", name) + script}
        self.place.write(below(f".claude/skills/{name}", files))

    def dying(self, point: str, pause: Path | None = None) -> Place:
        """The same project, its commands killed with SIGKILL at `point`; with `pause` held up until `<pause>/go`."""
        program = (sys.executable, "-c", DRIVER, point, "" if pause is None else str(pause))
        return Place(root=self.place.root, program=program)

    def proposed(self, message: str, *, session: str = "") -> str:
        """The token of the plan that `message` is answered with."""
        reply = self.place.json("ask", *(("--session", session) if session else ()), message)
        assert reply["exit_code"] == 9
        assert reply["workflow"]["state"] == "proposed"
        return str(reply["workflow"]["token"])

    def run(self, token: str) -> dict[str, Any]:
        """What the journal holds: `state`, `done`, and `tries` with step, attempt and state each."""
        held: dict[str, Any] = self.place.json("workflow", "show", token)["run"]
        return held

    def tries(self, token: str) -> list[tuple[int, int, str]]:
        return [(one["step"], one["attempt"], one["state"]) for one in self.run(token)["tries"]]

    def workspace(self, token: str) -> Path:
        return self.place.root / "mybox" / "workspace" / token

    def acts(self, token: str) -> dict[str, int]:
        """How often each skill has acted; each process of a run has a folder of its own."""
        found: dict[str, int] = {}
        for path in sorted(found_below(self.workspace(token), "*.acts")):
            found[path.stem] = found.get(path.stem, 0) + len(path.read_text().splitlines())
        return found

    def find(self, token: str, name: str) -> list[Path]:
        """The files of that name that processes of the run have left."""
        return found_below(self.workspace(token), name)

    def touch(self, token: str, name: str) -> None:
        """Leaves an empty file where each process of the run works."""
        folder = self.workspace(token)
        for place in (folder, *(path for path in folder.iterdir() if path.is_dir() and path.name.isdigit())):
            (place / name).touch()

    def running(self, token: str) -> set[int]:
        """The processes of the run."""
        folder = self.workspace(token)
        places = [folder, *(path for path in folder.glob("*") if path.is_dir())] if folder.is_dir() else []
        return {process for place in places for process in working_in(place)}

    def start(self, *words: str, place: Place | None = None) -> subprocess.Popen[bytes]:
        """A command that goes on while the test does."""
        place = place or self.place
        pipe = subprocess.PIPE
        return subprocess.Popen([*place.program, *words], cwd=place.root, env=environment(), stdout=pipe, stderr=pipe)


def box_in(tmp_path: Path) -> Box:
    return Box(place=place_in(tmp_path))


def ended(process: subprocess.Popen[bytes]) -> Done:
    """How a started command ended."""
    out, err = process.communicate(timeout=LIMIT)
    return Done(code=process.returncode, out=out.decode(), err=err.decode())


def wait_for(fact: Callable[[], object], what: object = "it") -> None:
    end = time.monotonic() + LIMIT
    while not fact():
        assert time.monotonic() < end, f"{what} did not come true"
        time.sleep(0.01)
