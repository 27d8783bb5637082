"""Adds a value to a settings file or removes it, and leaves the rest of the file unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from navigator_kernel.errors import Damaged, Refused
from navigator_kernel.hosts.hosts import Entry
from navigator_kernel.text import lazy_compile

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
