"""Opens one of the kernel's SQLite files: in WAL mode, with its tables, and with typed errors."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.errors import Busy, Damaged

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer

WAIT = 30.0  # seconds that a writer waits for another


@contextmanager
def connect(
    file: Path, writer: Writer, tables: Sequence[str], *, hint: str, durable: bool = False, reads: bool = False
) -> Iterator[sqlite3.Connection]:
    """Opens a connection in autocommit mode. `tables` are CREATE TABLE IF NOT EXISTS statements; with `durable`, a
    commit also survives a power cut. A caller that only `reads` makes no file, and claims no state.

    Busy if another process writes for too long, Damaged (with `hint`) if the file cannot be used.
    """
    is_new = reads and not file.exists()
    if not reads:
        writer.make_folder(file.parent)
    try:
        database = sqlite3.connect(":memory:" if is_new else file, timeout=WAIT, isolation_level=None)
    except sqlite3.Error as error:
        raise _damaged(file, error, hint) from error
    try:
        if not is_new:
            write_ahead(database)
        _prepare(database, tables, durable=durable)
        yield database
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise Busy(f"another process is writing {file.name!r}", hint="try again") from error
        raise _damaged(file, error, hint) from error
    except sqlite3.DatabaseError as error:
        raise _damaged(file, error, hint) from error
    finally:
        database.close()


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """One write transaction, rolled back on any exception."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _damaged(file: Path, error: sqlite3.Error, hint: str) -> Damaged:
    return Damaged(f"{str(file)!r} cannot be used: {error}", hint=hint)


def write_ahead(database: sqlite3.Connection) -> None:
    """Sets WAL mode. The change needs exclusive access to the file for a moment, and SQLite does not wait for that."""
    deadline = time.monotonic() + WAIT
    while database.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            database.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _prepare(database: sqlite3.Connection, tables: Sequence[str], *, durable: bool) -> None:
    if database.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()[0] < len(tables):
        for statement in tables:
            database.execute(statement)
    database.execute("PRAGMA secure_delete = ON")  # overwrites deleted bytes, such as an order with a secret
    database.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
