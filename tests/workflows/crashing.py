"""A project whose workflows can be killed or paused at any use of their journal, and what they leave behind."""

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

# The command line, in a process that kills itself (or waits for a file) at one use of the journal: at "after end:1",
# step 1's result is durable; at "after load 2", the run has been read twice.
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
    """A project with a test's own skills."""

    place: Place

    def skill(self, name: str, script: str, *, takes: Sequence[str] = (), idempotent: bool = False) -> None:
        """Adds a Type A skill that records each time it acts in `<name>.acts`, then runs `script`."""
        head = ["---", f"name: {name}", f"description: {name}"]
        head += [f"command: {' '.join(('python ${SKILL_ROOT}/run.py', *takes))}"]
        head += ['required_params: \'[{"name": "text", "prompt": "the text"}]\''] if takes else []
        head += ["metadata:", '  navigator-idempotent: "true"'] if idempotent else []
        text = "\n".join([*head, "---", f"# {name}", "", "Runs.", ""])
        files = {"SKILL.md": text, "run.py": ACTS.replace("{name}", name) + script}
        self.place.write(below(f".claude/skills/{name}", files))

    def dying(self, point: str, pause: Path | None = None) -> Place:
        """The same project, with commands that SIGKILL ends at `point`, or that wait there for `<pause>/go`."""
        program = (sys.executable, "-c", DRIVER, point, "" if pause is None else str(pause))
        return Place(root=self.place.root, program=program)

    def proposed(self, message: str, *, session: str = "") -> str:
        """Proposes a plan for `message` and returns its token."""
        reply = self.place.json("ask", *(("--session", session) if session else ()), message)
        assert reply["exit_code"] == 9
        assert reply["workflow"]["state"] == "proposed"
        return str(reply["workflow"]["token"])

    def run(self, token: str) -> dict[str, Any]:
        """The journal's record of the run: `state`, `done`, and `tries` with step, attempt and state each."""
        held: dict[str, Any] = self.place.json("workflow", "show", token)["run"]
        return held

    def tries(self, token: str) -> list[tuple[int, int, str]]:
        return [(one["step"], one["attempt"], one["state"]) for one in self.run(token)["tries"]]

    def workspace(self, token: str) -> Path:
        return self.place.root / "mybox" / "workspace" / token

    def acts(self, token: str) -> dict[str, int]:
        """How often each skill has acted; each process of a run has its own folder."""
        found: dict[str, int] = {}
        for path in sorted(found_below(self.workspace(token), "*.acts")):
            found[path.stem] = found.get(path.stem, 0) + len(path.read_text().splitlines())
        return found

    def find(self, token: str, name: str) -> list[Path]:
        """The files of that name that processes of the run have left."""
        return found_below(self.workspace(token), name)

    def touch(self, token: str, name: str) -> None:
        """Creates an empty file in the folder of each process of the run."""
        folder = self.workspace(token)
        for place in (folder, *(path for path in folder.iterdir() if path.is_dir() and path.name.isdigit())):
            (place / name).touch()

    def running(self, token: str) -> set[int]:
        """The ids of the processes of the run."""
        folder = self.workspace(token)
        places = [folder, *(path for path in folder.glob("*") if path.is_dir())] if folder.is_dir() else []
        return {process for place in places for process in working_in(place)}

    def start(self, *words: str, place: Place | None = None) -> subprocess.Popen[bytes]:
        """Starts a command that runs while the test continues."""
        place = place or self.place
        pipe = subprocess.PIPE
        return subprocess.Popen([*place.program, *words], cwd=place.root, env=environment(), stdout=pipe, stderr=pipe)


def box_in(tmp_path: Path) -> Box:
    return Box(place=place_in(tmp_path))


def ended(process: subprocess.Popen[bytes]) -> Done:
    """Waits for a started command and returns its result."""
    out, err = process.communicate(timeout=LIMIT)
    return Done(code=process.returncode, out=out.decode(), err=err.decode())


def wait_for(fact: Callable[[], object], what: object = "it") -> None:
    end = time.monotonic() + LIMIT
    while not fact():
        assert time.monotonic() < end, f"{what} did not come true"
        time.sleep(0.01)
