"""Stores how each model uses tools, as found by `navigator model test`, for all projects of the person."""

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
    """How models use tools, by `provider:model`. Damaged if the file cannot be read."""
    try:
        held: dict[str, Tooling] = dict(json.loads(file.read_text(encoding="utf-8"))["tools"])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{str(file)!r} cannot be read: {error}", hint=HINT) from error
    return held


def keep_tooling(file: Path, writer: Writer, name: str, tooling: Tooling) -> None:
    """Stores how the model `name` uses tools, in place of any earlier result."""
    writer.make_folder(file.parent)
    with file_lock(file.with_suffix(".lock")):
        body = {"v": 1, "tools": {**kept_tooling(file), name: tooling}}
        writer.write(file, json.dumps(body, indent=1, sort_keys=True).encode(), mode=0o600)
