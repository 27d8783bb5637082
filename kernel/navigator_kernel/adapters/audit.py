"""The record of what was allowed, refused, run and written: one JSON line each, only ever added to.

Each line holds the SHA-256 of the line before it, so that one that was changed or taken out shows. What is cut off at
the end does not.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from navigator_kernel.adapters.files import read_bounded
from navigator_kernel.errors import Damaged, KernelError
from navigator_kernel.ports import Redact, same

if TYPE_CHECKING:
    from navigator_kernel.ports import Clock, Writer

VERSION = 1
LINE_LIMIT = 64 * 1024  # bytes of one line
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
    """Implements `ports.Audit`. Several processes may write to it."""

    file: Path
    writer: Writer
    clock: Clock
    redact: Redact = same

    def record(self, event: str, /, **facts: Any) -> None:
        """KernelError where it cannot be written: what cannot be recorded does not happen."""
        self.writer.make_folder(self.file.parent)
        if not self.file.exists():
            self.writer.append(self.file, b"")
        with self._held() as last:
            head = {"v": VERSION, "ts": self.clock.now(), "event": event}
            body = {**head, **self.redact(facts), "prev": hashlib.sha256(last).hexdigest()}
            line = json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=str)
            data = line.encode("utf-8", "backslashreplace")
            if len(data) > LINE_LIMIT:
                data = json.dumps({**head, "cut": len(data), "prev": body["prev"]}).encode()
            self.writer.append(self.file, (b"" if last.endswith(b"\n") or not last else b"\n") + data + b"\n")

    def entries(self) -> Sequence[Entry]:
        """All of them, oldest first; Damaged at the first line that is not as it was written."""
        found: list[Entry] = []
        before = b""
        for number, line in enumerate(self._lines(), 1):
            try:
                held = json.loads(line)
                prev, ts, event = held.pop("prev"), held.pop("ts"), held.pop("event")
                whole = prev == hashlib.sha256(before).hexdigest() and line.endswith(b"\n")
            except (ValueError, KeyError, TypeError, AttributeError):
                whole = False
            if not whole:
                message = f"line {number} of {str(self.file)!r}, or what stood before it, is not as it was written"
                raise Damaged(message, hint="nothing after it can be relied on; keep the file", line=number)
            held.pop("v", None)
            found.append(Entry(number, str(ts), str(event), held))
            before = line
        return found

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
