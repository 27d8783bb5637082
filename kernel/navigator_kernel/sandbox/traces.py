"""What a run leaves in its own folder: which files are new or changed, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from navigator_kernel.adapters.files import Stamp, seal_file, stamp
from navigator_kernel.errors import KernelError

MOST = 100  # files whose digests are taken
SIZE_LIMIT = 16 * 1024 * 1024  # bytes of a file whose digest is taken

Stamps = Mapping[str, Stamp]


def stamps(folder: Path) -> Stamps:
    """Each file below `folder`, links left out."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): held for path in found if (held := stamp(path)) is not None}


def left(folder: Path, before: Stamps) -> list[dict[str, str]]:
    """`[{path, sha256}]` of what is not as it was; no digest for what is large, gone again, or not among the first."""
    changed = sorted(set(stamps(folder).items()) - set(before.items()))
    told = [{"path": path, "sha256": _digest(folder / path, held[1])} for path, held in changed[:MOST]]
    return [*told, *({"path": path, "sha256": ""} for path, _ in changed[MOST:])]


def _digest(path: Path, size: int) -> str:
    try:
        return seal_file(path).sha256 if size <= SIZE_LIMIT else ""
    except (KernelError, OSError):
        return ""
