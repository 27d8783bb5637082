"""The lock file `skills.lock.json`, for version control (X-38)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Damaged, Refused

if TYPE_CHECKING:
    from navigator_kernel.values.receipt import Receipt

VERSION = 1
_SIZE_LIMIT = 64 * 1024 * 1024  # bytes
_LEFT_OUT = frozenset({"v", "name", "installed_at"})  # times would differ between machines

Entries = Mapping[str, Mapping[str, Any]]


def read_lock(path: Path) -> Entries:
    """The entries by name, empty without a file; Damaged if it cannot be read."""
    try:
        data = json.loads(read_bounded(path, _SIZE_LIMIT))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError, Refused) as error:
        raise _damaged(path, "cannot be read") from error
    entries = data.get("skills") if isinstance(data, dict) else None
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise _damaged(path, "is not a lock of skills")
    if data.get("version") != VERSION:
        raise _damaged(path, f"has the version {data.get('version')!r}, not {VERSION}")
    return entries


def lock_bytes(entries: Entries, receipts: Iterable[Receipt], gone: Sequence[str] = ()) -> bytes:
    """The lock with an entry for each of `receipts`, and the entries of skills that are not installed here, without
    those in `gone`."""
    kept = {name: entry for name, entry in entries.items() if name not in gone}
    kept |= {receipt.name: _entry(receipt) for receipt in receipts}
    whole = {"version": VERSION, "skills": kept}
    return (json.dumps(whole, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()


def _entry(receipt: Receipt) -> dict[str, Any]:
    return {key: value for key, value in receipt.to_dict().items() if key not in _LEFT_OUT}


def _damaged(path: Path, what: str) -> Damaged:
    return Damaged(f"{str(path)!r} {what}", hint="navigator doctor --repair rebuilds it", path=str(path))
