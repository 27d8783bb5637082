"""A project's stores in Postgres: one schema a project, with the tables that one machine has in SQLite files.

The kernel's own statements make and use the tables, so that there is one form of each. What hosts need beside them is
here: claims with a fence, places in a queue, and migrations that run on one host at a time. All time is the database's.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from navigator_kernel.errors import Busy, KernelError, NotLoadable, StorageFailed, UsageProblem

if TYPE_CHECKING:
    import psycopg

LEASE = 15.0  # seconds after which a claim that is not renewed has ended; it is renewed in a third of them
PATIENCE = 20.0  # seconds to wait for a database that was reached before: it may be starting again
FIRST = 2.0  # seconds if it was not: the URL may be wrong
STILL = 15.0  # seconds, or a lease, after which the database ends a transaction whose host does nothing: it holds locks
_NETWORK: dict[str, Any] = {
    "connect_timeout": 5,  # seconds for one try
    "tcp_user_timeout": 10_000,  # milliseconds until a connection that was cut is given up
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}
IDLE = 4  # connections that stay open
HINT = "see that the database runs and NAVIGATOR_DATABASE_URL is right; what was saved before is kept"
_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_LONGEST = 48  # characters of an id: Postgres cuts a name after 63 bytes
_CLAIMS = (
    (
        "CREATE TABLE claims (name TEXT PRIMARY KEY, owner TEXT NOT NULL, fence BIGINT NOT NULL,"
        " ends TIMESTAMPTZ NOT NULL)",
        "CREATE TABLE places (place BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL,"
        " owner TEXT NOT NULL, ends TIMESTAMPTZ NOT NULL)",  # a number is never given again, as to a host that woke
    ),
    ("ALTER TABLE places ADD COLUMN stop TEXT NOT NULL DEFAULT ''",),
)
_LINES = (
    (
        "CREATE TABLE lines (n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        " subject TEXT NOT NULL, name TEXT NOT NULL, line TEXT NOT NULL)",
        "CREATE INDEX lines_by_name ON lines (subject, name, n)",
    ),
)
_BUCKETS = (
    ("CREATE TABLE buckets (name TEXT PRIMARY KEY, level DOUBLE PRECISION NOT NULL, at TIMESTAMPTZ NOT NULL)",),
)
LISTENING = 1.0  # seconds between two looks for a stop that another host asks for
_RENEW_CLAIM = "UPDATE claims SET ends = clock_timestamp() + make_interval(secs => ?) WHERE name = ? AND fence = ?"
_RENEW_PLACE = "UPDATE places SET ends = clock_timestamp() + make_interval(secs => ?) WHERE name = ? AND place = ?"
_PASSING = ("starting up", "shutting down", "recovery", "too many")  # refusals of a server that works again soon


class Statements:
    """A transaction of Postgres with the interface of a `sqlite3` connection that the stores use."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[object] = ()) -> psycopg.Cursor[Any]:
        return self._connection.execute(_translated(statement), _storable(values))

    def executemany(self, statement: str, rows: Sequence[Sequence[object]]) -> psycopg.Cursor[Any]:
        cursor = self._connection.cursor()
        cursor.executemany(_translated(statement), list(map(_storable, rows)))
        return cursor


