"""Stores which skills a person disabled, in their state of the project; the skills' files never change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Damaged, Refused

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer


_SIZE_LIMIT = 4 * 1024 * 1024  # bytes


def disabled_names(state: Path) -> frozenset[str]:
    """The disabled names; Damaged if the file cannot be read."""
    path = switches_path(state)
    try:
        names = json.loads(read_bounded(path, _SIZE_LIMIT))["disabled"]
        return frozenset(str(name) for name in names)
    except FileNotFoundError:
        return frozenset()
    except (ValueError, KeyError, TypeError, Refused) as error:
        hint = "fix or remove the file; without it every skill is on"
        raise Damaged(f"{str(path)!r} cannot be read", hint=hint, path=str(path)) from error


def set_enabled(state: Path, name: str, writer: Writer, *, on: bool) -> bool:
    """Enables or disables a skill, and returns whether that was a change."""
    writer.make_folder(state)
    with file_lock(state / "disabled.lock"):
        before = disabled_names(state)
        after = before - {name} if on else before | {name}
        if before == after:
            return False
        text = json.dumps({"v": 1, "disabled": sorted(after)}, ensure_ascii=False, indent=1)
        writer.write(switches_path(state), f"{text}\n".encode())
    return True


def switches_path(state: Path) -> Path:
    return state / "disabled.json"
