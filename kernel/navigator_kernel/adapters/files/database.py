"""JSON files in TinyDB's format, and the file lock that writers hold."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Busy, Damaged
from navigator_kernel.storage_errors import storage_failed
from navigator_kernel.text import warn

TABLE = "_default"  # TinyDB's name for the default table
PATIENCE = 1.0  # seconds of waiting before a message on stderr
_PAUSE = 0.02  # seconds between two attempts to take the lock
SIZE_LIMIT = 256 * 1024 * 1024  # bytes

Tables = dict[str, dict[str, Any]]


def read_rows(path: Path) -> tuple[Mapping[str, Any], ...]:
    """Returns the rows of the default table in order, none without a file. Damaged if it cannot be read."""
    tables = JsonStorage(path).read() or {}
    return tuple(tables.get(TABLE, {}).values())


def table_bytes(path: Path, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The new content of the file `path`, with `rows`, numbered from 1, as its whole default table; other tables stay.

    The caller writes it, in one piece, with a lock around both steps.
    """
    from tinydb import TinyDB  # takes 20 ms, and only needed here

    storage = JsonStorage(path)
    table = TinyDB(storage=lambda: storage)
    table.truncate()
    table.insert_multiple(dict(row) for row in rows)
    return storage.text()


class JsonStorage:
    """A storage for TinyDB that keeps written data until `text()` is called, so that a file can change in one step."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: Tables | None = None

    def read(self) -> Tables | None:
        """Returns the tables of the file, or the data written since; None without a file."""
        if self._written is not None:
            return self._written
        try:
            data = read_bounded(self._path, SIZE_LIMIT)
        except FileNotFoundError:
            return None
        try:
            tables = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise _damaged(self._path, "is not JSON") from error
        if not isinstance(tables, dict) or not all(_is_table(table) for table in tables.values()):
            raise _damaged(self._path, "does not contain tables of records")
        return tables

    def write(self, data: Mapping[str, Mapping[Any, Any]]) -> None:
        self._written = {name: {str(key): dict(row) for key, row in rows.items()} for name, rows in data.items()}

    def text(self) -> bytes:
        return (json.dumps(self.read() or {}, ensure_ascii=False, indent=1, sort_keys=False) + "\n").encode()

    def close(self) -> None:
        """TinyDB calls it; there is nothing to close."""


@contextmanager
def file_lock(path: Path, timeout: float = 60.0) -> Iterator[None]:
    """Holds the lock file `path`, in an existing folder, for one process at a time; Busy after `timeout` seconds.

    A process that waits for more than a second says on stderr which process it waits for. This is the only file that no
    Writer writes: it contains only the holder's process id.
    """
    handle = _taken(path, min(timeout, PATIENCE))
    if handle is None and timeout > PATIENCE:
        warn("waiting for %s, which is changing %s", _holder(path), path.parent)
        handle = _taken(path, timeout - PATIENCE)
    if handle is None:
        raise Busy(f"{_holder(path)} is changing {str(path.parent)!r}", hint="wait for it, then try again")
    try:
        with suppress(OSError):
            os.ftruncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
        yield
    finally:
        os.close(handle)


@contextmanager
def own_lock(path: Path, timeout: float = 0.0, *, is_reader: bool = False) -> Iterator[None]:
    """Holds the existing file `path` itself for one process at a time, or for readers; Busy after `timeout` seconds."""
    handle = _taken(path, timeout, create=0, mode=fcntl.LOCK_SH if is_reader else fcntl.LOCK_EX)
    if handle is None:
        raise Busy(f"another process is using {str(path)!r}", hint="wait for it, then try again")
    try:
        yield
    finally:
        os.close(handle)


def _taken(path: Path, timeout: float, create: int = os.O_CREAT, mode: int = fcntl.LOCK_EX) -> int | None:
    """The open, locked file (flock(2)); closing it or ending the process releases the lock. None after `timeout`."""
    end = monotonic() + timeout
    while True:
        try:
            with ExitStack() as unless_held:
                handle = os.open(path, os.O_RDWR | create | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
                unless_held.callback(os.close, handle)
                try:
                    fcntl.flock(handle, mode | fcntl.LOCK_NB)
                    if os.path.samestat(os.fstat(handle), os.lstat(path)):  # else another file has replaced it
                        unless_held.pop_all()
                        return handle
                except FileNotFoundError:
                    if not create:
                        raise
                    continue  # the file was removed meanwhile
                except BlockingIOError:
                    if monotonic() >= end:
                        return None
        except OSError as error:
            raise storage_failed(f"cannot lock {str(path)!r}", error, path) from error
        sleep(_PAUSE)


def _is_table(table: object) -> bool:
    if not isinstance(table, dict):
        return False
    return all(key.isascii() and key.isdigit() and isinstance(row, dict) for key, row in table.items())


def _damaged(path: Path, what: str) -> Damaged:
    return Damaged(f"{str(path)!r} {what}", hint="navigator doctor --repair repairs it", path=str(path))


def _holder(path: Path) -> str:
    with suppress(OSError):
        pid = path.read_text(encoding="ascii", errors="replace").strip()
        if pid.isdigit():
            return f"process {pid}"
    return "another process"
