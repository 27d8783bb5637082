"""Lists the new and changed files of a run's folder, with their hashes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from navigator_kernel.adapters.files.writer import seal_file
from navigator_kernel.errors import KernelError
from navigator_kernel.text import escape_controls

if TYPE_CHECKING:
    from navigator_kernel.adapters.files.tree import Listing

MOST = 100  # files that get a digest
SIZE_LIMIT = 16 * 1024 * 1024  # bytes; a larger file gets no digest


class Left(NamedTuple):
    """`[{path, sha256}]`, with control characters in paths escaped; `cut` if not everything was looked at."""

    files: list[dict[str, str]]
    cut: bool


def left_since(folder: Path, before: Listing, after: Listing, inside: str = "") -> Left:
    """The new and changed files, their paths after `inside`; without a digest if a file is large, already gone, or not
    among the first MOST."""
    changed = sorted(set(after.files.items()) - set(before.files.items()))
    found = [
        {"path": escape_controls(f"{inside}{path}"), "sha256": _digest(folder / path, seen[1]) if at < MOST else ""}
        for at, (path, seen) in enumerate(changed)
    ]
    return Left(found, before.cut or after.cut)


def _digest(path: Path, size: int) -> str:
    try:
        return seal_file(path).sha256 if size <= SIZE_LIMIT else ""
    except (KernelError, OSError, ValueError):
        return ""
