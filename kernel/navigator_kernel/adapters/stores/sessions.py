"""Sessions and their messages, the queue of their turns, and the ends of conversations."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, to_builtins
from msgspec.structs import asdict, replace

from navigator_kernel.adapters.files.database import own_lock
from navigator_kernel.adapters.stores.sqlite import Versions, connect, tables
from navigator_kernel.digests import blake2b
from navigator_kernel.errors import Busy, Damaged, KernelError, NotFound
from navigator_kernel.values.packet import packet_from, shaped
from navigator_kernel.values.redact import Redact, same
from navigator_kernel.values.request import INTERRUPTED, Said, Session

if TYPE_CHECKING:
    from navigator_kernel.ports import Clock, SharedStores, Writer


VERSIONS: Versions = (
    (
        "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, created TEXT NOT NULL, updated TEXT NOT NULL,"
        " turn INTEGER NOT NULL, state TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS history (session TEXT NOT NULL, seq INTEGER NOT NULL, role TEXT NOT NULL,"
        " text TEXT NOT NULL, run TEXT NOT NULL, ts TEXT NOT NULL, PRIMARY KEY (session, seq)) WITHOUT ROWID",
    ),
)
TITLE = 120  # characters
ALL = 2**40  # entries: more than there are
_SLOTS: Mapping[str, Any] = {"question": None, "absent": None, "retry": []}  # fields with messages, when empty


class SqliteSessions(Struct, frozen=True):
    """One SQLite file in WAL mode, in the person's state of the project, or a database that hosts share: a turn is
    saved as a whole or not at all, even if the process is killed. Orders that wait for approval are kept unchanged
    until the answer; other content of messages is kept without secrets, or not at all."""

    file: Path
    writer: Writer
    clock: Clock
    redact: Redact = same
    shared: SharedStores | None = None

    def load(self, name: str) -> Session:
        """The session of that name; NotFound if there is none. The history stays on disk."""
        with self._open(reads=True) as database:
            row = database.execute("SELECT state FROM sessions WHERE id = ?", (name,)).fetchone()
        if row is None:
            raise NotFound(f"no session is called {name!r}", hint="navigator session list shows them")
        try:
            return session_from(json.loads(row[0]))
        except (ValueError, KeyError, TypeError) as error:
            raise Damaged(
                f"session {name!r} cannot be read: {error}", hint=f"navigator session delete {name}"
            ) from error

    def save(self, session: Session, said: Sequence[Said] = ()) -> None:
        """Saves the session after a turn and the turn's additions to its history, in one transaction.

        Busy if another process has taken a turn of the same session in the meantime.
        """
        # A question, a repetition or a last message that contains a secret is left out: a text with `[redacted]` in it
        # cannot be carried out, so the person has to send the message again
        body = session_to_dict(session)
        lost = {slot: empty for slot, empty in _SLOTS.items() if self.redact(body[slot]) != body[slot]}
        sticky = body["sticky"]
        if sticky is not None and self.redact(sticky) != sticky:
            lost["sticky"] = {**sticky, "text": "", "values": {}}
        state, now = json.dumps({**body, **lost}, ensure_ascii=False), self.clock.now()
        with self._open() as database:
            row = database.execute("SELECT turn FROM sessions WHERE id = ?", (session.id,)).fetchone()
            if row is not None and row[0] >= session.turn:
                raise Busy(f"session {session.id!r} was continued by another process", hint="send the message again")
            database.execute(
                "INSERT INTO sessions (id, created, updated, turn, state) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) "
                "DO UPDATE SET updated = excluded.updated, turn = excluded.turn, state = excluded.state",
                (session.id, now, now, session.turn, state),
            )
            last = database.execute("SELECT max(seq) FROM history WHERE session = ?", (session.id,)).fetchone()[0]
            first = 0 if last is None else last + 1
            rows = [
                (session.id, first + at, message.role, self.redact(message.text), message.run, now)
                for at, message in enumerate(said)
            ]
            database.executemany("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?)", rows)

    def revoke(self, name: str, subjects: Collection[str]) -> None:
        """Ends these consents of the session; its turn and its question stay. NotFound if there is no such session."""
        with self._open() as database:
            row = database.execute("SELECT state FROM sessions WHERE id = ?", (name,)).fetchone()
            if row is None:
                raise NotFound(f"no session is called {name!r}", hint="navigator session list shows them")
            body = json.loads(row[0])
            for place in filter(None, (body, body.get("approval"))):
                key = "grants" if place is body else "agreed"
                place[key] = [subject for subject in place.get(key, ()) if subject not in subjects]
            state = json.dumps(body, ensure_ascii=False)
            database.execute("UPDATE sessions SET state = ? WHERE id = ?", (state, name))

    def history(self, name: str, last: int | None = None) -> list[Said]:
        """The messages, oldest first; only the `last` entries if a number is given."""
        query = "SELECT role, text, run, ts FROM history WHERE session = ? ORDER BY seq DESC LIMIT ?"
        with self._open(reads=True) as database:
            rows = database.execute(query, (name, ALL if last is None else last)).fetchall()
        return [Said(role=role, text=text, run=run, ts=ts) for role, text, run, ts in reversed(rows)]

    def listed(self) -> list[dict[str, Any]]:
        """`[{id, created, updated, turns, waiting}]`, newest first."""
        with self._open(reads=True) as database:
            rows = database.execute(
                "SELECT id, created, updated, turn, state FROM sessions ORDER BY updated DESC"
            ).fetchall()
        keys = ("id", "created", "updated", "turns")
        return [{**dict(zip(keys, row[:4], strict=True)), "waiting": _waiting(row[4])} for row in rows]

    def titles(self) -> dict[str, str]:
        """The beginning of each session's first message; for a session without history, of the message that it waits
        with."""
        first_messages = (
            "SELECT session, substr(text, 1, ?) FROM history AS first WHERE seq = "
            "(SELECT min(seq) FROM history WHERE session = first.session AND role = 'user')"
        )
        asking = "SELECT id, state FROM sessions WHERE id NOT IN (SELECT session FROM history)"
        with self._open(reads=True) as database:
            titles = dict(database.execute(first_messages, (TITLE,)).fetchall())
            waiting = database.execute(asking).fetchall()
        return {**{name: self.redact(_about(state))[:TITLE] for name, state in waiting}, **titles}

    def delete(self, *names: str) -> None:
        """Deletes the sessions with their histories, all in one transaction; NotFound if there is none of them."""
        rows = [(name,) for name in names]
        with self._open() as database:
            gone = database.executemany("DELETE FROM sessions WHERE id = ?", rows).rowcount
            database.executemany("DELETE FROM history WHERE session = ?", rows)
        if not gone:
            raise NotFound(f"no session is called {names[0]!r}", hint="navigator session list shows them")

    @property
    def queue(self) -> TurnQueue:
        """The turns that run and wait."""
        return TurnQueue(self.file.parent / "turns", self.writer, self.shared)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps the file open, if it can be opened: while a connection is open, no other empties SQLite's log when it
        closes, which takes 1 ms of CPU and waits for the disk."""
        with ExitStack() as stack:
            if self.shared is None:
                with suppress(KernelError):  # a turn reports it
                    stack.enter_context(connect(self.file, self.writer, VERSIONS, reads=True))
            yield

    def _open(self, *, reads: bool = False) -> AbstractContextManager[Any]:
        return tables(self.shared, self.file, self.writer, VERSIONS, reads=reads)


