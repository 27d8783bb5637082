"""The definitions of MCP tools that a person agreed to, kept outside of every project."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.errors import Damaged
from navigator_kernel.values.mcp import OfferedTool

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer

HINT = "remove it, and approve the tools again"


def load_pins(file: Path) -> tuple[OfferedTool, ...]:
    """Returns the tools in order of their names, none without a file; Damaged if it cannot be read."""
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
        return tuple(OfferedTool.from_dict(one["server"], one) for one in held["tools"])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{str(file)!r} cannot be read: {error}", hint=HINT) from error


def save_pins(file: Path, writer: Writer, server: str, tools: Sequence[OfferedTool]) -> None:
    """Saves the tools, in place of the server's tools of the same names."""
    writer.make_folder(file.parent)
    with file_lock(file.with_suffix(".lock")):
        names = {tool.name for tool in tools}
        others = [one for one in load_pins(file) if one.server != server or one.name not in names]
        every = sorted([*others, *tools], key=lambda tool: (tool.server, tool.name))
        body = {"v": 1, "tools": [{"server": tool.server, **tool.to_dict()} for tool in every]}
        writer.write(file, json.dumps(body, ensure_ascii=False, indent=1).encode("utf-8", "replace"), mode=0o600)
