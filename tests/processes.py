"""Inspects this process, and others from outside a sandbox, where their ids differ from those they see themselves."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path


def open_files() -> Counter[str]:
    """The files, pipes and sockets that this process has open, with counts. Compare by subtraction: those of earlier
    tests can be closed at any time."""
    found: Counter[str] = Counter()
    for handle in Path("/proc/self/fd").iterdir():
        try:
            found[str(handle.readlink())] += 1
        except OSError:  # the handle that this loop uses
            continue
    return found


def found_below(folder: Path, pattern: str) -> list[Path]:
    """Like `rglob`, while other processes make and remove folders: Python 3.11 raises if one disappears."""
    for _ in range(1_000):
        with suppress(FileNotFoundError):
            return list(folder.rglob(pattern))
    return list(folder.rglob(pattern))


def filled_below(folder: Path, name: str) -> list[Path]:
    """The files of that name that are not empty."""
    found = []
    for path in found_below(folder, name):
        with suppress(FileNotFoundError):
            found += [path] if path.stat().st_size else []
    return found


def working_in(folder: Path) -> set[int]:
    """The ids of the living processes whose current folder is `folder`."""
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
