"""Makes the person's state folder, and notes when this version first used it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from navigator_kernel.adapters.files.writer import FolderWriter, make_private, read_bounded
from navigator_kernel.errors import Refused

NOTE = "home.json"
_LIMIT = 4096  # bytes
_OWN = frozenset({"projects", NOTE})  # names that an earlier version never wrote


def make_home(folder: Path) -> None:
    """Creates the folder with mode 0700. The note is written before anything else, so that files of this version do not
    make the home look like one of an earlier version, whose projects may bring their state along (X-43)."""
    if not (folder / NOTE).exists():
        used = _was_used(folder)
        make_private(folder)
        body = json.dumps({"v": 2, "upgraded_at": time.time_ns() if used else 0})
        FolderWriter([folder]).create(folder / NOTE, body.encode(), mode=0o600)  # the first process decides
    make_private(folder)


def upgraded_at(folder: Path) -> int:
    """When this version first used a home of an earlier version, in ns; 0 for a home that no earlier version used."""
    make_home(folder)
    try:
        return int(json.loads(read_bounded(folder / NOTE, _LIMIT))["upgraded_at"])
    except (OSError, ValueError, KeyError, TypeError, Refused):
        return 0  # a note that cannot be read allows nothing


def _was_used(folder: Path) -> bool:
    """Whether an earlier version left anything in the home."""
    try:
        return any(name not in _OWN for name in os.listdir(folder))
    except OSError:
        return False
