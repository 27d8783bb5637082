"""Counts the uses of each skill for the bonus of a search (LIF-16), in the person's state of the project."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import KernelError
from navigator_kernel.text import fold

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer

_SIZE_LIMIT = 4 * 1024 * 1024  # bytes


def use_counts(state: Path) -> Mapping[str, int]:
    """Uses by case-folded name; empty if the file cannot be read, as a bonus must not fail a search."""
    return read_uses(state / "usage.json") or {}


def add_use(state: Path, name: str, writer: Writer) -> int:
    """Counts one more use of `name` and returns how many there are now. A file that cannot be read is left as it is
    (X-38): then nothing is counted, and the result is 0."""
    writer.make_folder(state)
    with file_lock(state / "usage.lock"):
        held = read_uses(state / "usage.json")
        if held is None:
            return 0
        uses = held.get(fold(name), 0) + 1
        counts = dict(sorted({**held, fold(name): uses}.items()))
        text = json.dumps({"v": 1, "uses": counts}, ensure_ascii=False, indent=1)
        writer.write(state / "usage.json", f"{text}\n".encode())
    return uses


def read_uses(path: Path) -> dict[str, int] | None:
    """Reads the file; empty if it does not exist, None if it cannot be read."""
    try:
        uses = json.loads(read_bounded(path, _SIZE_LIMIT))["uses"].items()
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, KernelError):
        return None
    counts: dict[str, int] = {}
    for name, count in uses:
        if type(count) is int and count > 0:
            counts[fold(name)] = counts.get(fold(name), 0) + count
    return counts
