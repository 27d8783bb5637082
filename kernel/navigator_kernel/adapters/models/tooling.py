"""Stores how each model uses tools, as `navigator model test` found out, for all projects of the person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.errors import Damaged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from navigator_kernel.ports import Writer
    from navigator_kernel.values.chat import Tooling

HINT = "remove it, and say navigator model test again"


def kept_tooling(file: Path) -> Mapping[str, Tooling]:
    """By `provider:model`; Damaged where the file cannot be read."""
    try:
        held: dict[str, Tooling] = dict(json.loads(file.read_text(encoding="utf-8"))["tools"])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{str(file)!r} cannot be read: {error}", hint=HINT) from error
    return held


def keep_tooling(file: Path, writer: Writer, name: str, tooling: Tooling) -> None:
    """In place of what was found of that model before."""
    writer.make_folder(file.parent)
    with file_lock(file.with_suffix(".lock")):
        body = {"v": 1, "tools": {**kept_tooling(file), name: tooling}}
        writer.write(file, json.dumps(body, indent=1, sort_keys=True).encode(), mode=0o600)
