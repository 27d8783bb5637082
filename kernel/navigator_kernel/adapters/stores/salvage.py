"""Says what is wrong with a SQLite file of the kernel, and makes a new file of the rows that a damaged one still has.

SQLite stops reading a table at the first damaged page. This module reads the pages itself, as described at
https://www.sqlite.org/fileformat2.html, so that each row is kept whose own bytes are whole.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from navigator_kernel.adapters.stores import journal, sessions
from navigator_kernel.adapters.stores.sqlite import Versions, files_of, fresh_file, migrate
from navigator_kernel.errors import Busy
from navigator_kernel.storage_errors import database_failed, newer, storage_failed

LOOKS, PAUSE = 3, 0.1  # how often a database is read before it counts as damaged, and seconds between
PAGE_SIZE = 4096  # bytes; SQLite's default, for a file whose header is damaged
_TABLE_INNER, _INDEX_INNER, _TABLE_LEAF, _INDEX_LEAF = 5, 2, 13, 10  # the first byte of a page
_LITTLE = b"\x37\x7f\x06\x82"  # the first bytes of a log whose checksums are of little-endian numbers
_LOCKED, _LOCK_BYTES = 0x40000000, 512  # the bytes of the file that SQLite locks
_CHILD = """
import fcntl, os, sys
path, mode, start, length = sys.argv[1:]
try:
    with open(path, mode) as file:
        if mode != "rb":
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, int(length), int(start))
        sys.stdout.buffer.write(b"+" + file.read())
        sys.stdout.flush()
        os.close(1)
        sys.stdin.read()
except OSError as error:
    sys.exit(error.errno)
