"""Lists the states of all projects of this person, gives one to another project, and deletes one."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.project_state import ASIDE, Record, records, unlink
from navigator_kernel.bootstrap.places import project_state
from navigator_kernel.config.settings import user_state
from navigator_kernel.errors import NotFound, Refused, UsageProblem
from navigator_kernel.text import numbered


class StoredState(Struct, frozen=True):
    """One state with what is in it. `sessions` and `runs` are None if their file cannot be read; `used` is the time of
    the last change, `size` is in bytes."""

    record: Record
    is_current: bool
    used: str
    size: int
    sessions: int | None
    runs: int | None

    @property
    def is_aside(self) -> bool:
        return ASIDE in self.record.folder.name

    @property
    def has_work(self) -> bool:
        return self.sessions != 0 or self.runs != 0

    def to_dict(self) -> dict[str, Any]:
        record = self.record
        facts = {"id": record.short, "path": record.place.path, "exists": record.is_there(), "current": self.is_current}
        held = {"used": self.used, "size": self.size, "sessions": self.sessions, "runs": self.runs}
        return {**facts, **held, "aside": self.is_aside, "folder": str(record.folder), "fault": record.fault}

    def summary(self) -> str:
        """The state in one line."""
        counted = ((self.sessions, "session"), (self.runs, "workflow run"), (self.size, "byte"))
        held = ", ".join(f"? {noun}s" if count is None else numbered(count, noun) for count, noun in counted)
        where = self.record.place.path or "an unknown place"
        return f"{self.record.short} of {where!r} ({held})"


def stored_states(root: Path | None) -> list[StoredState]:
    """All states, the last used first; `root` is the current project, if there is one. Writes nothing."""
    own = project_state(root).record if root is not None else None
    found = [_stored(record, own) for record in records(user_state() / "projects", aside=True)]
    return sorted(found, key=lambda state: state.used, reverse=True)


def find_state(root: Path | None, word: str) -> StoredState:
    """The state with the id `word`, else the one of the project at this path, if possible not that of `root`."""
    own = project_state(root).record if root is not None else None
    known = records(_projects(), aside=True)
    path = os.path.realpath(Path(word).expanduser())
    by_path = [record for record in known if record.place.path == path]
    by_id = [record for record in known if word in {record.short, record.folder.name}]
    found = by_id or [record for record in by_path if record != own] or by_path
    if not found:
        raise NotFound(f"no state has the id or the project {word!r}", hint="navigator project list shows all")
    if len(found) > 1:
        names = ", ".join(record.short for record in found)
        raise UsageProblem(f"{len(found)} states are of {path!r}: {names}", hint="name one by its id")
    return _stored(found[0], own)


def adoptable(root: Path, word: str, *, replace: bool) -> StoredState:
    """The state that `word` names. Refused if it is the project's already, or if the project has sessions or runs of
    its own that are not to be replaced."""
    taken, own = find_state(root, word), project_state(root).record
    if taken.is_current:
        raise Refused(f"the state {taken.summary()} is this project's already", hint="navigator project list")
    if own is not None and not replace and (held := _stored(own, own)).has_work:
        raise Refused(f"this project has a state of its own: {held.summary()}", hint="--replace sets it aside")
    return taken


def adopt(root: Path, word: str, *, replace: bool) -> Record | None:
    """Gives the `adoptable` state to the project at `root`. Returns the record of the project's former state, which is
    set aside."""
    with file_lock(_projects() / "claim.lock"):
        taken = adoptable(root, word, replace=replace)
        return project_state(root).take(taken.record)


def forget(folder: Path) -> None:
    """Deletes the state folder."""
    with file_lock(_projects() / "claim.lock"):
        unlink(folder)
        FolderWriter([folder.parent]).remove(folder)


def _projects() -> Path:
    """The folder of all states; NotFound if there is none."""
    projects = user_state() / "projects"
    if not projects.is_dir():
        raise NotFound("no project has a state yet", hint="the first message in a project makes one")
    return projects


def _stored(record: Record, own: Record | None) -> StoredState:
    size, last = 0, 0.0
    for folder, _, names in os.walk(record.folder):
        for name in names:
            with suppress(OSError):
                seen = Path(folder, name).lstat()
                size, last = size + seen.st_size, max(last, seen.st_mtime)
    used = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(last)) + f".{int(last % 1 * 1000):03d}Z"
    sessions, runs = (_count(record.folder / f"{file}.sqlite", table) for file, table in _COUNTED)
    return StoredState(record, own is not None and record.folder == own.folder, used, size, sessions, runs)


_COUNTED = (("sessions", "sessions"), ("workflows", "runs"))


def _count(file: Path, table: str) -> int | None:
    """The number of rows; 0 without a file, None if it cannot be read. A database without a log of changes is opened as
    a file that does not change: SQLite would otherwise write beside it."""
    if not file.exists():
        return 0
    mode = "mode=ro" if file.with_name(f"{file.name}-wal").exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?{mode}", uri=True)) as database:
            return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 - a fixed name
    except sqlite3.Error:
        return None
