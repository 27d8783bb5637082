"""Runs the command line as a person does: in another process, in its own project."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli.forked import run_command
from skill_repositories import make_repo, skill_text

TOP = Path(__file__).parents[2]

SLEEP = "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\nprint('begun', flush=True)\ntime.sleep(60)\n"


@dataclass(frozen=True, kw_only=True)
class Done:
    code: int
    out: str
    err: str

    def document(self) -> dict[str, Any]:
        """The only JSON document on stdout; any other output is an error."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def environment(**given: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(TOP / "kernel"), "PYTHONWARNINGS": "error", "PYTHONUTF8": "1", **given}


Run = Callable[..., Done]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "mybox").mkdir(parents=True)
    return folder


@pytest.fixture
def run(root: Path) -> Run:
    """`run("skill", "list", cwd=…, typed=…, env=…)`; `script=` names a file of `bin/` to start instead."""

    def start(
        *words: str, cwd: Path | None = None, typed: str = "", env: dict[str, str] | None = None, script: str = ""
    ) -> Done:
        folder, held = cwd or root, environment(**(env or {}))
        path = str(TOP / "bin" / script) if script else ""
        done = run_command(
            words, cwd=folder, env=held, stdin=typed.encode(), timeout=90, start=environment(), script=path
        )
        return Done(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())

    return start


@pytest.fixture(scope="session")
def lean(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a release that ships only four skills, for tests that need few."""
    site = tmp_path_factory.mktemp("lean")
    package = site / "navigator_kernel"
    plain = shutil.ignore_patterns("__pycache__")
    shutil.copytree(TOP / "kernel" / "navigator_kernel", package, ignore=plain)
    for name in ("agents", "bin", "docs"):
        shutil.copytree(TOP / name, package / "shipped" / name, ignore=plain)
    for name in ("code-review", "csv-report", "git-workflow", "word-count"):
        shutil.copytree(TOP / ".claude" / "skills" / name, package / "shipped" / "skills" / name, ignore=plain)
    return {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": ""}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A git repository with two skills."""
    files = {
        "skills/alpha-one/SKILL.md": skill_text("alpha-one", "first of the two"),
        "skills/alpha-one/notes.md": "notes\n",
        "skills/beta-two/SKILL.md": skill_text("beta-two", "second of the two"),
        "README.md": "two skills\n",
    }
    return make_repo(tmp_path, files, name="repository")
