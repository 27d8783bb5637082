"""Opens one of the kernel's SQLite files: in WAL mode, in the newest version of its tables, and with typed errors."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.errors import KernelError
from navigator_kernel.storage_errors import database_failed, empty, newer, storage_failed

if TYPE_CHECKING:
    from navigator_kernel.ports import SharedStores, Writer

WAIT = 30.0  # seconds that a writer waits for another
Versions = Sequence[Sequence[str]]  # the statements that make each version from the one before, oldest first


@contextmanager
def connect(
    file: Path, writer: Writer, versions: Versions, *, durable: bool = False, reads: bool = False
) -> Iterator[sqlite3.Connection]:
    """Opens a connection in autocommit mode; makes a missing file, and brings an older one to the newest version. With
    `durable`, a commit also survives a power cut. A caller that only `reads` makes no file, and claims no state.

    Busy if another process writes for too long, Damaged if the content cannot be read, StorageFailed if the disk does
    not allow the work, KernelError for a file of a newer navigator.
    """
    is_new = reads and not file.exists()
    if not reads:
        writer.make_folder(file.parent)
    if not is_new:
        _make_missing(file, writer, versions)
    database = None
    try:
        database = sqlite3.connect(":memory:" if is_new else file, timeout=WAIT, isolation_level=None)
        migrate(database, file, versions)
        database.execute("PRAGMA secure_delete = ON")  # overwrites deleted bytes, such as an order with a secret
        database.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        yield database
    except sqlite3.ProgrammingError:  # a mistake of the caller
        raise
    except sqlite3.Error as error:
        raise database_failed(file, error) from error
    finally:
        if database is not None:
            with suppress(sqlite3.Error):  # the first error is the one to report
                database.close()


@contextmanager
def tables(
    shared: SharedStores | None,
    file: Path,
    writer: Writer,
    versions: Versions,
    *,
    durable: bool = False,
    reads: bool = False,
    claimed: str = "",
) -> Iterator[Any]:
    """A connection to the tables of `file`, or of the same subject in a database that several hosts share. Without
    `reads` the block is one transaction, of the owner of the claim `claimed` if it is not empty, beside those of other
    owners; one machine has locks of files in place of claims."""
    if shared is not None:
        with shared.open(file.stem, versions, beside=reads or bool(claimed), claimed=claimed) as database:
            yield database
        return
    with connect(file, writer, versions, durable=durable, reads=reads) as database:
        if reads:
            yield database
        else:
            with transaction(database):
                yield database


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """One write transaction, rolled back on any exception."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        with suppress(
            sqlite3.Error
        ):  # SQLite has rolled back already if the disk is full; that error is the one to report
            database.execute("ROLLBACK")
        raise


def migrate(database: sqlite3.Connection, file: Path, versions: Versions) -> None:
    """Brings the tables to the newest version, in one transaction; KernelError if they are of a newer navigator."""
    if _version(database, file, versions) == len(versions):
        return
    with transaction(database):
        for statements in versions[_version(database, file, versions) :]:  # another process may have been first
            for statement in statements:
                database.execute(statement)
        database.execute(f"PRAGMA user_version = {len(versions)}")


def _version(database: sqlite3.Connection, file: Path, versions: Versions) -> int:
    version: int = database.execute("PRAGMA user_version").fetchone()[0]
    if not 0 <= version <= len(versions):
        raise newer(file, version, len(versions))
    return version


def fresh_file(file: Path) -> Path:
    """The name under which a new database is made before it gets the name `file`, so that no half-made one is read."""
    return file.with_name(f".navigator-{file.name}.tmp")


def files_of(file: Path) -> tuple[Path, Path, Path]:
    """The database, its log and the index of the log."""
    return file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")


def _make_missing(file: Path, writer: Writer, versions: Versions) -> None:
    """Makes a missing database under a lock, complete or not at all, so that an empty file is damage: SQLite itself
    would begin again in it, and delete its log."""
    lock, fresh = file.with_name(f"{file.name}.lock"), fresh_file(file)
    try:
        if not file.exists():
            with file_lock(lock):
                if not file.exists():  # else another process has made it
                    try:
                        for old in (*files_of(fresh), *files_of(file)):  # a log without its database is of no use
                            writer.remove(old, durable=False)
                        with closing(sqlite3.connect(fresh, isolation_level=None)) as database:
                            database.execute("PRAGMA journal_mode = WAL")
                            migrate(database, file, versions)
                        writer.move(fresh, file)
                    finally:
                        with suppress(KernelError):
                            for old in files_of(fresh):
                                writer.remove(old, durable=False)
                writer.remove(lock, durable=False)
        elif not file.stat().st_size:
            raise empty(file)
    except sqlite3.Error as error:
        raise database_failed(file, error) from error
    except OSError as error:
        raise storage_failed(f"cannot make {str(file)!r}", error) from error
