"""The audit log of what was allowed, refused, run and written: one JSON line each, append-only.

Each line ends with an HMAC-SHA256 over the code of the line before and its own bytes; the key is in a file of its own.
A file beside the record, the head, contains the number of lines and the code of the last one; it is written after the
line, so that a killed process leaves it at most one line behind. Anyone with the key can see whether a line was edited,
removed, inserted or cut off at the end.

Hosts that share a project keep each its own record with its own key, and add every entry to the database, where all
hosts can read it.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Damaged, KernelError
from navigator_kernel.text import cut_text, escaped, numbered
from navigator_kernel.values.redact import Redact, same

if TYPE_CHECKING:
    from navigator_kernel.ports import Clock, SharedStores, Writer


VERSION = 2
TABLES = (
    (
        "CREATE TABLE audit (n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, record TEXT NOT NULL,"
        " host TEXT NOT NULL, line TEXT NOT NULL)",
    ),
)
SIZE_LIMIT = 1024**3  # bytes of the whole record
KEY_BYTES = 32
_MARK = b',"mac":"'  # between the facts of a line and its code
_CODE = 64  # hexadecimal digits of a code
_HINT = (
    "nothing after it can be relied on; navigator doctor --repair keeps it under another name and begins a new record"
)
_ENDS = "navigator doctor --repair keeps both files under other names and begins a new record"
_NO_KEY = (
    "put it back from a backup, or say navigator doctor --repair, which keeps the record under another name and begins "
    "a new one"
)


class Entry(NamedTuple):
    """One line: its number from 1, its time, the kind of event, and its facts."""

    line: int
    ts: str
    event: str
    facts: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"line": self.line, "ts": self.ts, "event": self.event, **self.facts}


class _Place(NamedTuple):
    """The number of lines up to here, and the code of the last one."""

    number: int
    code: str


class AuditLog(Struct, frozen=True, kw_only=True):
    """Implements `ports.Audit`. Several processes may write to it; `key` is made on first use."""

    file: Path
    writer: Writer
    clock: Clock
    key: Path
    key_writer: Writer
    redact: Redact = same
    shared: SharedStores | None = None

    def record(self, event: str, /, **facts: Any) -> None:
        """Adds an entry; KernelError if it cannot be written: what cannot be recorded does not happen.

        If the record does not fit the head, entries are still added and the head stays as it is, so that the damage
        remains visible.
        """
        # Reads the key, which is made for the first record; Damaged if there is a record that needs the lost one
        seen = [path.lstat() for path in (self.file, self._head_file()) if os.path.lexists(path)]
        begun = any(stat.S_ISREG(status.st_mode) and status.st_size for status in seen)
        if not os.path.lexists(self.key) and not begun:
            self.key_writer.create(self.key, secrets.token_bytes(KEY_BYTES), mode=0o600)
        key = self._key()
        self.writer.make_folder(self.file.parent)
        if not self.file.exists():
            self.writer.append(self.file, b"")
        with self._locked(fcntl.LOCK_EX) as handle:
            size = os.fstat(handle).st_size
            tail = os.pread(handle, min(size, 2 * LINE_LIMIT), max(size - 2 * LINE_LIMIT, 0))
            last = tail[tail.rfind(b"\n", 0, len(tail) - 1) + 1 :]
            at, sound = self._followed(key, last)
            head = {"v": VERSION, "n": at.number + 1, "ts": self.clock.now(), "event": event}
            body = written({**head, **self.redact(facts), **head})[:-1]
            if self.shared is not None:
                with self.shared.open("audit", TABLES, beside=True) as database:
                    values = (self._name(key), os.uname().nodename, body.decode() + "}")
                    database.execute("INSERT INTO audit (record, host, line) VALUES (?, ?, ?)", values)
            after = _Place(at.number + 1, _code(key, at.code, body))
            line = body + _MARK + after.code.encode() + b'"}\n'
            self.writer.append(self.file, (b"" if last.endswith(b"\n") or not last else b"\n") + line)
            if sound:
                self._keep_head(key, after)

    def entries(self) -> Sequence[Entry]:
        """All entries, oldest first; Damaged at the first line that is not as it was written, and if lines are missing
        at the end."""
        lines, head = self._contents()
        if not lines and head is None and not os.path.lexists(self.key):
            return []
        key = self._key()
        place = self._start(key)
        places, entries = [place], list[Entry]()
        for number, line in enumerate(lines, 1):
            entry, place = _checked(key, place, line)
            if entry is None:
                message = f"line {number} of {str(self.file)!r}, or what stood before it, is not as it was written"
                raise Damaged(message, hint=_HINT, line=number)
            places.append(place)
            entries.append(entry)
        self._check_end(key, places, head)
        return entries

    def elsewhere(self) -> Sequence[Entry]:
        """The entries of other hosts, oldest first, each with the fact `host`, as the database has them."""
        if self.shared is None:
            return []
        own = self._name(self._key()) if os.path.lexists(self.key) else ""
        with self.shared.open("audit", TABLES, beside=True) as database:
            query = "SELECT host, line FROM audit WHERE record <> ? ORDER BY n"
            rows = database.execute(query, (own,)).fetchall()
        entries = []
        for host, line in rows:
            facts = {"host": host, **json.loads(line)}
            facts.pop("v")
            entries.append(Entry(facts.pop("n"), facts.pop("ts"), facts.pop("event"), facts))
        return entries

    def begin_again(self) -> list[Path]:
        """Begins a new record whose first entry says why. A damaged record and its head get other names, and so does a
        key that is not one. Returns the new paths. Nothing happens to a record that is as it was written; Damaged if
        only the rights of the key are wrong."""
        try:
            self.entries()
            return []
        except Damaged as error:
            if error.data.get("reason") == "rights":
                raise
            why = error.message
        end = f".damaged-{secrets.token_hex(4)}"
        moved = [(self.writer, path) for path in (self.file, self._head_file()) if os.path.lexists(path)]
        if os.path.lexists(self.key) and self.key.lstat().st_size != KEY_BYTES:
            moved.append((self.key_writer, self.key))
        for writer, path in moved:
            writer.move(path, path.with_name(path.name + end))
        self.record("began", why=why, kept=self.file.name + end)
        return [path.with_name(path.name + end) for _, path in moved]

    def _check_end(self, key: bytes, places: Sequence[_Place], head: bytes | None) -> None:
        """Damaged if the head counts more lines than there are, or over one fewer, or has the code of another line."""
        last = len(places) - 1
        stated = self._head(key, head)
        if stated is None or (stated.number <= last and places[stated.number] != stated) or last - stated.number > 1:
            message = f"{str(self._head_file())!r} does not fit the record of {numbered(last, 'line')}"
            raise Damaged(message, hint=_ENDS, line=last + 1)
        if stated.number > last:
            message = f"{str(self.file)!r} was cut off: {last} of {numbered(stated.number, 'line')} left"
            raise Damaged(message, hint=_ENDS, line=last + 1)

    def _followed(self, key: bytes, last: bytes) -> tuple[_Place, bool]:
        """The place before the next line, and whether the record fits the head, which is brought up to date."""
        stated = self._head(key, self._head_bytes())
        if not last:
            return self._start(key), stated == self._start(key)
        parts = _divided(last)
        try:  # what the line itself states, which need not be true
            own = _Place(int(json.loads(parts[0] + b"}")["n"]), parts[1]) if parts else None
        except (ValueError, KeyError, TypeError, RecursionError):
            own = None
        if own is None:
            return _Place(stated.number + 1 if stated else 0, ""), False
        if stated is not None and stated.number == own.number - 1:
            _, after = _checked(key, stated, last)
            if after != own:
                return own, False
            self._keep_head(key, own)
            return own, True
        return own, stated == own

    def _start(self, key: bytes) -> _Place:
        """The place before the first line. It differs for each project, so that no record can replace another one."""
        return _Place(0, _code(key, "start", os.fsencode(self.file.parent.name)))

    def _name(self, key: bytes) -> str:
        """A name for this record among those of all hosts."""
        return _code(key, "name", os.fsencode(self.file.parent.name))[:16]

    def _head_file(self) -> Path:
        return self.file.with_suffix(".head")

    def _head_bytes(self) -> bytes | None:
        try:
            return read_bounded(self._head_file(), 4 * _CODE)
        except FileNotFoundError:
            return None

    def _head(self, key: bytes, data: bytes | None) -> _Place | None:
        """The place that the head states; None if it was not written with the key."""
        if data is None:
            return self._start(key)
        text, _, code = data.decode("ascii", "replace").rstrip("\n").rpartition(" ")
        count, _, last = text.partition(" ")
        if not hmac.compare_digest(code.encode(), _code(key, "head", text.encode()).encode()):
            return None
        return _Place(int(count), last)

    def _keep_head(self, key: bytes, place: _Place) -> None:
        text = f"{place.number:020d} {place.code}"
        self.writer.overwrite(self._head_file(), f"{text} {_code(key, 'head', text.encode())}\n".encode())

    def _key(self) -> bytes:
        """Reads the key. Damaged if it is missing or not a key, or if others than the person may read or change it."""
        try:
            data, seen = read_bounded(self.key, 2 * KEY_BYTES), self.key.lstat()
        except FileNotFoundError as error:
            raise Damaged(f"the key of the record, {str(self.key)!r}, is missing", hint=_NO_KEY) from error
        if len(data) != KEY_BYTES:
            raise Damaged(f"{str(self.key)!r} is not a key of {KEY_BYTES} bytes", hint=_NO_KEY)
        if seen.st_uid != os.geteuid() or stat.S_IMODE(seen.st_mode) & 0o077:
            message = f"others than you may read or change the key of the record, {str(self.key)!r}"
            raise Damaged(message, hint=f"chmod 600 {self.key}, if nobody else could read it before", reason="rights")
        return data

    def _contents(self) -> tuple[list[bytes], bytes | None]:
        """The lines and the head at one moment."""
        if not os.path.lexists(self.file):
            return [], self._head_bytes()
        if self.file.is_symlink() or not self.file.is_file():
            read_bounded(self.file, SIZE_LIMIT)  # raises Refused
        with self._locked(fcntl.LOCK_SH):
            return read_bounded(self.file, SIZE_LIMIT).splitlines(keepends=True), self._head_bytes()

    @contextmanager
    def _locked(self, how: int) -> Iterator[int]:
        """The open record; with LOCK_EX nobody else adds a line meanwhile."""
        try:
            handle = os.open(self.file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            message = f"nothing can be recorded in {str(self.file)!r}: {error.strerror}"
            raise KernelError(message, hint="make it a plain file, or move it away") from error
        try:
            fcntl.flock(handle, how)
            yield handle
        finally:
            os.close(handle)


def _code(key: bytes, before: str, body: bytes) -> str:
    return hmac.digest(key, before.encode() + b"\n" + body, "sha256").hex()


def _divided(line: bytes) -> tuple[bytes, str] | None:
    """The bytes that a line's code covers, and the code; None for a line of another form."""
    body, mark, end = line.rpartition(_MARK)
    if not mark or len(end) != _CODE + 3 or not end.endswith(b'"}\n'):
        return None
    return body, end[:_CODE].decode("ascii", "replace")


