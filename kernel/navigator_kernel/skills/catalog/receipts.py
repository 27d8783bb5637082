"""The receipts of installed skills: one file each, from which all other records derive (X-38)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Damaged, Refused
from navigator_kernel.skills.formats.names import NAME
from navigator_kernel.values.receipt import VERSION, Receipt, receipt_from

if TYPE_CHECKING:
    from navigator_kernel.skills.catalog.place import InstallScope

_SIZE_LIMIT = 4 * 1024 * 1024  # bytes


def read_receipts(place: InstallScope, damaged: list[str] | None = None) -> Mapping[str, Receipt]:
    """All receipts by name. An unreadable one raises Damaged, or its name is added to `damaged`."""
    found: dict[str, Receipt] = {}
    for path in sorted(place.inner.glob("*.json")):
        try:
            if receipt := read_receipt(place, path.stem):
                found[path.stem] = receipt
        except Damaged:
            if damaged is None:
                raise
            damaged.append(path.stem)
    return found


def read_receipt(place: InstallScope, name: str) -> Receipt | None:
    """The receipt of skill `name`, or None; Damaged if it cannot be read."""
    return receipt_in(place.inner, name)


def receipt_in(inner: Path, name: str) -> Receipt | None:
    """The same, given the folder of receipts."""
    if not NAME.fullmatch(name):
        return None
    path = inner / f"{name}.json"
    try:
        raw = json.loads(read_bounded(path, _SIZE_LIMIT))
        receipt = receipt_from(raw)
        if receipt.name != name or receipt.v > VERSION:
            raise ValueError("it belongs to another skill or a newer version")
        [text.encode() for text in (receipt.source, receipt.digest, receipt.commit, receipt.subpath)]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Refused) as error:
        hint = "navigator doctor --repair makes it again, if the lock still knows the skill"
        raise Damaged(f"the receipt {str(path)!r} cannot be read", hint=hint, path=str(path)) from error
    return receipt


def receipt_bytes(receipt: Receipt) -> bytes:
    return (json.dumps(receipt.to_dict(), ensure_ascii=False, indent=1) + "\n").encode()
