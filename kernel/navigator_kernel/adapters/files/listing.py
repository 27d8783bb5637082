"""Lists a project's files and folders, as git sees them, so that a message can name them in any way."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

MOST = 20_000  # names
SECONDS = 5.0
_BYTES = 4 * 1024 * 1024
# A repository's own settings can name programs; none of them is run
_QUIET = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "safe.bareRepository=explicit", "core.quotePath=false")
_GIT = ("git", *(word for setting in _QUIET for word in ("-c", setting)))
_LIST = (*_GIT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
_NOBODYS = frozenset({"mybox", "node_modules", "__pycache__", "vendor", "third_party"})


def list_project(root: Path) -> Sequence[str]:
    """Paths from `root`, at most `MOST`; a folder ends in `/`. What git ignores, hidden folders, vendored code and the
    kernel's own folder are left out."""
    names = _by_git(root)
    files = (name for name in (_walked(root) if names is None else names) if not _is_nobodys(name))
    found: dict[str, None] = {}
    for name in islice(files, MOST):
        for folder in reversed(PurePosixPath(name).parents[:-1]):
            found[f"{folder}/"] = None
        found[name] = None
    return tuple(found)


def _is_nobodys(name: str) -> bool:
    return any(part in _NOBODYS or part.startswith(".") for part in name.split("/")[:-1])


def _by_git(root: Path) -> Sequence[str] | None:
    """None where there is no git, or no work tree of the person's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env = {**kept, "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(_LIST, cwd=root, env=env, capture_output=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return [os.fsdecode(name) for name in done.stdout[:_BYTES].split(b"\0") if name]


def _walked(root: Path) -> Iterator[str]:
    for place, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOBODYS)
        base = Path(place).relative_to(root)
        yield from ((base / name).as_posix() for name in sorted(files))
