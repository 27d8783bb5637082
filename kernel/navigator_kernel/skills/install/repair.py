"""Rebuilds the lock and the database of a level from its folders and receipts, and a receipt from the lock (X-38)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from navigator_kernel.adapters.files.database import file_lock, read_rows
from navigator_kernel.digests import blake2b
from navigator_kernel.errors import Damaged
from navigator_kernel.skills.catalog.place import InstallScope, prepare, refuse_escape
from navigator_kernel.skills.catalog.receipts import read_receipts, receipt_bytes
from navigator_kernel.skills.install.change import INTENT, InstallTransaction, held_bytes, settle, slot_path, sweep
from navigator_kernel.skills.install.links import dangling, link_path
from navigator_kernel.skills.install.lockfile import Entries, lock_bytes, read_lock
from navigator_kernel.skills.install.records import records_bytes
from navigator_kernel.skills.install.restore import receipts_in

if TYPE_CHECKING:
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.values.receipt import Receipt


def repair(place: InstallScope, deps: InstallDeps, *, dry_run: bool = False) -> Mapping[str, Any]:
    """`{level, target, skills, rewritten, missing, unreadable, unlinked, swept}`: the number of skills, the rewritten
    files, the missing folders, the skills whose receipt can neither be read nor made again, each with what to do, our
    links that led to nothing and were removed, and the number of left-overs of interrupted changes. A correct file
    stays untouched; a copy of one that cannot be read is kept among the records.
    """
    told: dict[str, Any] = {"level": place.level, "target": place.target, "skills": 0, "rewritten": []}
    if not place.inner.is_dir() and not dangling(place):
        return {**told, "missing": [], "unreadable": {}, "unlinked": [], "swept": 0}
    refuse_escape(place)
    if dry_run:
        swept = len([*place.inner.glob("change-*"), *place.inner.glob(INTENT)])
        receipts, rewritten, unreadable = _rewritten(place, deps)
        unlinked = dangling(place)
    else:
        with suppress(Damaged):  # a change that cannot be finished is removed below
            settle(place, deps.writer)
        prepare(place, deps.writer)
        with file_lock(place.guard):
            swept = sweep(place, deps.writer)
            receipts, rewritten, unreadable = _rewritten(place, deps)
            unlinked = dangling(place)
            _keep_copies(place, deps, rewritten)
            with InstallTransaction(place, deps.writer) as change:
                for slot, data in [*rewritten.items(), *((f"link/{name}", None) for name in unlinked)]:
                    change.write(slot, data)
                change.commit()
    missing = [name for name in receipts if not (place.skills / name).is_dir()]
    told |= {"skills": len(receipts), "rewritten": [place.told(slot_path(place, slot)) for slot in rewritten]}
    gone = [place.told(link_path(place, name)) for name in unlinked]
    return {**told, "missing": missing, "unreadable": unreadable, "unlinked": gone, "swept": swept}


def _rewritten(
    place: InstallScope, deps: InstallDeps
) -> tuple[Mapping[str, Receipt], dict[str, bytes], dict[str, str]]:
    """All receipts, the contents by slot of the files that must be rewritten, and the skills whose receipts stay
    unreadable, with what to do."""
    damaged: list[str] = []
    receipts = dict(read_receipts(place, damaged))
    again, unreadable = _made_again(damaged, place, deps)
    receipts |= again
    wanted = {f"receipt/{name}": receipt_bytes(receipt) for name, receipt in again.items()}
    wanted["lock"] = lock_bytes(_entries(place), receipts.values())
    wanted["database"] = records_bytes(place, receipts, rebuild=_rows(place) is None, damaged=list(unreadable))
    current = {slot: held_bytes(slot_path(place, slot)) for slot in wanted}
    return receipts, {slot: data for slot, data in wanted.items() if current[slot] != data}, unreadable


def _made_again(
    damaged: list[str], place: InstallScope, deps: InstallDeps
) -> tuple[dict[str, Receipt], dict[str, str]]:
    """The receipts of `damaged` as the lock states them, with the time from the database; and what to do about those
    that it does not state."""
    entries, rows = _entries(place), {str(row.get("name")): row for row in _rows(place) or ()}
    again, unreadable = dict[str, Any](), dict[str, str]()
    for name in damaged:
        row = rows.get(name, {})
        try:
            receipt = receipts_in({name: entries[name]}, place, deps)[name]
        except (KeyError, Damaged):
            source = row.get("repo") or "its source"
            unreadable[name] = f"move {place.told(place.skills / name)} away and install it again from {source}"
            continue
        again[name] = replace(receipt, installed_at=str(row.get("synced_at") or receipt.installed_at))
    return again, unreadable


def _keep_copies(place: InstallScope, deps: InstallDeps, rewritten: Mapping[str, bytes]) -> None:
    """Keeps the bytes of unreadable files that are about to be rewritten: a person may still read something in them.
    The same bytes get the same name, however often a repair is broken off."""
    try:
        read_lock(place.lock)
        unread = [slot for slot in rewritten if slot.startswith("receipt/")]
    except Damaged:
        unread = [slot for slot in rewritten if slot != "database"]
    for path in (slot_path(place, slot) for slot in unread):
        data = held_bytes(path) or b""
        deps.writer.write(place.inner / f"{path.name}.damaged-{blake2b(data, digest_size=4).hexdigest()}", data)


def _entries(place: InstallScope) -> Entries:
    """The lock's entries, if the lock can be read."""
    with suppress(Damaged):
        return read_lock(place.lock)
    return {}


def _rows(place: InstallScope) -> Sequence[Mapping[str, Any]] | None:
    """The rows of the database; None if it cannot be read."""
    with suppress(Damaged):
        return read_rows(place.database)
    return None
