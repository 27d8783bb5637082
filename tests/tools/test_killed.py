"""The process group of a turn of five effects is killed at 200 moments: no effect is repeated or lost, all undone."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, environment, place_in
from models.wire_server import Said, WireServer, serving
from person_state import accept
from specialist.turns import settings, song

pytestmark = [pytest.mark.ci, pytest.mark.timeout(1_800)]

MESSAGE = "/song-writer go"
SKILL = ".claude/skills/song-writer"
PROJECT = {"notes.txt": "one\ntwo\nthree\n", "other.txt": "other\n"}
AFTER = {"notes.txt": "one\ntwo two\nthree\n", "other.txt": "changed\n", "new.txt": "new new\n"}
ADD = "import time\nwith open('log.txt', 'a') as log:\n    log.write('acted\\n')\ntime.sleep(0.05)\n"
POINTS, TIMES = 150, 50  # kills before a change of a file, and kills at a random time
STAGES, MORE = 6, 100  # stages: 0 to 5 effects done; further kills until each stage has occurred


def effects(root: Path) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """The effects of the turn; none can be repeated without leaving a trace."""
    return (
        ("write", {"file_path": f"{root}/new.txt", "content": "new\n"}),
        ("edit", {"file_path": f"{root}/notes.txt", "old_string": "two", "new_string": "two two"}),
        ("run", {"command": "python3 scripts/add.py"}),
        ("write", {"file_path": f"{root}/other.txt", "content": "changed\n"}),
        ("edit", {"file_path": f"{root}/new.txt", "old_string": "new", "new_string": "new new"}),
    )


@dataclass
class Killing:
    """A project in which turns are killed. `stages` counts the effects that were done at the moment of each kill."""

    here: Place
    server: subprocess.Popen[str]
    folder: Path
    stages: Counter[int] = field(default_factory=Counter)
    asked: int = 0

    def run(self, session: str, *, at: int = 0, after: float | None = None) -> tuple[int, int]:
        """Kills the turn at point `at` or after `after` seconds; returns the exit code and the points passed."""
        args = ["ask", "--json", "--allow-edits", "--session", session, MESSAGE]
        pid = started(self.server, self.here, self.folder, args, at)
        assert self.server.stdout is not None
        if after is not None:
            time.sleep(after)
            with suppress(ProcessLookupError):  # the process has already ended
                os.killpg(pid, signal.SIGKILL)
        code = int(self.server.stdout.readline())
        return code, int((self.folder / "counted").read_text() or 0)

    def logged(self, runs: set[str]) -> int:
        """How often the script acted in the workspaces of these runs."""
        box = self.here.root / "mybox/workspace"
        logs = [path for run in runs for path in (box / run).glob("log.txt")]
        return sum(len(path.read_text().splitlines()) for path in logs)

    def runs(self) -> set[str]:
        return {path.stem for path in (self.here.root / "mybox/logs/runs").glob("*.jsonl")}

    def project(self) -> dict[str, str]:
        """The files at the top of the project, half-written ones included."""
        root = self.here.root
        found = [path for path in root.iterdir() if path.is_file()]
        return {path.name: path.read_text() for path in found}

    def done(self, runs: set[str]) -> int:
        held = self.project()
        new = held.get("new.txt")
        facts = (
            new,
            held["notes.txt"] == AFTER["notes.txt"],
            self.logged(runs),
            held["other.txt"] == AFTER["other.txt"],
        )
        return sum(map(bool, (*facts, new == AFTER["new.txt"])))

    def follow(self, session: str, before: set[str]) -> None:
        """Acts as a person: checks whether the turn has ended, sends the message again if it has not, and answers."""
        turns = {one["id"]: one["turns"] for one in self.here.json("session", "list")["sessions"]}
        words, told = MESSAGE, {"exit_code": 0 if turns.get(session) else 9}
        while told["exit_code"] == 9:
            told = self.here.json("ask", "--allow-edits", "--session", session, words)
            if told["exit_code"] != 9:
                break
            assert "may have had an effect" in told["report"]["summary"], told["report"]
            self.asked += 1
            words = "yes"
            if self.logged(self.runs() - before):  # the person sees that the tool acted, and wants it only once
                self.here.on_terminal("ask", "--allow-edits", "--session", session, "no")
                break
        assert told["exit_code"] in {0, 9}, told

    def undone(self, runs: set[str]) -> None:
        for run in sorted(runs, reverse=True):
            assert self.here.run("undo", run).code in {0, 4}
        assert self.project() == PROJECT

    def check(self, session: str, **moment: Any) -> None:
        before = self.runs()
        code, _ = self.run(session, **moment)
        assert code in {0, -signal.SIGKILL}, (self.folder / "out").read_text()
        if code:
            self.stages[self.done(self.runs() - before)] += 1
        self.follow(session, before)
        runs = self.runs() - before
        assert {name: text for name, text in self.project().items() if name in AFTER} == AFTER, moment
        assert self.logged(runs) == 1, moment
        self.undone(runs)


def started(server: subprocess.Popen[str], here: Place, folder: Path, args: Sequence[str], at: int = 0) -> int:
    """Starts a command line; returns its process id, also its group's id. Its output goes to `out` in `folder`."""
    files = {name: str(folder / name) for name in ("out", "counted")}
    request = {"args": list(args), "cwd": str(here.root), "env": environment(), "at": at, **files}
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    return int(server.stdout.readline())


