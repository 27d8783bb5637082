"""How often each skill was used, for the bonus of a search (LIF-16): `mybox/state/usage.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from navigator_kernel.adapters.files import read_bounded
from navigator_kernel.errors import Refused
from navigator_kernel.ports import Writer

_SIZE_LIMIT = 4 * 1024 * 1024  # bytes


def use_counts(state: Path) -> Mapping[str, int]:
    """Uses by name; none where nothing was counted or the file cannot be read: a bonus is no reason to fail."""
    try:
        counts = json.loads(read_bounded(state / "usage.json", _SIZE_LIMIT))["uses"]
        return {str(name): int(count) for name, count in counts.items() if int(count) > 0}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, Refused):
        return {}


def add_use(state: Path, name: str, writer: Writer) -> int:
    """Counts one more use of `name` and returns how many there are now."""
    from navigator_kernel.adapters.database import locked

    writer.make_folder(state)
    with locked(state / "usage.lock"):
        counts = {**use_counts(state)}
        counts[name] = counts.get(name, 0) + 1
        text = json.dumps({"v": 1, "uses": dict(sorted(counts.items()))}, ensure_ascii=False, indent=1)
        writer.write(state / "usage.json", f"{text}\n".encode())
    return counts[name]
