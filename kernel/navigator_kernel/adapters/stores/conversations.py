"""Finds the session that continues a conversation, for clients that send the whole conversation each time."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from navigator_kernel.adapters.stores.sqlite import Versions, connect, transaction

if TYPE_CHECKING:
    from navigator_kernel.ports import Clock, Writer

KEPT = 20_000  # stored digests; an older conversation begins a new session
LIKELY = 10  # sessions with the same conversation that are returned
VERSIONS: Versions = (
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
    """One SQLite file in the person's state. It contains digests of at most `most` conversations, and no text."""

    file: Path
    writer: Writer
    clock: Clock
    most: int = KEPT

    def find(self, digest: str) -> list[KnownEnd]:
        """The sessions whose conversation has this digest, newest first."""
        query = "SELECT session, turn FROM ends WHERE digest = ? ORDER BY at DESC, session DESC LIMIT ?"
        with self._open(reads=True) as database:
            return [KnownEnd(*row) for row in database.execute(query, (digest, LIKELY))]

    def keep(self, digest: str, session: str, turn: int) -> None:
        """Records that the conversation of `session` now has this digest."""
        row = (digest, session, turn, self.clock.now())
        with self._open() as database, transaction(database):
            database.execute("INSERT OR REPLACE INTO ends (digest, session, turn, at) VALUES (?, ?, ?, ?)", row)
            database.execute(
                "DELETE FROM ends WHERE at <= (SELECT at FROM ends ORDER BY at DESC LIMIT 1 OFFSET ?)", (self.most,)
            )

    def _open(self, *, reads: bool = False) -> AbstractContextManager[sqlite3.Connection]:
        return connect(self.file, self.writer, VERSIONS, reads=reads)