def _about(state: str) -> str:
    """The message that a session waits with; empty if it is not kept."""
    try:
        body = json.loads(state)
        if body.get("question"):
            return str(body["question"]["original"])
        packets = (body.get("approval") or {}).get("packets")
        return str(packets[0]["task_spec"]["intent"]) if packets else ""
    except (ValueError, KeyError, TypeError):
        return ""


def _waiting(state: str) -> str:
    """What the session waits for: `approval`, `interrupted`, `question` or empty; `damaged` if that cannot be read."""
    try:
        body = json.loads(state)
    except ValueError:
        return "damaged"
    approval, question = body.get("approval"), body.get("question")
    if question and not question.get("aside"):
        return "question"
    if approval:
        return "interrupted" if str(approval.get("subject", "")).startswith(INTERRUPTED) else "approval"
    return "question" if question else ""


VERSION = 1  # of the form of a stored session


def session_to_dict(session: Session) -> dict[str, Any]:
    """The session as JSON values, without its history; `session_from` is its inverse."""
    approval, body = session.approval, {"v": VERSION, **asdict(session)}
    del body["history"]
    body["retry"] = [packet.to_dict() for packet in session.retry]
    if approval is not None:
        body["approval"] = {**asdict(approval), "packets": [packet.to_dict() for packet in approval.packets]}
    values: dict[str, Any] = to_builtins(body)
    return values


