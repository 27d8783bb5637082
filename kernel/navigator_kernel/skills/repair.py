"""Rebuilds the lock and the database of a level from its folders and receipts (X-38)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from navigator_kernel.adapters.database import locked, read_rows
from navigator_kernel.errors import Damaged
from navigator_kernel.ports import Writer
from navigator_kernel.skills.change import Change
from navigator_kernel.skills.lockfile import Entries, lock_bytes, read_lock
from navigator_kernel.skills.place import Place, refuse_escape
from navigator_kernel.skills.receipts import read_receipts
from navigator_kernel.skills.records import records_bytes


def repair(place: Place, writer: Writer) -> Mapping[str, Any]:
    """`{level, skills, rewritten, missing, swept}`: how many skills, which files changed, which folders are gone,
    how many left-overs of broken-off changes were removed. A file that is right stays untouched.

    Damaged where a receipt cannot be read: nothing stands behind it.
    """
    if not place.inner.is_dir():
        return {"level": place.level, "skills": 0, "rewritten": [], "missing": [], "swept": 0}
    refuse_escape(place)
    with locked(place.guard), Change(writer, place.inner) as change:
        receipts = read_receipts(place)
        wanted = {
            place.lock: lock_bytes(_entries(place), receipts.values()),
            place.database: records_bytes(place, receipts, rebuild=_damaged(place)),
        }
        rewritten = [place.told(path) for path, data in wanted.items() if change.write(path, data)]
        change.keep()
        swept = _sweep(place, writer)
    missing = [name for name in receipts if not (place.skills / name).is_dir()]
    told: dict[str, Any] = {"level": place.level, "skills": len(receipts)}
    return {**told, "rewritten": rewritten, "missing": missing, "swept": swept}


def _entries(place: Place) -> Entries:
    """What the lock says of skills that are not installed here, where it can be read."""
    try:
        return read_lock(place.lock)
    except Damaged:
        return {}


def _damaged(place: Place) -> bool:
    try:
        read_rows(place.database)
    except Damaged:
        return True
    return False


def _sweep(place: Place, writer: Writer) -> int:
    left = [path for kind in ("staging-*", "removed-*") for path in place.inner.glob(kind)]
    for path in left:
        writer.remove(path)
    return len(left)
