"""A damaged database is named, and every row that can still be read is kept."""

from __future__ import annotations

import os
import random
import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores import journal, salvage
from navigator_kernel.adapters.stores import sessions as conversation_store
from navigator_kernel.adapters.stores import sessions as session_store
from navigator_kernel.adapters.stores.journal import SqliteJournal
from navigator_kernel.adapters.stores.salvage import check, rebuild
from navigator_kernel.adapters.stores.sessions import Conversations, SqliteSessions
from navigator_kernel.adapters.stores.sqlite import Versions, connect, transaction
from navigator_kernel.errors import Busy, KernelError, StorageFailed
from navigator_kernel.values.request import Said, Session

pytestmark = pytest.mark.requirement("X-38")
PLACES = 50
PAGE = 4096
Rows = dict[str, set[tuple[object, ...]]]


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(salvage, "PAUSE", 0)


def rows_of(file: Path) -> Rows:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
        named = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {name: set(database.execute(f'SELECT * FROM "{name}"')) for (name,) in named}


def sessions(folder: Path) -> Path:
    """Rows of one page and of several."""
    store = SqliteSessions(folder / "sessions.sqlite", FolderWriter([folder]), SystemClock())
    made(store, session_store.VERSIONS)
    with store.held():
        for turn in range(1, 31):
            for name in ("a", "b", "c", "中文"):
                text = f"{name} {turn} " + "word " * (7 if turn % 5 else 2000)
                store.save(Session(id=name, turn=turn), [Said(role="user", text=text, run="r", ts="t")])
    return store.file


def made(store: Any, versions: Versions) -> None:
    """Makes the file, as the first write does."""
    with connect(store.file, store.writer, versions):
        pass


def workflows(folder: Path) -> Path:
    store = SqliteJournal(folder / "workflows.sqlite", FolderWriter([folder]), SystemClock())
    made(store, journal.VERSIONS)
    with closing(sqlite3.connect(store.file)) as database, database:
        for number in range(60):
            run = (f"run-{number}", "s", "done", '{"steps": []}', "[]", "2026", "2026")
            database.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", run)
            steps = [(run[0], step, 1, "d" * 64, "2026", None, "{}" * 50) for step in range(3)]
            database.executemany("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?)", steps)
    return store.file


def conversations(folder: Path) -> Path:
    store = Conversations(file=folder / "conversations.sqlite", writer=FolderWriter([folder]), clock=SystemClock())
    made(store, conversation_store.CONVERSATION_VERSIONS)
    with closing(sqlite3.connect(store.file)) as database, database:
        rows = [(f"{number:064x}", f"s{number}", number, f"2026-{number}") for number in range(300)]
        database.executemany("INSERT INTO ends VALUES (?, ?, ?, ?)", rows)
    return store.file


def planner(folder: Path) -> Path:
    """The database of a plugin, whose tables only the file itself names."""
    pytest.importorskip("sqlalchemy")
    from navigator_kernel.tools.factory import ToolFactory
    from navigator_planner.toolkit import open_sessions, registry

    file = folder / "planner.sqlite"
    opened = open_sessions(file, lambda: None)
    create = {tool.name: tool for tool in ToolFactory(opened).registry(registry())}["task_create"]
    for number in range(60):
        create.call(create.schema(title=f"task {number}", description="text " * number))
    return file


STORES = [sessions, workflows, conversations, planner]


@pytest.fixture(scope="module", params=STORES, ids=lambda make: make.__name__)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file: Path = request.param(tmp_path_factory.mktemp("whole"))
    return file


@pytest.fixture
def file(whole: Path, tmp_path: Path) -> Path:
    """A copy of a whole database, to be damaged."""
    return Path(shutil.copy(whole, tmp_path))


def test_a_whole_database_is_whole_and_no_file_is_made(file: Path) -> None:
    before = file.stat()
    assert check(file) == ""
    assert os.listdir(file.parent) == [file.name]
    assert file.stat().st_mtime_ns == before.st_mtime_ns


def test_a_rebuilt_database_has_the_same_rows_version_and_indexes(file: Path, whole: Path) -> None:
    schema = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    rebuilt = rebuild(file)
    assert rows_of(file) == rows_of(whole)
    assert rebuilt.rows == {name: len(rows) for name, rows in rows_of(whole).items()}
    assert rebuilt.original.read_bytes() == whole.read_bytes()
    with closing(sqlite3.connect(file)) as new, closing(sqlite3.connect(whole)) as old:
        for query in (schema, "PRAGMA user_version", "PRAGMA journal_mode"):
            assert new.execute(query).fetchall() == old.execute(query).fetchall()