def session_from(raw: Mapping[str, Any]) -> Session:
    """The session in `raw`; KeyError, TypeError or ValueError if it is invalid."""
    if raw["v"] > VERSION:
        raise ValueError(f"a newer version ({raw['v']}) wrote it")
    approval, retry = raw["approval"], raw.get("retry", ())
    packets = () if approval is None else tuple(packet_from(packet) for packet in approval["packets"])
    plain = {"private": True, **raw, "retry": (), "approval": approval and {**approval, "packets": ()}}
    session = shaped(plain, Session)  # an earlier version did not store `private`
    with_packets = session.approval and replace(session.approval, packets=packets)
    return replace(session, approval=with_packets, retry=tuple(packet_from(packet) for packet in retry))


# Lets the turns of one session run one after another, in the order in which they were asked for.

PATIENCE = 120.0  # seconds that a turn waits for those before it
MOST = 32  # turns of one session that wait
_PAUSE = 0.05  # seconds between two looks at the turns before
_PAUSE_SHARED = 0.2  # if other hosts have them
_QUIET = 1.0  # seconds of waiting before the person is told


class TurnQueue(Struct, frozen=True):
    """A file below `folder` for each turn that runs or waits, which its process keeps locked: a killed process does not
    hold up the others. The file's name ends with the turn's place in the order, and it contains the process id. Where
    hosts share the sessions, their database has the places."""

    folder: Path
    writer: Writer
    shared: SharedStores | None = None

    @asynccontextmanager
    async def turn(self, session: str, tell: Callable[[str], None]) -> AsyncIterator[bool]:
        """Waits until the turns of `session` before this one have ended; yields whether it had to. `tell` is
        called with a line for the person if that takes longer. Busy after `PATIENCE` seconds, or if `MOST` turns wait.
        """
        import asyncio

        with ExitStack() as stack:
            if self.shared is None:
                before = self._enter(session, stack)
            else:
                before = stack.enter_context(self.shared.place(session, MOST))
            began, is_announced, is_first = monotonic(), False, True
            while (holder := before()) is not None:
                waited, is_first = monotonic() - began, False
                if waited >= PATIENCE:
                    raise _busy(session, holder, f"for {PATIENCE:g} seconds")
                if waited >= _QUIET and not is_announced:
                    tell(f"waiting for {holder}, which is taking a turn in session {session!r}")
                    is_announced = True
                await asyncio.sleep(_PAUSE if self.shared is None else _PAUSE_SHARED)
            yield not is_first

    def stoppable(self, session: str, stop: Callable[[str], None]) -> AbstractContextManager[None]:
        """`SharedStores.stoppable` for the turn of `session` that this process takes, if hosts share the sessions."""
        shared: Any = getattr(self.shared, "stoppable", None)
        return nullcontext() if shared is None else shared(session, stop)

    def stop(self, session: str, work: str) -> bool:
        """Asks the host that takes a turn of `session` to stop it, if that is the run `work`, or carries out the
        workflow `run:<token>`; False if no other host can be asked."""
        shared: Any = getattr(self.shared, "stop", None)
        return shared is not None and shared(session, work)

    def is_busy(self, session: str) -> bool:
        """Whether any process takes a turn of `session` now."""
        if self.shared is None:
            return bool(self._live(_stem(session), lambda _: None))
        try:
            with self.shared.place(session, 0):
                return False
        except Busy:
            return True

    def _enter(self, session: str, stack: ExitStack) -> Callable[[], str | None]:
        """Makes the locked file of this turn, behind those that are there; returns what `SharedStores.place` yields."""
        name, guard = _stem(session), self.folder / "lock"
        self.writer.append(guard, b"")
        with own_lock(guard, timeout=PATIENCE):
            others = self._live(name, self._remove)
            if len(others) > MOST:
                raise _busy(session, _holder(others[0]), f"and {MOST} turns wait")
            at = int(others[-1].suffix[1:]) + 1 if others else 0
            file = self.folder / f"{name}.{at:06}"
            self.writer.append(file, str(os.getpid()).encode())
            stack.enter_context(own_lock(file, timeout=_QUIET))  # a turn that waits may be looking at it
            stack.callback(self._remove, file)
        return (lambda: self._before(file)) if others else (lambda: None)

    def _before(self, file: Path) -> str | None:
        """Who takes the turn before that of `file`; None if it is the first."""
        others = [other for other in self._live(file.stem, lambda _: None) if other < file]
        return _holder(others[0]) if others else None

    def _live(self, name: str, found_dead: Callable[[Path], None]) -> list[Path]:
        """The files of turns whose processes live, first come first; calls `found_dead` for the others."""
        live = []
        for file in sorted(self.folder.glob(f"{name}.*")):
            try:
                with own_lock(file):
                    found_dead(file)
            except Busy:
                live.append(file)
            except KernelError:  # it has just ended
                continue
        return live

    def _remove(self, file: Path) -> None:
        self.writer.remove(file, durable=False)


