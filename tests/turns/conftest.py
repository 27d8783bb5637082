"""A whole kernel over its own project, with a clock that stands still and numbered ids."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.bootstrap.places import shipped_home
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import Settings
from navigator_kernel.dispatch import EventStream
from navigator_kernel.events import Event, Listener
from navigator_kernel.turn.turn import run_turn
from navigator_kernel.values.mcp import McpServer
from navigator_kernel.values.reply import Reply
from navigator_kernel.values.request import Message, Session

GOLDEN = Path(__file__).with_name("golden")

SHOUT = "import sys\nprint(sys.argv[-1].upper())\n"
FAIL = "import sys\nprint('half')\nprint('no luck', file=sys.stderr)\nsys.exit(3)\n"
SLEEP = "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\nprint('begun', flush=True)\ntime.sleep(60)\n"
TEXT = 'required_params: \'[{"name": "text", "prompt": "the text"}]\'\n'


class Standing:
    """Implements `ports.Clock`."""

    def now(self) -> str:
        return "2026-01-31T09:30:00.000Z"

    def monotonic(self) -> float:
        return 0.0


@dataclass(slots=True)
class Counting:
    """Implements `ports.Ids`."""

    seen: int = 0

    def new(self) -> str:
        self.seen += 1
        return f"20260131-093000000-{self.seen:06d}"


@dataclass(kw_only=True)
class Talk:
    """Consecutive turns, each with the session that the previous one left."""

    kernel: Project
    session: Session
    events: list[Event] = field(default_factory=list)

    def say(self, text: str, *, listeners: Sequence[Listener] = (), **given: Any) -> Reply:
        return asyncio.run(self.turn(text, listeners=listeners, **given))

    async def turn(self, text: str, *, listeners: Sequence[Listener] = (), **given: Any) -> Reply:
        heard = (self.events.append, *listeners)
        run, kernel = self.kernel.ids.new(), self.kernel
        stream = EventStream(run=run, turn=self.session.turn, log=kernel.run_log, clock=kernel.clock, listeners=heard)
        reply = await run_turn(Message(text=text, interactive=True, **given), self.session, kernel, stream)
        self.session = reply.session
        return reply

    def types(self) -> list[str]:
        return [event.type for event in self.events]

    def log(self) -> str:
        """All run logs in order, with values that differ from machine to machine replaced."""
        text = "".join(path.read_text() for path in sorted((self.kernel.root / "mybox" / "logs" / "runs").iterdir()))
        places = {
            str(self.kernel.root): "<project>",
            str(shipped_home().skills): "<shipped>",
            sys.executable: "<python>",
        }
        for place, name in places.items():
            text = text.replace(place, name)
        return text

    def matches(self, name: str) -> None:
        """Compares the whole log byte for byte; `UPDATE_GOLDEN=1` writes it again."""
        path, found = GOLDEN / f"{name}.jsonl", self.log()
        if os.environ.get("UPDATE_GOLDEN") == "1":
            path.parent.mkdir(exist_ok=True)
            path.write_text(found)
        assert [json.loads(line) for line in found.splitlines()] == [
            json.loads(line) for line in path.read_text().splitlines()
        ]
        assert found == path.read_text()


def put(root: Path, name: str, description: str, extra: str = "", script: str = "", body: str = "Do it.") -> Path:
    folder = root / ".claude" / "skills" / name
    folder.mkdir(parents=True, exist_ok=True)
    if script:
        (folder / "run.py").write_text(script)
        extra += "command: python ${SKILL_ROOT}/run.py -- {text}\n"
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n{extra}---\n{body}\n")
    return folder


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    put(folder, "shout-loud", "Shouts a text in capitals", TEXT, SHOUT)
    put(folder, "fail-hard", "Fails with a message", TEXT, FAIL)
    put(folder, "sleep-long", "Sleeps for a minute", f"{TEXT}timeout: 5\n", SLEEP)
    put(folder, "doze-long", "Dozes for a minute", TEXT, SLEEP)
    put(folder, "ada-painter", "Paints watercolours of boats at sea")
    put(folder, "bob-painter", "Paints watercolours of boats at sea")
    (folder / "a.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "sales.csv").write_text("city,sum\nBonn,3\nKiel,5\nBonn,4\n")
    monkeypatch.chdir(folder)
    return folder


Talker = Callable[..., Talk]


@pytest.fixture
def talker(root: Path) -> Talker:
    def begin(**changes: Any) -> Talk:
        settings = Settings(servers={"files": McpServer(command="/bin/false")})
        kernel = Project(root, settings, clock=Standing())
        vars(kernel).update(ids=Counting(), **changes)
        return Talk(kernel=kernel, session=Session(id="session-1"))

    return begin


@pytest.fixture
def talk(talker: Talker) -> Talk:
    return talker()