def _checked(key: bytes, before: _Place, line: bytes) -> tuple[Entry | None, _Place]:
    """The entry of the line after `before`, and its place; the entry is None if the line is not as it was written."""
    parts = _divided(line)
    if parts is None or not hmac.compare_digest(parts[1].encode(), _code(key, before.code, parts[0]).encode()):
        return None, before
    try:
        facts = json.loads(parts[0] + b"}")
        number, ts, event = facts.pop("n"), str(facts.pop("ts")), str(facts.pop("event"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None, before
    facts.pop("v", None)
    entry = Entry(before.number + 1, ts, event, facts) if number == before.number + 1 else None
    return entry, _Place(before.number + 1, parts[1])


# Writes one entry of the audit log as a line of limited length: long values are cut, identifying ones are kept.

LINE_LIMIT = 64 * 1024  # bytes of one line, with its authentication code
IDENTITY = frozenset({"v", "n", "ts", "event", "run", "actor", "subject", "digest", "origin", "why", "how", "by"})
IDENTITY_LIMIT = 1_000  # characters of one such value
_ROOM = 128  # bytes of the line that the authentication code takes
_STEPS = ((2_000, 100), (500, 20), (50, 5))  # kept characters per value and items per list, tried until the line fits


def written(facts: Mapping[str, Any]) -> bytes:
    """`facts` as one JSON object. If it exceeds the limit, long values are replaced with their beginning, end, length
    and SHA-256; the values of `IDENTITY` keep up to 1,000 characters each."""
    data = _json(facts)
    for characters, items in _STEPS:
        if len(data) <= LINE_LIMIT - _ROOM:
            return data
        data = _json({key: _fitted(key, value, characters, items) for key, value in facts.items()})
    if len(data) <= LINE_LIMIT - _ROOM:
        return data
    identity = {key: _fitted(key, value, 0, 0) for key, value in facts.items() if key in IDENTITY}
    rest = {key: value for key, value in facts.items() if key not in IDENTITY}
    return _json({**identity, "cut": cut_text(_json(rest).decode(), _STEPS[-1][0])})


def _fitted(key: str, value: Any, characters: int, items: int) -> Any:
    if key not in IDENTITY:
        return _short(value, characters, items)
    text = value if isinstance(value, str) else str(value)
    return value if len(text) <= IDENTITY_LIMIT else cut_text(text, IDENTITY_LIMIT)


def _short(value: Any, characters: int, items: int) -> Any:
    if isinstance(value, Mapping):
        if len(value) > items:
            return cut_text(_json(value).decode(), characters)
        return {cut_text(str(key), characters): _short(item, characters, items) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        shortened = [_short(item, characters, items) for item in value[:items]]
        return (
            shortened
            if len(value) <= items
            else [*shortened, {"items": len(value), "sha256": hashlib.sha256(_json(value)).hexdigest()}]
        )
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = str(value)
    return cut_text(text, characters)


def _json(body: Any) -> bytes:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=str)
    return (text if text.isascii() else escaped(text)).encode("utf-8", "backslashreplace")
