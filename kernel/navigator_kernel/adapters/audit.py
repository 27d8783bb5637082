"""The record of what was allowed, refused, run and written: one JSON line each, only ever added to.

Each line ends in an HMAC-SHA256 (RFC 2104) over itself and the HMAC of the line before it. Whoever can write to the
record and cannot read the key can neither change a line nor take one out unseen. Lines cut off at the end do not show.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from navigator_kernel.adapters.files import read_bounded
from navigator_kernel.errors import Damaged, KernelError
from navigator_kernel.ports import Redact, same

if TYPE_CHECKING:
    from navigator_kernel.ports import Clock, Writer

VERSION = 2
LINE_LIMIT = 64 * 1024  # bytes of one line
KEY_SIZE = 32  # bytes
VALUE_LIMIT, LIST_LIMIT = 2_000, 20  # characters of a value and items of a list, where the whole does not fit
TAIL = 500  # of these characters, those from the end
_MAC = b',"mac":"'
_FIRST = b""  # what stands for the HMAC of the line before the first
SIZE_LIMIT = 1024**3  # bytes of the whole record


class Entry(NamedTuple):
    """One line: its number from 1, when, what kind of thing, and its facts."""

    line: int
    ts: str
    event: str
    facts: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"line": self.line, "ts": self.ts, "event": self.event, **self.facts}


class AuditLog(Struct, frozen=True):
    """Implements `ports.Audit`. Several processes may write to it. `key` is a file of its own, made on first use with
    mode 0600; it lies in the person's state folder, which no sandbox shows."""

    file: Path
    key: Path
    writer: Writer
    clock: Clock
    redact: Redact = same

    def record(self, event: str, /, **facts: Any) -> None:
        """KernelError where it cannot be written: what cannot be recorded does not happen."""
        self.writer.make_folder(self.file.parent)
        if not self.file.exists():
            self.writer.append(self.file, b"")
        with self._held() as last:
            body = {"v": VERSION, "ts": self.clock.now(), "event": event, **self.redact(facts)}
            data = _encoded(body)
            if len(data) > LINE_LIMIT:
                data = _encoded(_shortened(body))
            whole = b"" if last.endswith(b"\n") or not last else b"\n"
            line = _signed(data, _mac_of(last), self._secret())
            self.writer.append(self.file, whole + line)

    def entries(self) -> Sequence[Entry]:
        """All of them, oldest first; Damaged at the first line that is not as it was written."""
        found: list[Entry] = []
        lines = self._lines()
        try:
            secret, before = self._key() if lines else b"", _FIRST
        except FileNotFoundError as error:
            message = f"nothing proves {str(self.file)!r}: its key {self.key.name!r} is missing"
            raise Damaged(message, hint="keep the file, and move it away", line=1) from error
        for number, line in enumerate(lines, 1):
            data, _, _mac = line.rpartition(_MAC)
            if not data or not hmac.compare_digest(line, _signed(data + b"}", before, secret)):
                message = f"line {number} of {str(self.file)!r}, or what stood before it, is not as it was written"
                raise Damaged(message, hint="nothing after it can be relied on; keep the file", line=number)
            held = json.loads(data + b"}")
            held.pop("v", None)
            found.append(Entry(number, str(held.pop("ts")), str(held.pop("event")), held))
            before = _mac_of(line)
        return found

    def _secret(self) -> bytes:
        """The key, made where there is none; only for who holds the record."""
        try:
            return self._key()
        except FileNotFoundError:
            self.writer.write(self.key, os.urandom(KEY_SIZE), mode=0o600)
            return self._key()

    def _key(self) -> bytes:
        """FileNotFoundError, or Damaged where it is not the key that this wrote."""
        key = read_bounded(self.key, KEY_SIZE)
        if len(key) != KEY_SIZE:
            raise Damaged(f"{str(self.key)!r} is not a key", hint="keep it and the record, and move both away")
        return key

    def _lines(self) -> list[bytes]:
        try:
            return read_bounded(self.file, SIZE_LIMIT).splitlines(keepends=True)
        except FileNotFoundError:
            return []

    @contextmanager
    def _held(self) -> Iterator[bytes]:
        """The last line; nobody else adds one meanwhile."""
        try:
            handle = os.open(self.file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            message = f"nothing can be recorded in {str(self.file)!r}: {error.strerror}"
            raise KernelError(message, hint="make it a plain file, or move it away") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            size = os.fstat(handle).st_size
            tail = os.pread(handle, min(size, 2 * LINE_LIMIT), max(size - 2 * LINE_LIMIT, 0))
            yield tail[tail.rfind(b"\n", 0, len(tail) - 1) + 1 :]
        finally:
            os.close(handle)


def _encoded(body: Mapping[str, Any]) -> bytes:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "backslashreplace")


def _signed(data: bytes, before: bytes, secret: bytes) -> bytes:
    """The line of the object `data`, which begins with `{` and ends with `}`."""
    mac = hmac.new(secret, before + data, hashlib.sha256).hexdigest()
    return data[:-1] + _MAC + mac.encode() + b'"}\n'


def _mac_of(line: bytes) -> bytes:
    """The HMAC that ends a line; for half a line, which a killed process left, nothing."""
    mac = line.rpartition(_MAC)[2]
    return mac[:-3] if mac.endswith(b'"}\n') else _FIRST


def _shortened(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same facts, each long one as its beginning, its end, its length and its digest: what ran stays named."""
    return {name: _short(value) for name, value in body.items()}


def _short(value: Any) -> Any:
    if isinstance(value, str):
        if len(value) <= VALUE_LIMIT:
            return value
        digest = hashlib.sha256(value.encode("utf-8", "backslashreplace")).hexdigest()
        shown = f"{value[: VALUE_LIMIT - TAIL]} … {value[-TAIL:]}"
        return f"{shown} ({len(value)} characters, sha256:{digest})"
    if isinstance(value, Mapping):
        return {str(name): _short(one) for name, one in list(value.items())[:LIST_LIMIT]}
    if isinstance(value, list | tuple):
        left = len(value) - LIST_LIMIT
        kept = [_short(one) for one in value[:LIST_LIMIT]]
        return [*kept, f"… and {left} more"] if left > 0 else kept
    return value