def lost(file: Path, whole: Path) -> dict[str, int]:
    """Rebuilds the damaged file, and counts the rows that are not kept as they were; nothing is made up."""
    damaged, want = file.read_bytes(), rows_of(whole)
    rebuilt = rebuild(file)
    assert rebuilt.original.read_bytes() == damaged
    assert check(file) == ""
    got = rows_of(file)
    for name, rows in got.items():
        assert len(rows) == rebuilt.rows[name] <= len(want[name])
    return {name: len(rows - got.get(name, set())) for name, rows in want.items()}


@pytest.mark.parametrize("place", range(PLACES))
def test_random_bytes_cost_no_more_than_the_rows_of_their_page(file: Path, whole: Path, place: int) -> None:
    data, by = bytearray(file.read_bytes()), random.Random(place)
    at = len(data) * place // PLACES
    page = at // PAGE * PAGE
    data[at : at + 16] = by.randbytes(len(data[at : at + 16]))
    file.write_bytes(data)
    named = check(file)
    if not named:  # the bytes are inside a text that is still a text
        assert {name: len(rows) for name, rows in rows_of(file).items()} == {
            name: len(rows) for name, rows in rows_of(whole).items()
        }
    gone = sum(lost(file, whole).values())
    if page:
        assert gone <= max(1, int.from_bytes(whole.read_bytes()[page + 3 : page + 5], "big"))
    else:
        assert not gone or file.name == "planner.sqlite"  # the first page has the only definition of a plugin's tables


def test_fifty_damaged_places_cost_no_more_than_fifty_rows(file: Path, whole: Path) -> None:
    data, by = bytearray(file.read_bytes()), random.Random(1)
    for _ in range(PLACES):  # in the second half of a page are its rows
        data[by.randrange(1, len(data) // PAGE) * PAGE + by.randrange(PAGE // 2, PAGE)] ^= 0xFF
    file.write_bytes(data)
    assert check(file)
    assert sum(lost(file, whole).values()) <= PLACES


@pytest.mark.parametrize("part", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_truncated_database_keeps_the_rows_before_the_cut(file: Path, whole: Path, part: float) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * part)])
    assert check(file)
    kept = sum(map(len, rows_of(whole).values())) - sum(lost(file, whole).values())
    assert kept >= (part - 0.5) * sum(map(len, rows_of(whole).values()))