class PostgresLines:
    """The lines of one subject for `SharedStores.lines`: rows, which a process has open while it has their claim."""

    def __init__(self, stores: PostgresStores, subject: str) -> None:
        self._stores, self._subject = stores, subject

    def names(self) -> Sequence[str]:
        query = "SELECT DISTINCT name FROM lines WHERE subject = ? ORDER BY name"
        with self._rows() as database:
            return [name for (name,) in database.execute(query, (self._subject,)).fetchall()]

    def lock(self, name: str) -> AbstractContextManager[None]:
        return self._stores.claim(f"{self._subject}:{name}")

    def idle(self, name: str) -> bytes:
        query = "SELECT 1 FROM claims WHERE name = ? AND ends > clock_timestamp()"
        with self._rows() as database:
            if database.execute(query, (f"{self._subject}:{name}",)).fetchone() is not None:
                raise Busy(f"{name!r} is under way elsewhere", hint="wait for its end, then try again")
        return self._read(name)

    def _read(self, name: str) -> bytes:
        query = "SELECT line FROM lines WHERE subject = ? AND name = ? ORDER BY n"
        with self._rows() as database:
            rows = database.execute(query, (self._subject, name)).fetchall()
        if not rows:
            raise FileNotFoundError(name)
        return "".join(f"{line}\n" for (line,) in rows).encode()

    @contextmanager
    def open(self, name: str, expected: int | None) -> Iterator[Callable[[bytes], None]]:
        gone_on = Busy("another process has continued this", hint="navigator session list shows what waits")
        with ExitStack() as stack:
            try:
                stack.enter_context(self.lock(name))
                if expected is not None and len(self._read(name)) != expected:
                    raise gone_on
            except (Busy, FileNotFoundError):
                raise gone_on from None

            def add(data: bytes) -> None:
                rows = [(self._subject, name, line) for line in data.decode().split("\n")[:-1]]
                with self._rows(name) as database:
                    database.executemany("INSERT INTO lines (subject, name, line) VALUES (?, ?, ?)", rows)

            yield add

    def remove(self, name: str) -> None:
        with self._rows(name) as database:
            database.execute("DELETE FROM lines WHERE subject = ? AND name = ?", (self._subject, name))

    def _rows(self, claimed: str = "") -> AbstractContextManager[Statements]:
        of = claimed and f"{self._subject}:{claimed}"
        return self._stores.open("lines", _LINES, beside=True, claimed=of)


