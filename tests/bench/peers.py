"""The npm package `skills`, that a benchmark runs side by side with ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

# The cache of the person who runs the benchmark: read before a test gets its own home.
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "navigator-bench" / "skills"
_WANTED = ("skills@latest", "node@^22.20")  # the package, and a Node.js that runs it
_NPM = ("--no-audit", "--no-fund", "--no-package-lock", "--prefer-online", "--engine-strict=false", "--loglevel=error")
QUIET = {"DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}  # otherwise it contacts its maker's server for each skill


class Absent(Exception):
    """The peer cannot be had here; says why."""


@dataclass(frozen=True, slots=True)
class Peer:
    """`version` of the package; what it costs to start it is part of what it costs."""

    folder: Path
    version: str

    def __str__(self) -> str:
        return f"skills {self.version}"

    def words(self, *words: str) -> list[str]:
        """The command line of `skills <words>`."""
        modules = self.folder / "node_modules"
        return [str(modules / "node" / "bin" / "node"), str(modules / "skills" / "bin" / "cli.mjs"), *words]

    def one(self, url: str, skill: str) -> list[str]:
        return self.words("add", url, "--skill", skill, "--yes", "--agent", "claude-code")

    def every(self, url: str) -> list[str]:
        return self.one(url, "*")

    def listing(self, url: str) -> list[str]:
        return self.words("add", url, "--list")


def current() -> Peer:
    """The current release, put into a cache folder of the person's; the one put there before where no registry
    answers. Absent where there is neither."""
    problem = _install()
    peer = _held()
    if peer is None:
        raise Absent(problem or "npm installed it, and it does not run")
    return peer


def _install() -> str:
    """Why npm could not install it; empty where it did."""
    npm = shutil.which("npm")
    if npm is None:
        return "there is no npm"
    _CACHE.mkdir(parents=True, exist_ok=True)
    words = [npm, "install", "--prefix", str(_CACHE), *_NPM, *_WANTED]
    try:
        done = subprocess.run(words, cwd=_CACHE, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return "npm took longer than 300 s"
    lines = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
    return f"npm cannot install it: {lines[0] if lines else done.stderr[-200:]}" if done.returncode else ""


def _held() -> Peer | None:
    try:
        package = json.loads((_CACHE / "node_modules" / "skills" / "package.json").read_text())
        peer = Peer(folder=_CACHE, version=str(package["version"]))
        done = subprocess.run(peer.words("--version"), env={**os.environ, **QUIET}, capture_output=True, timeout=60)
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired):
        return None
    return peer if done.returncode == 0 else None
