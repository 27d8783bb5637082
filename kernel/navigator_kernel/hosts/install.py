"""Writes the entries of a host, and restores its files, byte for byte if nobody changed them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Refused
from navigator_kernel.hosts.edit import absent_names, remove_entry, set_entry
from navigator_kernel.hosts.hosts import Entry, Host

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer

LONGEST = 16 * 1024 * 1024  # bytes of a settings file


class Change(NamedTuple):
    """A file with its current and its new content; None if it does not exist. `names` are the keys that are new in an
    entry with names."""

    file: Path
    before: bytes | None
    after: bytes | None
    names: tuple[str, ...] = ()


class Installer(Struct, frozen=True, kw_only=True):
    """`kept` is the person's folder with notes of how each file was before."""

    root: Path
    kept: Path
    writer: Writer

    def install(self, host: Host) -> list[Change]:
        """The changes that an install would make; writes nothing."""
        found: dict[Path, Change] = {}
        for entry in host.entries:
            file = self._file(entry.file, host)
            held = found.get(file) or Change(file, _read(file), _read(file))
            new = () if entry.names is None else (*held.names, *absent_names(entry, held.after))
            found[file] = held._replace(after=set_entry(entry, held.after), names=new or held.names)
        return [change for change in found.values() if change.after != change.before]

    def uninstall(self, host: Host) -> list[Change]:
        """The changes that an uninstall would make: the earlier content if nobody changed the file since, else the
        content without the entries."""
        found: dict[Path, Change] = {}
        for entry in host.entries:
            file = self._file(entry.file, host)
            if file in found:
                held = found[file]
            else:
                now = _read(file)
                held = Change(file, now, now)
            if held.after is not None:
                found[file] = held._replace(after=remove_entry(self._ours(entry, file), held.after))
        return [
            change._replace(after=self._as_it_was(change, host))
            for change in found.values()
            if change.after != change.before
        ]

    def write(self, changes: Sequence[Change], *, back: bool = False) -> None:
        """Writes the changes. A note of how each file was is written first; on the way `back` it is removed last."""
        for change in () if back else changes:
            self._remember(change)
        for change in changes:
            if change.after is None:
                self.writer.remove(change.file)
            else:
                self.writer.write(change.file, change.after, mode=_mode(change.file))
        for change in changes if back else ():
            self.writer.remove(self._note(change.file))

    def _as_it_was(self, change: Change, host: Host) -> bytes | None:
        """The content before the first install if only we changed the file since; it may have entries of an install
        that the person's own changes followed."""
        note = self._noted(change.file)
        if note.get("after") != _digest(change.before):
            return change.after
        before = note.get("before")
        data = base64.b64decode(before) if isinstance(before, str) else None
        for entry in host.entries if data is not None else ():
            if self._file(entry.file, host) == change.file:
                data = remove_entry(self._ours(entry, change.file), data or b"")
        return data

    def _ours(self, entry: Entry, file: Path) -> Entry:
        """The entry with the names that installs have set; without a note of these, with its own."""
        noted = self._noted(file).get("names")
        return replace(entry, names=tuple(noted)) if entry.names is not None and isinstance(noted, list) else entry

    def _remember(self, change: Change) -> None:
        known = self._noted(change.file)
        if known.get("after") == _digest(change.before):  # two hosts share a file: keep its state before the first one
            before = known.get("before")
        else:
            before = None if change.before is None else base64.b64encode(change.before).decode()
        names = known.get("names")
        names = [*(names if isinstance(names, list) else ()), *change.names]
        body = {"file": str(change.file), "before": before, "after": _digest(change.after), "names": names}
        self.writer.make_folder(self.kept)
        self.writer.write(self._note(change.file), json.dumps(body).encode(), mode=0o600)

    def _noted(self, file: Path) -> Mapping[str, object]:
        try:
            held = json.loads(self._note(file).read_bytes())
        except (OSError, ValueError):
            return {}
        return held if isinstance(held, dict) else {}

    def _note(self, file: Path) -> Path:
        return self.kept / f"{hashlib.sha256(os.fsencode(file)).hexdigest()[:24]}.json"

    def _file(self, file: Path, host: Host) -> Path:
        """The real path of the file; Refused for a project file that a link leads out of the project."""
        real = Path(os.path.realpath(file))
        if not host.mine and not real.is_relative_to(os.path.realpath(self.root)):
            raise Refused(f"{str(file)!r} leads out of the project", hint="make it a plain file")
        return real


def _read(file: Path) -> bytes | None:
    try:
        return read_bounded(file, LONGEST)
    except FileNotFoundError:
        return None


def _digest(data: bytes | None) -> str:
    return hashlib.sha256(data).hexdigest() if data is not None else ""


def _mode(file: Path) -> int:
    """The current mode of the file: a settings file may be private to its owner."""
    try:
        return file.stat().st_mode & 0o777
    except OSError:
        return 0o644
