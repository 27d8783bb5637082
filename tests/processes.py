"""Looks at processes from outside, where those in a sandbox have other numbers than they know, and at this one."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path


def open_files() -> Counter[str]:
    """The files, pipes and sockets that this process has open, and how often. Compare by subtraction: those of earlier
    tests may be closed at any time."""
    found: Counter[str] = Counter()
    for handle in Path("/proc/self/fd").iterdir():
        try:
            found[str(handle.readlink())] += 1
        except OSError:  # the handle of this very loop
            continue
    return found


def found_below(folder: Path, pattern: str) -> list[Path]:
    """As `rglob`, while other processes make and remove folders: Python 3.11 raises when one is gone."""
    for _ in range(1_000):
        with suppress(FileNotFoundError):
            return list(folder.rglob(pattern))
    return list(folder.rglob(pattern))


def filled_below(folder: Path, name: str) -> list[Path]:
    """The files of that name into which something was written."""
    found = []
    for path in found_below(folder, name):
        with suppress(FileNotFoundError):
            found += [path] if path.stat().st_size else []
    return found


def working_in(folder: Path) -> set[int]:
    """The living processes whose current folder it is."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder.resolve() and b"State:\tZ" not in (
                process / "status"
            ).read_bytes():
                found.add(int(process.name))
        except OSError:
            continue
    return found
