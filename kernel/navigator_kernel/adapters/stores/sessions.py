"""Sessions and their messages, in one SQLite file that several processes share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.adapters.stores.session_form import session_from, session_to_dict
from navigator_kernel.adapters.stores.sqlite import Versions, connect, transaction
from navigator_kernel.adapters.stores.turn_queue import TurnQueue
from navigator_kernel.errors import Busy, Damaged, NotFound
from navigator_kernel.values.redact import Redact, same
from navigator_kernel.values.request import INTERRUPTED, Said, Session

if TYPE_CHECKING:
    from navigator_kernel.ports import Clock, Writer

VERSIONS: Versions = (
    (
        "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, created TEXT NOT NULL, updated TEXT NOT NULL,"
        " turn INTEGER NOT NULL, state TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS history (session TEXT NOT NULL, seq INTEGER NOT NULL, role TEXT NOT NULL,"
        " text TEXT NOT NULL, run TEXT NOT NULL, ts TEXT NOT NULL, PRIMARY KEY (session, seq)) WITHOUT ROWID",
    ),
)
TITLE = 120  # characters
_SLOTS: Mapping[str, Any] = {"question": None, "retry": []}  # fields with text of messages, and their empty values


class SqliteSessions(Struct, frozen=True):
    """One SQLite file in WAL mode, in the person's state of the project: a turn is saved as a whole or not at all, even
    if the process is killed. Orders that wait for approval are kept unchanged until the answer; other content of
    messages is kept without secrets, or not at all."""

    file: Path
    writer: Writer
    clock: Clock
    redact: Redact = same

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
        state, now = json.dumps(self._kept(session), ensure_ascii=False), self.clock.now()
        with self._open() as database, transaction(database):
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
                (session.id, first + at, one.role, self.redact(one.text), one.run, now) for at, one in enumerate(said)
            ]
            database.executemany("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?)", rows)

    def _kept(self, session: Session) -> dict[str, Any]:
        """The session without a question, a repetition or a last message that contains a secret: a text with
        `[redacted]` in it cannot be carried out, so the person has to send the message again."""
        held = session_to_dict(session)
        lost = {slot: empty for slot, empty in _SLOTS.items() if self.redact(held[slot]) != held[slot]}
        last = held["sticky"]
        if last is not None and self.redact(last["text"]) != last["text"]:
            lost["sticky"] = {**last, "text": ""}
        return {**held, **lost}

    def revoke(self, name: str, subjects: Collection[str]) -> None:
        """Ends these consents of the session; its turn and its question stay. NotFound if there is no such session."""
        with self._open() as database, transaction(database):
            row = database.execute("SELECT state FROM sessions WHERE id = ?", (name,)).fetchone()
            if row is None:
                raise NotFound(f"no session is called {name!r}", hint="navigator session list shows them")
            held = json.loads(row[0])
            for place in filter(None, (held, held.get("approval"))):
                key = "grants" if place is held else "agreed"
                place[key] = [one for one in place.get(key, ()) if one not in subjects]
            state = json.dumps(held, ensure_ascii=False)
            database.execute("UPDATE sessions SET state = ? WHERE id = ?", (state, name))

    def history(self, name: str, last: int | None = None) -> list[Said]:
        """The messages, oldest first; only the `last` entries if a number is given."""
        query = "SELECT role, text, run, ts FROM history WHERE session = ? ORDER BY seq DESC LIMIT ?"
        with self._open(reads=True) as database:
            rows = database.execute(query, (name, -1 if last is None else last)).fetchall()
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
        said = (
            "SELECT session, substr(text, 1, ?) FROM history AS first WHERE seq = "
            "(SELECT min(seq) FROM history WHERE session = first.session AND role = 'user')"
        )
        asking = "SELECT id, state FROM sessions WHERE id NOT IN (SELECT session FROM history)"
        with self._open(reads=True) as database:
            titles = dict(database.execute(said, (TITLE,)).fetchall())
            waiting = database.execute(asking).fetchall()
        return {**{name: self.redact(_about(state))[:TITLE] for name, state in waiting}, **titles}

    def delete(self, *names: str) -> None:
        """Deletes the sessions with their histories, all in one transaction; NotFound if there is none of them."""
        rows = [(name,) for name in names]
        with self._open() as database, transaction(database):
            gone = database.executemany("DELETE FROM sessions WHERE id = ?", rows).rowcount
            database.executemany("DELETE FROM history WHERE session = ?", rows)
        if not gone:
            raise NotFound(f"no session is called {names[0]!r}", hint="navigator session list shows them")

    @property
    def queue(self) -> TurnQueue:
        """The turns that run and wait."""
        return TurnQueue(self.file.parent / "turns", self.writer)

    def held(self) -> AbstractContextManager[object]:
        """Keeps the file open: while a connection is open, no other empties SQLite's log when it closes (1 ms)."""
        return self._open(reads=True)

    def _open(self, *, reads: bool = False) -> AbstractContextManager[sqlite3.Connection]:
        return connect(self.file, self.writer, VERSIONS, reads=reads)


def _about(state: str) -> str:
    """The message that a session waits with; empty if it is not kept."""
    try:
        held = json.loads(state)
        if held.get("question"):
            return str(held["question"]["original"])
        packets = (held.get("approval") or {}).get("packets")
        return str(packets[0]["task_spec"]["intent"]) if packets else ""
    except (ValueError, KeyError, TypeError):
        return ""


def _waiting(state: str) -> str:
    """What the session waits for: `approval`, `interrupted`, `question` or empty; `damaged` if that cannot be read."""
    try:
        held = json.loads(state)
    except ValueError:
        return "damaged"
    approval, question = held.get("approval"), held.get("question")
    if question and not question.get("aside"):
        return "question"
    if approval:
        return "interrupted" if str(approval.get("subject", "")).startswith(INTERRUPTED) else "approval"
    return "question" if question else ""
