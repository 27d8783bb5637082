"""A project in which the shipped skills run: with the whole kernel, or one of their scripts alone."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from navigator_kernel.bootstrap.places import shipped_home
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import Settings
from navigator_kernel.dispatch import EventStream
from navigator_kernel.turn.turn import run_turn
from navigator_kernel.values.packet import Report
from navigator_kernel.values.reply import Reply
from navigator_kernel.values.request import Message, Session

NAMES = tuple(sorted(path.parent.name for path in shipped_home().skills.glob("*/SKILL.md")))
ESCAPES = "\x1b[31mred\x1b[0m \x07\x9b2J\u202e"  # colours, a bell, a cleared screen, right-to-left text
PATIENCE = 60  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The result of a script."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        assert (self.code, self.err) == (0, "")
        found: dict[str, Any] = json.loads(self.out)
        assert isinstance(found["summary"], str)
        assert not [mark for mark in self.out if mark < " " and mark != "\n"]
        return found

    @property
    def complaint(self) -> str:
        """The one line on stderr of a run that failed without output."""
        assert (self.code == 0, self.out, self.err.count("\n")) == (False, "", 1), self
        assert "Traceback" not in self.err
        return self.err.strip()


@dataclass(slots=True)
class Talk:
    """Turns of one session, each with a new kernel; of a prompt skill they show the prompt."""

    root: Path
    session: Session

    def say(self, text: str) -> Reply:
        kernel = Project(self.root, Settings())
        stream = EventStream(run=kernel.ids.new(), turn=self.session.turn, log=kernel.run_log, clock=kernel.clock)
        reply = asyncio.run(run_turn(Message(text=text, shows_prompt=True), self.session, kernel, stream))
        self.session = reply.session
        return reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """`root` is the project and also the current folder."""

    root: Path

    def talk(self) -> Talk:
        return Talk(root=self.root, session=Session(id="s"))

    def ask(self, text: str) -> Report:
        """The report of one turn."""
        return self.talk().say(text).report

    def data(self, text: str) -> Mapping[str, Any]:
        """The data of the report; the message must succeed."""
        report = self.ask(text)
        assert report.state == "success", report
        return report.data

    def script(self, name: str, *words: str | Path, memory: int = 0, env: Mapping[str, str] | None = None) -> Done:
        """Runs the skill's script with these arguments, in a run folder; `memory` is its limit in bytes, 0 for none."""
        run = self.root / "mybox" / "workspace" / "run"
        run.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [sys.executable, str(script_of(name)), *map(str, words)],
            cwd=run,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(run),
                "PYTHONIOENCODING": "utf-8",
                "NAVIGATOR_PROJECT": str(self.root),
                **(env or {}),
            },
            capture_output=True,
            timeout=PATIENCE,
            preexec_fn=_limited(memory),
        )
        return Done(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())

    def answer(self, name: str, *words: str | Path, language: str = "en") -> dict[str, Any]:
        """The data of the skill's script for a person of that language."""
        return self.script(name, *words, env={"NAVIGATOR_LANGUAGE": language}).data

    def written(self, name: str) -> str:
        """The text of a file that `script` left."""
        return (self.root / "mybox" / "workspace" / "run" / name).read_text(encoding="utf-8")

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path


def script_of(name: str) -> Path:
    return shipped_home().skills / name / "scripts" / f"{name.replace('-', '_')}.py"


def _limited(memory: int) -> Callable[[], None] | None:
    return (lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))) if memory else None