class PostgresStores:
    """Implements `ports.SharedStores`. Several threads may use it. `lease` is in seconds."""

    def __init__(self, url: str, project: str, lease: float | str = LEASE) -> None:
        if not 0 < len(project) <= _LONGEST or not _CHARACTERS.issuperset(project):
            hint = "NAVIGATOR_PROJECT_ID: small letters, digits, '_' and '-', at most 48"
            raise UsageProblem(f"{project!r} is not an id of a project", hint=hint)
        try:
            self._lease = float(lease)
        except ValueError:
            self._lease = 0.0
        if not 0.5 <= self._lease <= 3600:
            raise UsageProblem(f"{lease!r} is not a lease", hint="NAVIGATOR_LEASE: seconds, from 0.5 to 3600")
        self._url, self._schema = url, f"navigator_{project}"
        self._owner = f"process {os.getpid()} on {socket.gethostname()}"
        self._guard = threading.Lock()  # for the fields below
        self._idle: list[psycopg.Connection[Any]] = []
        self._process = os.getpid()  # a process that was forked off does not use them
        weakref.finalize(self, _close, self._idle, self._process)
        self._prepared: set[str] = set()
        self._fences: dict[str, int] = {}  # of the claims of this process, by name
        self._own_places: set[tuple[str, int]] = set()
        self._stops: dict[str, Callable[[str], None]] = {}  # by the name of a place
        self._renewer: threading.Thread | None = None

    @contextmanager
    def open(
        self, subject: str, versions: Sequence[Sequence[str]], *, beside: bool = False, claimed: str = ""
    ) -> Iterator[Statements]:
        with self._named_errors():
            self._prepare(subject, versions)
        with self._rows("" if beside else subject) as database:
            if claimed:
                self._check(database, claimed)
            yield database

    def lines(self, subject: str) -> PostgresLines:
        return PostgresLines(self, subject)

    @contextmanager
    def claim(self, name: str) -> Iterator[None]:
        statement = (
            "INSERT INTO claims AS old (name, owner, fence, ends)"
            " VALUES (?, ?, 1, clock_timestamp() + make_interval(secs => ?)) ON CONFLICT (name)"
            " DO UPDATE SET owner = excluded.owner, fence = old.fence + 1, ends = excluded.ends"
            " WHERE old.ends <= clock_timestamp() RETURNING fence"
        )
        busy = Busy(f"{name!r} is under way elsewhere", hint="wait for its end, then try again")
        with self._guard:
            if name in self._fences:  # also if its lease has ended: the thread that writes with it is still there
                raise busy
            self._fences[name] = 0
        try:
            with self._rows() as database:
                row = database.execute(statement, (name, self._owner, self._lease)).fetchone()
            if row is None:
                raise busy
            with self._guard:
                self._fences[name] = row[0]
            self._renew_from_now_on()
            yield
        finally:
            with self._guard:
                fence = self._fences.pop(name)
            if fence:
                self._release("UPDATE claims SET ends = clock_timestamp() WHERE name = ? AND fence = ?", (name, fence))

    @contextmanager
    def place(self, name: str, most: int) -> Iterator[Callable[[], str | None]]:
        with self._rows("places") as database:  # one at a time, so that places are given in order
            database.execute("DELETE FROM places WHERE name = ? AND ends <= clock_timestamp()", (name,))
            rows = database.execute("SELECT place, owner FROM places WHERE name = ? ORDER BY place", (name,)).fetchall()
            if len(rows) > most:
                message = f"{name!r} is busy: {rows[0][1]} has the first place and {most} turns wait"
                raise Busy(message, hint="wait for its end, then try again")
            statement = (
                "INSERT INTO places (name, owner, ends)"
                " VALUES (?, ?, clock_timestamp() + make_interval(secs => ?)) RETURNING place"
            )
            (place,) = database.execute(statement, (name, self._owner, self._lease)).fetchone() or (0,)
        with self._guard:
            self._own_places.add((name, place))
        self._renew_from_now_on()

        def before() -> str | None:
            query = (
                "SELECT owner FROM places WHERE name = ? AND place < ? AND ends > clock_timestamp()"
                " ORDER BY place LIMIT 1"
            )
            with self._rows() as database:
                row = database.execute(query, (name, place)).fetchone()
            return None if row is None else str(row[0])

        try:
            yield before
        finally:
            with self._guard:
                self._own_places.discard((name, place))
            statement = "DELETE FROM places WHERE name = ? AND (place = ? OR ends <= clock_timestamp())"
            self._release(statement, (name, place))

    @contextmanager
    def stoppable(self, name: str, stop: Callable[[str], None]) -> Iterator[None]:
        with self._guard:
            self._stops[name] = stop
        try:
            yield
        finally:
            with self._guard:
                self._stops.pop(name, None)

    def stop(self, name: str, work: str) -> bool:
        first = "SELECT min(place) FROM places WHERE name = ? AND ends > clock_timestamp()"
        with self._rows() as database:
            statement = f"UPDATE places SET stop = ? WHERE place = ({first})"  # noqa: S608 - no value is in it
            return database.execute(statement, (work, name)).rowcount == 1

    def take(self, name: str, most: float, rate: float, burst: float) -> float:
        fill = (
            "SELECT LEAST(?, level + ? * GREATEST(0, EXTRACT(EPOCH FROM clock_timestamp() - at)))"
            " FROM buckets WHERE name = ? FOR UPDATE"
        )
        with self.open("buckets", _BUCKETS, beside=True) as database:
            new = "INSERT INTO buckets VALUES (?, ?, clock_timestamp()) ON CONFLICT (name) DO NOTHING"
            database.execute(new, (name, burst))
            (level,) = database.execute(fill, (burst, rate, name)).fetchone() or (0.0,)
            taken = min(most, float(level))
            left = "UPDATE buckets SET level = ?, at = clock_timestamp() WHERE name = ?"
            database.execute(left, (level - taken, name))
        return taken

    def _check(self, database: Statements, name: str) -> None:
        """Busy if the claim is not this process's, or is another's now. Its row stays locked to the end of the
        transaction, so that a claim by another host comes before it or after it. A claim whose time ended counts until
        another host has it: nobody wrote meanwhile."""
        with self._guard:
            fence = self._fences.get(name)
        query = "SELECT 1 FROM claims WHERE name = ? AND fence = ? FOR UPDATE"
        if fence is None or database.execute(query, (name, fence)).fetchone() is None:
            message = f"{name!r} is not this process's any more: another host continues it"
            raise Busy(message, hint="nothing was written; look at it again")

    def _release(self, statement: str, values: Sequence[object]) -> None:
        """Ends a claim or a place; without the database it ends by its time."""
        with suppress(KernelError), self._rows() as database:
            database.execute(statement, values)

    # Renewing claims and places

    def _renew_from_now_on(self) -> None:
        with self._guard:
            if self._renewer is None or not self._renewer.is_alive():  # after a fork it is not
                self._renewer = threading.Thread(target=self._renew, name="navigator-leases", daemon=True)
                self._renewer.start()

    def _renew(self) -> None:
        """Renews what this process has in a third of the lease, as long as it has anything, and looks for what it is to
        stop. A claim that another host has now is not renewed; the next write finds that out."""
        renewed = time.monotonic()
        while True:
            time.sleep(min(self._lease / 3, LISTENING))
            with self._guard:
                claims, places, listens = list(self._fences.items()), list(self._own_places), bool(self._stops)
                if not claims and not places:
                    self._renewer = None
                    return
            is_due = time.monotonic() - renewed >= self._lease / 3
            with suppress(KernelError), self._rows() as database:
                for statement, names in ((_RENEW_CLAIM, claims), (_RENEW_PLACE, places)) if is_due else ():
                    rows = [(self._lease, *row) for row in sorted(names)]
                    if rows:
                        database.executemany(statement, rows)
                        renewed = time.monotonic()
                query = "SELECT name, stop FROM places WHERE stop <> '' AND place = ANY(?)"
                own = [place for _, place in places]
                for name, work in database.execute(query, (own,)).fetchall() if listens else ():
                    with self._guard:
                        stop = self._stops.pop(name, None)
                    if stop is not None:
                        stop("" if work in self._fences else work)

    # Transactions and migrations

    @contextmanager
    def _rows(self, alone: str = "") -> Iterator[Statements]:
        """A transaction, with the kernel's errors, in which the tables of claims and places are there."""
        with self._named_errors():
            self._prepare("claims", _CLAIMS)
            with self._transaction(alone) as database:
                yield database

    @contextmanager
    def _transaction(self, alone: str) -> Iterator[Statements]:
        """One transaction; if `alone` is not empty, after all others of that name."""
        connection = self._begun(alone)
        try:
            yield Statements(connection)
            connection.commit()
        except BaseException:
            with suppress(Exception):
                connection.rollback()
            if connection.info.transaction_status:  # neither idle nor usable again
                connection.close()
            raise
        finally:
            with self._guard:
                is_kept = not connection.closed and len(self._idle) < IDLE
                if is_kept:
                    self._idle.append(connection)
            if not is_kept:
                connection.close()

    def _begun(self, alone: str) -> psycopg.Connection[Any]:
        """A connection within a transaction, which has sent nothing yet; waits for a database that is not there."""
        import psycopg

        end = time.monotonic() + (PATIENCE if self._prepared else FIRST)
        while True:
            connection = None
            try:
                with self._guard:
                    if self._process != os.getpid():
                        self._idle, self._process = [], os.getpid()
                        weakref.finalize(self, _close, self._idle, self._process)
                    connection = self._idle.pop() if self._idle else None
                was_idle = connection is not None
                if connection is None:
                    connection = psycopg.connect(self._url, prepare_threshold=None, **_NETWORK)
                connection.execute(
                    "SELECT set_config('search_path', %s, true), set_config('lock_timeout', %s, true),"
                    " set_config('idle_in_transaction_session_timeout', %s, true)",
                    (f'"{self._schema}"', f"{PATIENCE:g}s", f"{min(max(self._lease, 2), STILL):g}s"),
                )
                if alone:
                    digest = blake2b(f"{self._schema}/{alone}".encode(), digest_size=8).digest()
                    connection.execute(
                        "SELECT pg_advisory_xact_lock(%s)", (int.from_bytes(digest, "big", signed=True),)
                    )
                return connection
            except psycopg.OperationalError as error:
                if connection is not None:
                    connection.close()
                if not was_idle and (time.monotonic() >= end or _is_refused(error)):
                    raise
                if not was_idle:
                    time.sleep(0.2)

    def _prepare(self, subject: str, versions: Sequence[Sequence[str]]) -> None:
        """Runs the missing migrations of the subject in one transaction, on one host at a time."""
        with self._guard:
            if subject in self._prepared or not versions:
                return
        with self._transaction("migrations") as database:
            query = "SELECT to_regclass(?) IS NOT NULL"
            if database.execute(query, (f'"{self._schema}".versions',)).fetchone() != (True,):
                if not database.execute("SELECT 1 FROM pg_namespace WHERE nspname = ?", (self._schema,)).fetchone():
                    database.execute(f'CREATE SCHEMA "{self._schema}"')
                database.execute("CREATE TABLE versions (subject TEXT PRIMARY KEY, version INTEGER NOT NULL)")
            row = database.execute("SELECT version FROM versions WHERE subject = ?", (subject,)).fetchone()
            version = 0 if row is None else row[0]
            if version > len(versions):
                message = f"the tables of {subject!r} were made by a newer navigator: version {version}"
                raise KernelError(f"{message}, and this one knows {len(versions)}", hint="update navigator")
            for statement in (statement for statements in versions[version:] for statement in statements):
                database.execute(statement.replace(" WITHOUT ROWID", "").replace(" TEXT", ' TEXT COLLATE "C"'))
            database.execute(
                "INSERT INTO versions (subject, version) VALUES (?, ?) ON CONFLICT (subject)"
                " DO UPDATE SET version = excluded.version",
                (subject, len(versions)),
            )
        with self._guard:
            self._prepared.add(subject)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turns the driver's errors into the kernel's. Its texts are not shown, because they can contain the URL."""
        try:
            import psycopg
        except ImportError as error:
            hint = "pip install 'navigator-kernel[postgres]'"
            raise NotLoadable(f"a package of the shared stores is missing: {error.name}", hint=hint) from error
        try:
            yield
        except psycopg.Error as error:
            raise _failed(error) from None


def _close(connections: list[psycopg.Connection[Any]], process: int) -> None:
    for connection in connections if process == os.getpid() else ():
        connection.close()


def _translated(statement: str) -> Any:
    """The statement with Postgres's placeholders."""
    return statement.replace("%", "%%").replace("?", "%s")


def _storable(values: Sequence[object]) -> list[object]:
    """The values without the character NUL, which Postgres does not store."""
    return [value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value for value in values]


def _is_refused(error: Exception) -> bool:
    """Whether the server itself refused a connection for a reason that does not pass, such as a wrong password."""
    return "FATAL" in str(error) and not any(words in str(error) for words in _PASSING)


def _failed(error: psycopg.Error) -> StorageFailed:
    import psycopg

    code = error.sqlstate or ""
    if isinstance(error, psycopg.errors.DiskFull):
        kind, why, hint = "full", "its disk is full", "free space on the database's disk, then try again"
    elif isinstance(error, psycopg.errors.InsufficientPrivilege | psycopg.errors.ReadOnlySqlTransaction):
        kind, why, hint = "read_only", "it does not allow the write", "give the role of the URL rights to its schema"
    elif isinstance(error, psycopg.OperationalError):
        kind, why, hint = "unreachable", "it cannot be reached", HINT
    else:
        kind, why, hint = "other", type(error).__name__, HINT
    return StorageFailed(f"the project's database cannot be used: {why}", hint=hint, kind=kind, sqlstate=code)