@contextmanager
def forking(folder: Path) -> Iterator[subprocess.Popen[str]]:
    argv, pipe = [sys.executable, str(Path(__file__).with_name("killing_server.py"))], subprocess.PIPE
    with subprocess.Popen(argv, env=environment(), stdin=pipe, stdout=pipe, text=True, cwd=folder) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture
def killing(tmp_path: Path, home: Path, server: WireServer) -> Iterator[Killing]:
    """A project whose person has permanently approved the skill's own script, and that it reads the project."""
    file = home / ".config/navigator/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings(server))
    here = place_in(tmp_path)
    here.write({**PROJECT, f"{SKILL}/SKILL.md": song(), f"{SKILL}/scripts/add.py": ADD})
    accept(here.root, "song-writer")
    made = effects(here.root.resolve())

    def answer(messages: Sequence[Mapping[str, Any]], _number: int) -> Said:
        """The next effect, by the number of answers since the person's last message."""
        asked = max(at for at, one in enumerate(messages) if one["role"] == "user")
        told = [one for one in messages[asked:] if one["role"] == "tool"]
        if messages[asked]["content"].strip() == "get ready":
            first = (made[2], ("read", {"file_path": f"{here.root.resolve()}/other.txt"}))
            return (
                Said(text="Ready.")
                if len(told) == 2
                else Said(calls=[(first[len(told)][0], json.dumps(first[len(told)][1]))])
            )
        if len(told) == len(made):
            return Said(text="All done.")
        name, arguments = made[len(told)]
        return Said(calls=[(name, json.dumps(arguments))])

    server.scripts["worker"] = answer
    codes = [
        here.json("ask", "--session", "first", words)["exit_code"]
        for words in ("/song-writer get ready", "always", "always")
    ]
    assert codes == [9, 9, 0]
    with forking(tmp_path) as process:
        yield Killing(here, process, tmp_path)


@pytest.mark.requirement("JIT-12", "SAF-5")
def test_effects_happen_exactly_once_whenever_the_process_is_killed(killing: Killing) -> None:
    killing.check("warm")
    began = time.monotonic()
    code, points = killing.run("whole")
    lasted = time.monotonic() - began
    assert code == 0 and points > POINTS, (killing.folder / "out").read_text()
    killing.undone(killing.runs())
    draw = random.Random(27)
    moments: list[dict[str, Any]] = [{"at": 1 + number * points // POINTS} for number in range(POINTS)]
    moments += [{"after": draw.uniform(0.0, lasted)} for _ in range(TIMES)]
    for number, moment in enumerate(moments):
        killing.check(f"s{number}", **moment)
    for number in range(MORE):
        if len(killing.stages) == STAGES:
            break
        killing.check(f"more{number}", after=draw.uniform(0.0, lasted))
    print(f"killed with so many effects done: {sorted(killing.stages.items())}; asked {killing.asked} times")
    assert {one["waiting"] for one in killing.here.json("session", "list")["sessions"]} == {""}
    assert set(killing.stages) == set(range(STAGES))
    assert killing.asked