@pytest.mark.parametrize("whole", [sessions, workflows, conversations], indirect=True)
def test_without_the_first_page_no_row_is_lost(file: Path, whole: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(random.Random(2).randbytes(PAGE) + data[PAGE:])
    assert check(file)
    assert not any(lost(file, whole).values())


@contextmanager
def killed(tmp_path: Path) -> Iterator[tuple[Path, Rows]]:
    """A database as a killed process leaves it, with rows that are only in its log; and its rows."""
    store = SqliteSessions(tmp_path / "live" / "sessions.sqlite", FolderWriter([tmp_path]), SystemClock())
    made(store, session_store.VERSIONS)
    with store.held():
        for turn in range(1, 20):
            store.save(Session(id="a", turn=turn), [Said(role="user", text=f"text {turn}", run="r", ts="t")])
        rows = rows_of(store.file)
        shutil.copytree(tmp_path / "live", tmp_path / "left")
    (tmp_path / "left" / "sessions.sqlite-shm").unlink()
    yield tmp_path / "left" / "sessions.sqlite", rows


@pytest.mark.parametrize(
    "damage",
    [lambda _: b"", lambda data: os.urandom(100) + data[100:], lambda data: data[:5000]],
    ids=["empty", "overwritten", "cut"],
)
def test_rows_that_are_only_in_the_log_are_kept(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    with killed(tmp_path) as (file, rows):
        assert check(file) == ""
        assert sorted(os.listdir(file.parent)) == ["sessions.sqlite", "sessions.sqlite-wal"]
        log = file.with_name("sessions.sqlite-wal").read_bytes()
        file.write_bytes(damage(file.read_bytes()))
        rebuilt = rebuild(file)
        assert rows_of(file) == rows
        assert rebuilt.original.with_name(f"{rebuilt.original.name}-wal").read_bytes() == log


@pytest.mark.parametrize("at", [2, 20, 40, 100, 30_000, 70_000])
def test_a_damaged_log_is_named_and_costs_at_most_one_transaction(tmp_path: Path, at: int) -> None:
    with killed(tmp_path) as (file, rows):
        log = file.with_name("sessions.sqlite-wal")
        data = bytearray(log.read_bytes())
        data[at] ^= 0xFF
        log.write_bytes(data)
        assert check(file) == "its log is damaged"
        rebuild(file)
        assert check(file) == ""
        kept = rows_of(file)
        assert len(rows["history"] - kept["history"]) <= 1
        assert kept["history"] <= rows["history"]


def test_a_log_that_ends_within_a_transaction_is_whole(tmp_path: Path) -> None:
    with killed(tmp_path) as (file, _):
        log = file.with_name("sessions.sqlite-wal")
        log.write_bytes(log.read_bytes()[:-3000])
        assert check(file) == ""


def test_a_database_in_use_is_whole_and_is_not_replaced(tmp_path: Path) -> None:
    store = SqliteSessions(tmp_path / "sessions.sqlite", FolderWriter([tmp_path]), SystemClock())
    made(store, session_store.VERSIONS)
    with store.held():
        store.save(Session(id="a", turn=1))
        assert check(store.file) == ""
        with pytest.raises(Busy):
            rebuild(store.file)
        with pytest.raises(Busy):  # to read it has not ended the lock of this process
            rebuild(store.file)
    assert store.load("a").turn == 1
    assert rebuild(store.file).rows["sessions"] == 1


def test_a_file_of_a_newer_navigator_is_named_and_not_replaced(tmp_path: Path) -> None:
    file = sessions(tmp_path)
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA user_version = 9")
    before = file.read_bytes()
    assert "newer navigator" in check(file)
    with pytest.raises(KernelError, match="newer navigator"):
        rebuild(file)
    assert (file.read_bytes(), os.listdir(tmp_path)) == (before, [file.name])


def test_without_space_the_damaged_file_stays_as_it_is(tmp_path: Path) -> None:
    file = sessions(tmp_path)
    file.write_bytes(file.read_bytes()[:-PAGE])
    before = file.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (PAGE * 2, limits[1]))
    try:
        with pytest.raises(StorageFailed) as caught:
            rebuild(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.data["kind"] == "full"
    assert (file.read_bytes(), os.listdir(tmp_path)) == (before, [file.name])


FIRST = ("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",)
SECOND = ("ALTER TABLE notes ADD COLUMN tag TEXT NOT NULL DEFAULT ''", "CREATE INDEX by_tag ON notes (tag)")


def test_an_older_file_is_brought_to_the_newest_version_with_its_rows(tmp_path: Path) -> None:
    file, writer = tmp_path / "n.sqlite", FolderWriter([tmp_path])
    with connect(file, writer, [FIRST]) as database:
        database.execute("INSERT INTO notes (text) VALUES ('kept')")
    with connect(file, writer, [FIRST, SECOND]) as database:
        assert database.execute("SELECT * FROM notes").fetchall() == [(1, "kept", "")]
        assert database.execute("PRAGMA user_version").fetchone() == (2,)
    with pytest.raises(KernelError, match="newer navigator"), connect(file, writer, [FIRST]):
        pytest.fail("it was opened")


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    file, writer = tmp_path / "n.sqlite", FolderWriter([tmp_path])
    with connect(file, writer, [FIRST]):
        pass
    with pytest.raises(KernelError), connect(file, writer, [FIRST, (*SECOND, "CREATE TABLE notes (id)")]):
        pytest.fail("it was opened")
    with connect(file, writer, [FIRST]) as database:
        assert len(database.execute("PRAGMA table_info(notes)").fetchall()) == 2


def test_the_first_error_is_reported_and_not_that_of_the_rollback(tmp_path: Path) -> None:
    """SQLite has rolled back already when the disk is full."""
    file, writer = tmp_path / "n.sqlite", FolderWriter([tmp_path])
    row = ("INSERT INTO notes (text) VALUES (?)", [("x" * 5000,)] * 100)
    with pytest.raises(StorageFailed) as caught, connect(file, writer, [FIRST]) as database:  # noqa: PT012 - the error comes at the end of the transaction
        database.execute("PRAGMA max_page_count = 20")
        with transaction(database):
            database.executemany(*row)
    assert (caught.value.data["kind"], "rollback" in str(caught.value)) == ("full", False)
