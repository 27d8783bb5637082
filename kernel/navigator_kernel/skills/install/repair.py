"""Rebuilds the lock and the database of a level from its folders and receipts (X-38)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.files.database import file_lock, read_rows
from navigator_kernel.errors import Damaged
from navigator_kernel.skills.catalog.place import InstallScope, prepare, refuse_escape
from navigator_kernel.skills.catalog.receipts import read_receipts
from navigator_kernel.skills.install.change import INTENT, InstallTransaction, settle, sweep
from navigator_kernel.skills.install.links import dangling, link_path
from navigator_kernel.skills.install.lockfile import Entries, lock_bytes, read_lock
from navigator_kernel.skills.install.records import records_bytes

if TYPE_CHECKING:
    from navigator_kernel.skills.install.deps import InstallDeps


def repair(place: InstallScope, deps: InstallDeps, *, dry_run: bool = False) -> Mapping[str, Any]:
    """`{level, target, skills, rewritten, missing, unlinked, swept}`: the number of skills, the rewritten files, the
    missing folders, our links that led to nothing and were removed, and the number of left-overs of interrupted
    changes. A correct file stays untouched.

    Damaged if a receipt cannot be read: there is nothing to rebuild it from.
    """
    told: dict[str, Any] = {"level": place.level, "target": place.target, "skills": 0, "rewritten": []}
    if not place.inner.is_dir() and not dangling(place):
        return {**told, "missing": [], "unlinked": [], "swept": 0}
    refuse_escape(place)
    if dry_run:
        swept = len([*place.inner.glob("change-*"), *place.inner.glob(INTENT)])
        receipts, rewritten, unlinked = read_receipts(place), _rewritten(place), dangling(place)
    else:
        with suppress(Damaged):  # a change that cannot be finished is removed below
            settle(place, deps.writer)
        prepare(place, deps.writer)
        with file_lock(place.guard):
            swept = sweep(place, deps.writer)
            receipts, rewritten, unlinked = read_receipts(place), _rewritten(place), dangling(place)
            with InstallTransaction(place, deps.writer) as change:
                for slot, data in [*rewritten.items(), *((f"link/{name}", None) for name in unlinked)]:
                    change.write(slot, data)
                change.commit()
    paths = {"lock": place.lock, "database": place.database}
    missing = [name for name in receipts if not (place.skills / name).is_dir()]
    told |= {"skills": len(receipts), "rewritten": [place.told(paths[slot]) for slot in rewritten]}
    gone = [place.told(link_path(place, name)) for name in unlinked]
    return {**told, "missing": missing, "unlinked": gone, "swept": swept}


def _rewritten(place: InstallScope) -> dict[str, bytes]:
    """The contents of the lock and the database that must be rewritten."""
    receipts = read_receipts(place)
    wanted = {
        "lock": (place.lock, lock_bytes(_entries(place), receipts.values())),
        "database": (place.database, records_bytes(place, receipts, rebuild=_damaged(place))),
    }
    return {slot: data for slot, (path, data) in wanted.items() if not path.is_file() or path.read_bytes() != data}


def _entries(place: InstallScope) -> Entries:
    """The lock's entries of skills that are not installed here, if the lock can be read."""
    try:
        return read_lock(place.lock)
    except Damaged:
        return {}


def _damaged(place: InstallScope) -> bool:
    try:
        read_rows(place.database)
    except Damaged:
        return True
    return False
