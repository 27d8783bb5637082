"""Writes the entries of a host, and restores its files, byte for byte if nobody changed them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Damaged, Refused
from navigator_kernel.hosts.hosts import Entry, Host
from navigator_kernel.text import lazy_compile

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


BY_HAND = "correct it, or write by hand what --dry-run shows for an empty project"
_INDENT = lazy_compile(r"^[ \t]+(?=\S)", re.MULTILINE)


def set_entry(entry: Entry, data: bytes | None) -> bytes:
    """The file with the entry in it; the same bytes if it is there already. Damaged if the file cannot be parsed,
    Refused if another value is at the entry's place."""
    if entry.form == "toml":
        return _put_toml(entry, data)
    held = _json(entry, data)
    place = _place(entry, held)
    key = entry.keys[-1]
    if entry.names is not None:
        new = absent_names(entry, data)
        if not new:
            return data or b""
        place.setdefault(key, {}).update(dict.fromkeys(new, entry.value))
    elif entry.joins:
        there = place.setdefault(key, [])
        if not isinstance(there, list):
            raise _taken(entry)
        if entry.value in there:
            return data or b""
        there.append(entry.value)
    elif key in place:
        if place[key] != entry.value:
            raise _taken(entry)
        return data or b""
    else:
        place[key] = entry.value
    return _dumped(held, data)


def absent_names(entry: Entry, data: bytes | None) -> list[str]:
    """The names of the entry that have no value yet; Refused if something else than an object is at its place."""
    there = _place(entry, _json(entry, data)).get(entry.keys[-1], {})
    if not isinstance(there, dict):
        raise _taken(entry)
    return [name for name in entry.names or () if name not in there]


def remove_entry(entry: Entry, data: bytes) -> bytes:
    """The file without the entry, and without what this would leave empty; the same bytes if it is not there."""
    if entry.form == "toml":
        return _taken_from_toml(entry, data)
    held = _json(entry, data)
    chain: list[Any] = [held]
    for key in entry.keys[:-1]:
        below = chain[-1].get(key) if isinstance(chain[-1], dict) else None
        if not isinstance(below, dict):
            return data
        chain.append(below)
    place, key = chain[-1], entry.keys[-1]
    if entry.names is not None:
        there = place.get(key)
        ours = [name for name in entry.names if isinstance(there, dict) and there.get(name) == entry.value]
        if not ours:
            return data
        for name in ours:
            del there[name]
    elif entry.joins:
        there = place.get(key)
        if not isinstance(there, list) or entry.value not in there:
            return data
        there.remove(entry.value)
    elif key not in place:
        return data
    else:
        del place[key]
    _prune(chain, entry.keys)
    return _dumped(held, data)


def _prune(chain: Sequence[Any], keys: Sequence[str]) -> None:
    for place, key in zip(reversed(chain), reversed(keys), strict=True):
        if key in place and place[key] in ({}, []):
            del place[key]


def _json(entry: Entry, data: bytes | None) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key stands twice")
        return found

    try:
        held = json.loads(data.decode("utf-8"), object_pairs_hook=once) if data and data.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Damaged(
            f"{str(entry.file)!r} is not plain JSON: {error}", hint="correct it, or write the entry by hand"
        ) from error
    if not isinstance(held, dict):
        raise Damaged(f"{str(entry.file)!r} holds no object", hint="correct it, or write the entry by hand")
    return held


def _place(entry: Entry, held: dict[str, Any]) -> dict[str, Any]:
    for key in entry.keys[:-1]:
        below = held.setdefault(key, {})
        if not isinstance(below, dict):
            raise _taken(entry)
        held = below
    return held


def _dumped(held: dict[str, Any], data: bytes | None) -> bytes:
    """The JSON text, with the indentation of the file before and a final newline only if it had one."""
    before = data.decode("utf-8") if data else "\n"
    found = _INDENT.search(before)
    indent: str | int | None = found.group() if found else (2 if "\n" in before.strip() or not before.strip() else None)
    text = json.dumps(held, indent=indent, ensure_ascii=False)
    return (text + ("\n" if before.endswith("\n") else "")).encode()


def _put_toml(entry: Entry, data: bytes | None) -> bytes:
    import tomlkit

    held = _toml(entry, data)
    place: Any = held
    for key in entry.keys[:-1]:
        if key not in place:
            place[key] = tomlkit.table(is_super_table=True)
        place = place[key]
        if not isinstance(place, dict):
            raise _taken(entry)
    key = entry.keys[-1]
    if key in place:
        if place[key].unwrap() != entry.value:
            raise _taken(entry)
        return data or b""
    place[key] = entry.value
    return tomlkit.dumps(held).encode()


def _taken_from_toml(entry: Entry, data: bytes) -> bytes:
    import tomlkit

    held = _toml(entry, data)
    chain: list[Any] = [held]
    for key in entry.keys[:-1]:
        if key not in chain[-1]:
            return data
        chain.append(chain[-1][key])
    if entry.keys[-1] not in chain[-1]:
        return data
    del chain[-1][entry.keys[-1]]
    for place, key in zip(reversed(chain[:-1]), reversed(entry.keys[:-1]), strict=True):
        if not place[key]:
            del place[key]
    return tomlkit.dumps(held).encode()


def _toml(entry: Entry, data: bytes | None) -> Any:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse((data or b"").decode("utf-8"))
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise Damaged(f"{str(entry.file)!r} is not TOML: {error}", hint=BY_HAND) from error


def _taken(entry: Entry) -> Refused:
    where = ".".join(entry.keys)
    return Refused(
        f"{where} of {str(entry.file)!r} has unexpected contents", hint="remove it, or write the entry by hand"
    )
