"""Removes temporary files and old logs from `mybox`, never workflows, state or the lock (X-19)."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.bootstrap.parts import open_journal
from navigator_kernel.bootstrap.places import box_of
from navigator_kernel.errors import KernelError

KEEP_DAYS = 30
_AGED = ("logs/runs", "workspace")


def collect_garbage(root: Path, *, days: int = KEEP_DAYS, dry_run: bool = False) -> list[str]:
    """Removes the files and returns their paths, relative to the project; with `dry_run`, only returns them."""
    box = box_of(root)
    gone = list(_all(box / "temp"))
    before = time.time() - days * 86_400
    aged = [path for name in _AGED for path in _all(box / name) if path.lstat().st_mtime < before]
    held = _open_runs(root) if aged else frozenset()
    gone += [path for path in aged if path.name not in held]
    writer = FolderWriter([box / "temp", *(box / name for name in _AGED)], within=box.parent)
    if not dry_run:
        gone = [path for path in gone if _removed(path, writer)]
    return [(path.relative_to(root) if path.is_relative_to(root) else path).as_posix() for path in gone]


def _removed(path: Path, writer: FolderWriter) -> bool:
    """Removes `path`; a failure is logged and does not end the command."""
    try:
        writer.remove(path)
    except KernelError as error:
        logging.getLogger("navigator").warning("%s", error.message)
        return False
    return True


def _open_runs(root: Path) -> frozenset[str]:
    """Workflow runs that are not over: their workspaces stay, regardless of age (X-19)."""
    journal = open_journal(root)
    if not journal.file.exists():
        return frozenset()
    return frozenset(run.token for run in journal.listed() if run.state not in {"done", "aborted"})


def _all(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(path for path in folder.iterdir() if path.name != "README.md")
    except (FileNotFoundError, NotADirectoryError):
        return
