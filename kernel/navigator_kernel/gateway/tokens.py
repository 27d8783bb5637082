"""Tokens of the gateway: stored as digests, each with a role and an expiry."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from navigator_kernel.adapters.files.database import file_lock, read_rows, table_bytes
from navigator_kernel.adapters.files.writer import Stamp, stamp
from navigator_kernel.errors import Damaged, NotFound, UsageProblem
from navigator_kernel.values.http.endpoint import Caller, Role

if TYPE_CHECKING:
    from navigator_kernel.ports import Clock, Writer

PREFIX = "nav"
LIFE = timedelta(days=90)
LONGEST = 366 * 24 * 3600  # seconds until a token expires


class KeptToken(Struct, frozen=True, kw_only=True):
    """`digest` is SHA-256 of the secret, which has 256 random bits."""

    id: str
    digest: str
    role: Role
    label: str
    created: str
    expires: str


class TokenStore(Struct, kw_only=True):
    """One JSON file in the person's state of the project. It is read again when it changes."""

    file: Path
    writer: Writer
    clock: Clock
    _seen: Stamp | None = None
    _held: tuple[KeptToken, ...] = ()

    def create(self, role: Role = "admin", label: str = "", life: timedelta = LIFE) -> tuple[KeptToken, str]:
        """Creates a token; its secret text is returned, not stored. UsageProblem if `life` is too short or long."""
        if not 60 <= life.total_seconds() <= LONGEST:
            raise UsageProblem("a token lives between a minute and a year", hint="--expires 30d")
        name, secret, now = f"t{secrets.token_hex(4)}", secrets.token_urlsafe(32), self.clock.now()
        held = KeptToken(
            id=name,
            digest=_digest(secret),
            role=role,
            label=label[:100],
            created=now,
            expires=(datetime.fromisoformat(now) + life).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        )
        self._change(lambda rows: [*rows, msgspec.to_builtins(held)])
        return held, f"{PREFIX}_{name}_{secret}"

    def listed(self) -> Sequence[KeptToken]:
        """All tokens, oldest first, including expired ones; Damaged if the file cannot be read."""
        seen = stamp(self.file)
        if seen is None or seen != self._seen:
            try:
                self._held = tuple(msgspec.convert(dict(row), KeptToken) for row in read_rows(self.file))
            except msgspec.ValidationError as error:
                hint = "navigator doctor --repair repairs it"
                raise Damaged(f"{str(self.file)!r} does not contain tokens: {error}", hint=hint) from error
            self._seen = seen
        return self._held

    def valid(self) -> frozenset[str]:
        """The ids of the tokens that are neither revoked nor expired."""
        now = self.clock.now()
        return frozenset(token.id for token in self.listed() if now < token.expires)

    def revoke(self, name: str) -> None:
        """Removes a token; NotFound if none has this id."""
        if name not in {held.id for held in self.listed()}:
            raise NotFound(f"no token is called {name!r}", hint="navigator serve --list-tokens")
        self._change(lambda rows: [row for row in rows if row["id"] != name])

    def caller(self, text: str) -> Caller | None:
        """The caller with the token `text`; None if it is wrong or expired. The digest is compared in constant time."""
        parts = text.split("_", 2)
        secret = parts[2] if len(parts) == 3 and parts[0] == PREFIX else ""
        held = next((one for one in self.listed() if one.id == parts[1]), None) if secret else None
        given, wanted = _digest(secret), held.digest if held is not None else _digest("")
        if not hmac.compare_digest(given, wanted) or held is None:
            return None
        return Caller(id=held.id, role=held.role) if held.id in self.valid() else None

    def _change(self, change: Callable[[list[Any]], list[Any]]) -> None:
        self.writer.make_folder(self.file.parent)
        with file_lock(self.file.with_suffix(".lock")):
            rows = change([dict(row) for row in read_rows(self.file)])
            self.writer.write(self.file, table_bytes(self.file, rows), mode=0o600)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
