"""A project, a home, listeners and another process, as targets for programs in the sandbox."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Literal

import msgspec
import pytest

import navigator_kernel
from navigator_kernel.adapters.files.tree import remove_tree
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.sandbox.backends import rungs
from navigator_kernel.sandbox.contain import _machine as machine
from navigator_kernel.sandbox.contain import trial

NOBODY = 65534
User = Literal["self", "nobody"]
RUNGS = ("bubblewrap", "landlock")
CONTAINED = Path(__file__).with_name("contained.py")


def use(rung: str) -> None:
    """Makes every later command of this test's person use `rung`, as if only that worked on this machine; skips the
    test if it does not work."""
    found = Project(Path(), agents=False).contained
    wanted = next((one for one in rungs() if one.name == rung), None)
    if wanted is None or trial(wanted):
        pytest.skip(f"there is no {rung} here")
    found.memory.parent.mkdir(parents=True, exist_ok=True)
    found.memory.write_text(json.dumps({"key": machine(), "rung": rung}))
    held = Project(Path(), agents=False).contained.rung()
    assert held is not None and held.name == rung


@dataclass(frozen=True, kw_only=True)
class World:
    """The targets, by the words that attempts have for them. `python` is the interpreter that runs the programs."""

    base: Path
    user: User
    python: str
    words: dict[str, str]

    @property
    def run(self) -> Path:
        return self.base / "project" / "mybox" / "workspace" / "run"

    def attempt(self, code: str, rung: str, timeout: float = 20, *limits: str) -> dict[str, Any]:
        """The outcome of `code` under `rung`, or under no sandbox."""
        return outcome_of(self.started(code, rung, timeout, *limits))

    def started(self, code: str, rung: str, timeout: float, *limits: str) -> subprocess.Popen[str]:
        """The process that runs `code`, as `navigator` would; `outcome_of` waits for its end."""
        for left in self.run.iterdir():
            remove_tree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        for name, word in self.words.items():
            code = code.replace("{" + name + "}", word)
        argv = [self.python, str(self.base / "contained.py"), rung, str(self.run), str(timeout), *limits]
        pipe = subprocess.PIPE
        process: subprocess.Popen[str] = subprocess.Popen(
            argv, text=True, stdin=pipe, stdout=pipe, stderr=pipe, env=self.env, **self.who
        )
        assert process.stdin is not None
        process.stdin.write(code)
        process.stdin.close()
        process.stdin = None  # `communicate` would write to it
        return process

    @property
    def env(self) -> dict[str, str]:
        path = f"{self.words['home']}/bin:{os.defpath}"
        env = {"PATH": path, "PYTHONPATH": str(self.base / "kernel"), "SECRET_TOKEN": "hunter2"}
        return {**env, "HOME": self.words["home"]}

    @property
    def who(self) -> dict[str, Any]:
        return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if self.drops else {}

    @property
    def drops(self) -> bool:
        return self.user == "nobody" and os.getuid() == 0

    def state(self) -> dict[str, tuple[int, int, bytes]]:
        """Every file outside the run's own folder, with its mode, time and bytes."""
        found = {}
        for path in sorted(self.base.rglob("*")):
            ours = path.is_relative_to(self.run) or "memory-" in str(path) or "__pycache__" in path.parts
            if path.is_file() and not ours:
                found[str(path)] = (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes())
        return found


def outcome_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


@contextmanager
def opened(user: User) -> Iterator[World]:
    """A world in a folder that the user may enter; the tests' own folder may be open to root only."""
    with ExitStack() as held:
        base = Path(mkdtemp(prefix="escape-", dir="/var/tmp"))
        held.callback(shutil.rmtree, base, ignore_errors=True)
        for package in (navigator_kernel, msgspec):  # the kernel, and the package that its values use
            source = Path(str(package.__file__)).parent
            shutil.copytree(source, base / "kernel" / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(CONTAINED, base)
        project, home = base / "project", base / "home"
        for folder in (project / "mybox/workspace/run", project / "mybox/workspace/other", home / ".ssh"):
            folder.mkdir(parents=True)
        for path in (project / "secret", project / "doomed", home / ".profile", home / ".ssh/id"):
            path.write_text("hunter2")
        (project / "mybox/workspace/other/result").write_text("hunter2")
        (project / "way").symlink_to("secret")
        (home / "bin").mkdir()
        (home / "bin/sort").write_text("#!/bin/sh\nexit 1\n")
        (home / "bin/sort").chmod(0o755)
        names = {"tcp": socket.socket(), "udp": socket.socket(type=socket.SOCK_DGRAM)}
        for listener in names.values():
            held.enter_context(listener).bind(("127.0.0.1", 0))
        names["tcp"].listen()
        abstract = f"navigator-{secrets.token_hex(4)}"
        for place in (str(project / "door"), f"\0{abstract}"):
            door = held.enter_context(socket.socket(socket.AF_UNIX))
            door.bind(place)
            door.listen()
        post = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        post.bind(str(project / "post"))
        own(base, user)
        who: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        drops = user == "nobody" and os.getuid() == 0
        victim = subprocess.Popen(["sleep", "600"], cwd=project, **(who if drops else {}))
        held.callback(victim.wait)
        held.callback(victim.kill)
        words = {
            "project": str(project),
            "home": str(home),
            "other": str(project / "mybox/workspace/other"),
            "package": str(base / "kernel" / "navigator_kernel"),
            "victim": str(victim.pid),
            "tcp": str(names["tcp"].getsockname()[1]),
            "udp": str(names["udp"].getsockname()[1]),
            "abstract": abstract,
            "token": secrets.token_hex(6),
        }
        python = "/usr/bin/python3" if drops else sys.executable
        yield World(base=base, user=user, python=python, words=words)


def own(base: Path, user: User) -> None:
    """Gives all of it to the user, so that only the sandbox protects it."""
    base.chmod(0o755)
    for path in (base, *base.rglob("*")):
        if user == "nobody" and os.getuid() == 0:
            os.chown(path, NOBODY, NOBODY)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
