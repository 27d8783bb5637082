"""Moves the state of an earlier version from the project to the person's own folder, once and without its grants."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from navigator_kernel.adapters.files.writer import FolderWriter, read_bounded
from navigator_kernel.adapters.stores.person_home import upgraded_at
from navigator_kernel.bootstrap.consents import open_consents
from navigator_kernel.bootstrap.parts import state_writer
from navigator_kernel.bootstrap.places import project_state
from navigator_kernel.config.settings import user_state
from navigator_kernel.errors import KernelError

Clean = Callable[[Path], None]
SIZE_LIMIT = 1024**3  # bytes of a file to move
_GRANTS: Mapping[str, Any] = {"approval": None, "retry": [], "grants": []}  # reset in each session


def upgrade(root: Path) -> list[str]:
    """Moves the state, and returns what was done, one line each, for the person to read.

    Only files from before the upgrade of this person's home are moved: files that a clone brings later stay unused. The
    inode's change time decides (inode(7)), because no archive and no checkout can set it.
    """
    old, since = root / "mybox" / "state", upgraded_at(user_state())
    mine = [name for name in _MOVED if _changed_at(old / name) < since]
    if not mine:
        return []
    state = project_state(root)
    state.claim()
    writer = state_writer(state)
    moved = [name for name in mine if _move(old / name, state.folder / _TARGETS.get(name, name), _MOVED[name], writer)]
    writer.write(state.folder / "upgraded.json", json.dumps({"v": 1, "moved": moved}).encode())
    _remove(root, [old / f"{name}{suffix}" for name in moved for suffix in ("", "-wal", "-shm")])
    return [
        f"moved to {state.folder}: {', '.join(moved)}",
        "approvals of sessions and workflow runs were not kept, and are asked for again",
        *_about_trust(),
    ]


def _remove(root: Path, moved: Sequence[Path]) -> None:
    """Removes the state files of an earlier version."""
    box = root / "mybox"
    writer = FolderWriter([box], within=root)
    for path in (*moved, box / "logs" / "tapes", box / "cache" / "index", box / "cache" / "repos"):
        with suppress(KernelError):
            writer.remove(path)


def _changed_at(path: Path) -> int:
    """The file's change time in ns; a time far in the future if it is missing, not regular, or another user's."""
    try:
        seen = path.lstat()
    except OSError:
        return 2**63
    return seen.st_ctime_ns if path.is_file() and not path.is_symlink() and seen.st_uid == os.geteuid() else 2**63


def _move(source: Path, target: Path, clean: Clean | None, writer: FolderWriter) -> bool:
    """Copies `source`, and cleans the copy with `clean`; returns whether that worked. If `target` exists, the copy is
    kept beside it, unused; a file that cannot be read stays where it is."""
    if target.exists():
        target = target.with_name(f"before-{target.name}")
        writer.remove(target)
    fresh = target.with_name(f"{target.name}.upgrade")
    try:
        if clean is None:
            writer.write(target, read_bounded(source, SIZE_LIMIT), mode=0o600)
        else:
            writer.remove(fresh)
            _copied(source, fresh)
            clean(fresh)
            writer.move(fresh, target)
    except (OSError, sqlite3.Error, ValueError, TypeError, KernelError):
        writer.remove(fresh)
        return False
    return True


def _copied(source: Path, target: Path) -> None:
    old, new = sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True), sqlite3.connect(target)
    with closing(old), closing(new):
        old.backup(new)


def _without_session_grants(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        rows = database.execute("SELECT id, state FROM sessions").fetchall()
        for name, state in rows:
            held: dict[str, Any] = {**json.loads(state), **_GRANTS}
            database.execute("UPDATE sessions SET state = ? WHERE id = ?", (json.dumps(held, ensure_ascii=False), name))


def _without_run_grants(file: Path) -> None:
    """Drops the grants of all runs; a run that has not ended asks for approval again."""
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE runs SET granted = '[]'")
        database.execute("UPDATE runs SET state = 'proposed' WHERE state NOT IN ('done', 'aborted')")


def _as_it_is(_: Path) -> None:
    return


def _about_trust() -> Iterator[str]:
    dropped = open_consents().dropped()
    if dropped:
        yield f"approvals that installing gave were dropped ({dropped}): navigator skill trust NAME gives one again"


# Each file of an earlier version, and how its copy loses its grants; None if it has none and is not a database
_MOVED: dict[str, Clean | None] = {
    "sessions.sqlite": _without_session_grants,
    "workflows.sqlite": _without_run_grants,
    "planner.sqlite": _as_it_is,
    "lessons.json": None,
    "usage.json": None,
    "disabled.json": None,
    "audit.jsonl": None,
}
_TARGETS = {"audit.jsonl": "audit-before.jsonl"}