def _stem(session: str) -> str:
    return blake2b(session.encode(), digest_size=12).hexdigest()


def _holder(file: Path) -> str:
    try:
        return f"process {int(file.read_bytes())}"
    except (OSError, ValueError):
        return "another process"


def _busy(session: str, holder: str, how: str) -> Busy:
    message = f"session {session!r} is busy: {holder} has been taking a turn in it {how}"
    return Busy(message, hint="wait for its end, or use another --session")


# Finds the session that continues a conversation, for clients that send the whole conversation each time.

KEPT = 20_000  # stored digests; an older conversation begins a new session
LIKELY = 10  # sessions with the same conversation that are returned
CONVERSATION_VERSIONS: Versions = (
    (
        "CREATE TABLE IF NOT EXISTS ends (digest TEXT NOT NULL, session TEXT NOT NULL, turn INTEGER NOT NULL,"
        " at TEXT NOT NULL, PRIMARY KEY (digest, session)) WITHOUT ROWID",
        "CREATE INDEX IF NOT EXISTS ends_by_time ON ends (at)",
    ),
)


class KnownEnd(NamedTuple):
    """A session, and its number of turns at the point in the conversation that the digest covers."""

    session: str
    turn: int


class Conversations(Struct, frozen=True, kw_only=True):
    """One SQLite file in the person's state, or a database that hosts share. It contains digests of at most `most`
    conversations, and no text."""

    file: Path
    writer: Writer
    clock: Clock
    most: int = KEPT
    shared: SharedStores | None = None

    def find(self, digest: str) -> list[KnownEnd]:
        """The sessions whose conversation has this digest, newest first."""
        query = "SELECT session, turn FROM ends WHERE digest = ? ORDER BY at DESC, session DESC LIMIT ?"
        with self._open(reads=True) as database:
            return [KnownEnd(*row) for row in database.execute(query, (digest, LIKELY))]

    def keep(self, digest: str, session: str, turn: int) -> None:
        """Records that the conversation of `session` now has this digest."""
        row = (digest, session, turn, self.clock.now())
        with self._open() as database:
            database.execute(
                "INSERT INTO ends (digest, session, turn, at) VALUES (?, ?, ?, ?) ON CONFLICT (digest, session)"
                " DO UPDATE SET turn = excluded.turn, at = excluded.at",
                row,
            )
            database.execute(
                "DELETE FROM ends WHERE at <= (SELECT at FROM ends ORDER BY at DESC LIMIT 1 OFFSET ?)", (self.most,)
            )

    def _open(self, *, reads: bool = False) -> AbstractContextManager[Any]:
        return tables(self.shared, self.file, self.writer, CONVERSATION_VERSIONS, reads=reads)