"""
_WIDTHS = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)  # bytes of a value of the kinds 0 to 9
_NO_VERSION = 1000  # a version from here on is damage


class _Row(NamedTuple):
    """A row as it is stored; the rowid is None in an index and in a table WITHOUT ROWID."""

    rowid: int | None
    values: tuple[Any, ...]


class Rebuilt(NamedTuple):
    """Where the damaged file is kept, and how many rows of each table were read from it."""

    original: Path
    rows: Mapping[str, int]


def check(path: Path) -> str:
    """What is wrong with the database, or "" if it is whole; writes no file. StorageFailed if it cannot be read now."""
    wrong = ""
    for _ in range(LOOKS):  # another process may have written while its pages were read
        with _content(path, "rb") as content:
            pages, wrong = _read(path, content)
        wrong = wrong or _wrong(pages, path.name)
        if not wrong:
            return "it was made by a newer navigator" if _is_newer(pages, path.name) else ""
        time.sleep(PAUSE)
    return wrong


def rebuild(path: Path) -> Rebuilt:
    """Puts a new database with all readable rows in the place of a damaged one. The damaged one stays beside it, with
    its log, as `*.damaged-<time>`.

    Busy while another process has it open; StorageFailed if the disk does not allow it, KernelError for a file of a
    newer navigator: all of these leave the file as it is.
    """
    with _content(path, "r+b") as content:
        pages, _ = _read(path, content)
        if _is_newer(pages, path.name) and not _wrong(pages, path.name):
            raise newer(path, pages.version, len(_known(path.name)))
        fresh = fresh_file(path)
        try:
            for file in files_of(fresh):
                file.unlink(missing_ok=True)
            with closing(sqlite3.connect(fresh, isolation_level=None)) as database:
                database.execute("PRAGMA journal_mode = WAL")
                owners = _make_tables(database, fresh, pages, _known(path.name))
                tables = _tables(database)
                rows = dict.fromkeys(tables, 0)
                database.execute("BEGIN")
                for number in sorted(pages.numbers, key=lambda number: number not in owners):
                    owner = tables.get(owners.get(number, ""))
                    for row in _rows(pages, number):
                        fitting = [table for table in tables.values() if table.fits(row)]
                        if owner in fitting or len(fitting) == 1:
                            table = owner if owner in fitting else fitting[0]
                            rows[table.name] += table.add(row, database)
                database.execute("COMMIT")
            # Replaces the database in one step; returns the new name of the old one
            damaged = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%dT%H%M%S')}-{os.urandom(2).hex()}")
            os.link(path, damaged)
            _, log, index = files_of(path)
            if log.exists():
                log.rename(files_of(damaged)[1])
            index.unlink(missing_ok=True)
            fresh.replace(path)
            return Rebuilt(damaged, rows)
        except sqlite3.Error as error:
            raise database_failed(path, error) from error
        except OSError as error:
            raise storage_failed(f"cannot replace {str(path)!r}", error) from error
        finally:
            with suppress(OSError):
                for file in files_of(fresh):
                    file.unlink(missing_ok=True)


class _Pages(NamedTuple):
    """The content of a database, with the pages that are only in its log."""

    data: bytes
    size: int  # bytes of a page

    @property
    def numbers(self) -> range:
        return range(1, len(self.data) // self.size + 1)

    @property
    def usable(self) -> int:
        return self.size - (self.data[20] if self.data[20] <= 32 else 0)

    @property
    def version(self) -> int:
        return int.from_bytes(self.data[60:64], "big")

    def page(self, number: int) -> bytes:
        if number not in self.numbers:
            raise ValueError(f"there is no page {number}")
        return self.data[(number - 1) * self.size : number * self.size]


@contextmanager
def _content(path: Path, mode: str) -> Iterator[bytes]:
    """The bytes of a database; with the mode `r+b` it stays locked, as SQLite locks it, until the block ends.

    A child opens it: if this process has the database open too, closing the file a second time would drop SQLite's
    locks (fcntl(2)). Busy if any process has it open and it is to be locked.
    """
    words = [sys.executable, "-I", "-S", "-c", _CHILD, str(path), mode, str(_LOCKED), str(_LOCK_BYTES)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        data = child.stdout.read() if child.stdout else b""
        if not data:
            number = child.wait()
            if number == errno.EAGAIN:
                raise Busy(f"another process is using {str(path)!r}", hint="end it, then try again")
            raise storage_failed(f"cannot read {str(path)!r}", OSError(number, os.strerror(number)))
        yield data[1:]


def _read(path: Path, content: bytes) -> tuple[_Pages, str]:
    """The pages, and what is wrong with the end of the database or with its log."""
    data, log = bytearray(content), b""
    try:
        with suppress(FileNotFoundError):
            log = files_of(path)[1].read_bytes()
    except OSError as error:
        raise storage_failed(f"cannot read the log of {str(path)!r}", error) from error
    size = int.from_bytes(data[16:18], "big")
    size = 65536 if size == 1 else size
    if size < 512 or size & (size - 1):
        size = PAGE_SIZE
    wrong = "its end is cut off" if len(data) % size and not log else ""
    data.extend(bytes(-len(data) % size))  # as SQLite reads a page that is cut off
    wrong = wrong or (_add_log(data, log, size) if len(log) >= 32 else "")
    return _Pages(bytes(data), size), wrong


def _add_log(data: bytearray, log: bytes, size: int) -> str:
    """Puts the committed pages of the log into `data`, also those behind a damaged one; what is wrong with the log.

    A log that ends within a transaction is whole: its process was killed.
    """
    order, salts = "<" if log[:4] == _LITTLE else ">", log[16:24]
    sums: tuple[int, ...] = struct.unpack(">II", log[24:32])
    torn = "" if _summed(log[:24], (0, 0), order) == sums else "its log is damaged"
    if torn:
        order, salts = "<" if sys.byteorder == "little" else ">", log[40:48]
    bad, pending = bool(torn), dict[int, bytes]()
    for at in range(32, len(log) - size - 23, size + 24):
        number, length = struct.unpack(">II", log[at : at + 8])
        page, stored = log[at + 24 : at + 24 + size], struct.unpack(">II", log[at + 16 : at + 24])
        if log[at + 8 : at + 16] != salts or _summed(log[at : at + 8] + page, sums, order) != stored:
            bad = True
        else:
            torn = torn or ("its log is damaged" if bad else "")
            pending[number] = page
            if length:  # the transaction is complete
                for number, page in pending.items():
                    data.extend(bytes(max(0, number * size - len(data))))
                    data[(number - 1) * size : number * size] = page
                pending = {}
                del data[max(length * size, 0 if not torn else len(data)) :]
        sums = stored
    return torn


def _summed(data: bytes, sums: tuple[int, ...], order: str) -> tuple[int, ...]:
    one, two = sums
    for first, second in struct.iter_unpack(f"{order}II", data):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two


def _wrong(pages: _Pages, name: str) -> str:
    """What SQLite finds wrong with the pages, with tables that are missing, and with text that is not UTF-8."""
    if not pages.data:
        return "it is empty"
    if pages.data[18:20] not in {b"\x01\x01", b"\x02\x02"}:
        return "its header is damaged"
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.deserialize(pages.data[:18] + b"\x01\x01" + pages.data[20:])
            problems = database.execute("PRAGMA quick_check(1)").fetchall()
            if problems != [("ok",)]:
                return str(problems[0][0]).removeprefix("*** in database main ***\n")
            names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in names:
                for _ in database.execute(f'SELECT * FROM "{table}"'):  # noqa: S608 - a name cannot be a parameter
                    pass
            known = _known(name)
            if known and pages.version == len(known) and _tables(database) != _tables_of(known):
                return "its tables are not those of its version"
        except sqlite3.Error as error:
            return str(error)
    return "its header is damaged" if pages.version >= _NO_VERSION else ""


def _is_newer(pages: _Pages, name: str) -> bool:
    return pages.version > (len(_known(name)) or _NO_VERSION)


def _known(name: str) -> Versions:
    """The versions of the database with this file name; none for a database of a plugin."""
    stores = {
        "sessions": sessions.VERSIONS,
        "workflows": journal.VERSIONS,
        "conversations": sessions.CONVERSATION_VERSIONS,
    }
    return stores.get(name.removesuffix(".sqlite"), ())


class _Table(NamedTuple):
    """A table, and its columns in the order in which SQLite stores them: name, type, NOT NULL, default, key."""

    name: str
    columns: Sequence[tuple[str, str, int, Any, int]]
    has_rowid: bool

    def fits(self, row: _Row) -> bool:
        """Whether the row can be one of this table; columns that were added later may be missing in it."""
        if self.has_rowid != (row.rowid is not None) or len(row.values) > len(self.columns):
            return False
        missing = self.columns[len(row.values) :]
        return all(map(self._suits, row.values, self.columns)) and not any(
            needed and default is None for _, _, needed, default, _ in missing
        )

    def _suits(self, value: Any, column: tuple[str, str, int, Any, int]) -> bool:
        _, kind, needed, _, key = column
        if value is None:
            return self.has_rowid if key else not needed
        if "INT" in kind.upper():
            return isinstance(value, int)
        return isinstance(value, str) or not ("CHAR" in kind.upper() or "TEXT" in kind.upper())

    def add(self, row: _Row, database: sqlite3.Connection) -> int:
        """Inserts the row; returns the number of rows added, 0 if its key is there already."""
        columns = self.columns[: len(row.values)]
        values = [
            row.rowid if value is None and column[4] else value
            for value, column in zip(row.values, columns, strict=True)
        ]
        names = ", ".join(f'"{column[0]}"' for column in columns)
        marks = ", ".join("?" * len(columns))
        statement = f'INSERT OR IGNORE INTO "{self.name}" ({names}) VALUES ({marks})'  # noqa: S608 - as above
        return database.execute(statement, values).rowcount


def _tables(database: sqlite3.Connection) -> dict[str, _Table]:
    tables = {}
    made = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    for name, statement in database.execute(made).fetchall():
        has_rowid = "WITHOUT ROWID" not in statement.upper().rpartition(")")[2]
        columns = [row[1:6] for row in database.execute(f'PRAGMA table_info("{name}")')]
        if not has_rowid:  # the key comes first
            columns.sort(key=lambda column: (not column[4], column[4]))
        tables[name] = _Table(name, columns, has_rowid)
    return tables


def _tables_of(known: Versions) -> dict[str, _Table]:
    with closing(sqlite3.connect(":memory:")) as model:
        for statement in (statement for version in known for statement in version):
            model.execute(statement)
        return _tables(model)


def _make_tables(database: sqlite3.Connection, file: Path, pages: _Pages, known: Versions) -> dict[int, str]:
    """Makes the tables of the newest version, or those that the file of a plugin names. Returns the table of each page
    that can be reached."""
    owners, statements = {}, []
    for number in _tree(pages, 1):
        for kind, name, _, root, statement in (row.values for row in _rows(pages, number) if len(row.values) == 5):
            if kind == "table" and isinstance(root, int):
                owners.update(dict.fromkeys(_tree(pages, root), name))
            if kind in {"table", "index"} and isinstance(statement, str):
                statements.append((kind != "table", statement))
    if known:
        migrate(database, file, known)
        return owners
    database.execute("BEGIN")
    for _, statement in sorted(statements):
        with suppress(sqlite3.DatabaseError, sqlite3.Warning):  # its text may be damaged
            database.execute(statement)
    database.execute(f"PRAGMA user_version = {pages.version if pages.version < _NO_VERSION else 0}")
    database.execute("COMMIT")
    return owners


def _tree(pages: _Pages, root: int) -> list[int]:
    """The pages of the table that begins at `root`."""
    reached, ahead = dict[int, None](), [root]
    while ahead:
        number = ahead.pop()
        if number in reached or number not in pages.numbers:
            continue
        reached[number] = None
        page, at = pages.page(number), _begin(number)
        if page[at] in {_TABLE_INNER, _INDEX_INNER}:
            ahead += [int.from_bytes(page[cell : cell + 4], "big") for cell in (*_cells(page, at), at + 8)]
    return list(reached)


def _rows(pages: _Pages, number: int) -> Iterator[_Row]:
    """The readable rows of a page, with those of an index."""
    page, at = pages.page(number), _begin(number)
    if page[at] in {_TABLE_LEAF, _INDEX_LEAF, _INDEX_INNER}:
        for cell in _cells(page, at):
            try:
                row = _row(pages, page, cell, page[at])
            except (ValueError, IndexError, struct.error):
                continue
            yield row


def _begin(number: int) -> int:
    """Where the header of a page begins: the first page begins with the header of the file."""
    return 100 if number == 1 else 0


def _cells(page: bytes, at: int) -> list[int]:
    """Where the cells of a page are."""
    count, first = int.from_bytes(page[at + 3 : at + 5], "big"), at + (12 if page[at] in {5, 2} else 8)
    ends = range(first, min(first + 2 * count, len(page) - 1), 2)
    return [int.from_bytes(page[end : end + 2], "big") for end in ends]


def _row(pages: _Pages, page: bytes, at: int, kind: int) -> _Row:
    """The row of a cell, with its pages of overflow."""
    size, at = _number(page, at + 4 if kind == _INDEX_INNER else at)
    rowid = None
    if kind == _TABLE_LEAF:
        rowid, at = _number(page, at)
    usable = pages.usable
    most = usable - 35 if kind == _TABLE_LEAF else (usable - 12) * 64 // 255 - 23
    local = size
    if size > most:
        least = (usable - 12) * 32 // 255 - 23
        local = least + (size - least) % (usable - 4)
        local = least if local > most else local
    data, after = bytearray(page[at : at + local]), page[at + local : at + local + 4]
    if size > len(pages.data):
        raise ValueError("longer than the file")
    while len(data) < size:
        overflow = pages.page(int.from_bytes(after, "big"))
        data += overflow[4 : 4 + min(usable - 4, size - len(data))]
        after = overflow[:4]
    return _Row(rowid, tuple(_values(bytes(data))))


def _values(data: bytes) -> Iterator[Any]:
    """The values of a record; ValueError unless they fill it exactly."""
    head, at = _number(data, 0)
    kinds = []
    while at < head:
        kind, at = _number(data, at)
        kinds.append(kind)
    widths = [_WIDTHS[kind] if kind < 12 else (kind - 12) // 2 for kind in kinds]
    if at != head or at + sum(widths) != len(data):
        raise ValueError("not a record")
    for kind, width in zip(kinds, widths, strict=True):
        value, at = data[at : at + width], at + width
        if kind >= 12:
            yield value.decode(errors="replace") if kind % 2 else value
        elif kind == 7:
            yield struct.unpack(">d", value)[0]
        else:
            yield kind - 8 if kind in {8, 9} else int.from_bytes(value, "big", signed=True) if kind else None


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where it ends."""
    value = 0
    for end in range(at, at + 8):
        value = value << 7 | data[end] & 0x7F
        if data[end] < 0x80:
            return value, end + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64 if value >> 63 else 0), at + 9
