"""The parts of a tool call that an editor shows: title, kind, locations and input."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acp.schema import ToolCallLocation, ToolCallStatus, ToolKind

from navigator_kernel.text import clean, shorten

TITLE = 120  # characters of a title
TEXT = 2_000  # characters of a text in the input
MOST = 50  # entries of a list or an object in the input
DEPTH = 4  # levels of the input
_KINDS: Mapping[str, ToolKind] = {
    "read": "read",
    "list": "search",
    "glob": "search",
    "grep": "search",
    "write": "edit",
    "edit": "edit",
    "deliver": "edit",
    "run": "execute",
    "fetch": "fetch",
    "worker.shell": "execute",
}
_STATES: Mapping[str, ToolCallStatus] = {"success": "completed", "partial": "completed", "pending": "pending"}
_PATHS = ("file_path", "path")
_TITLED = (
    *_PATHS,
    "url",
    "command",
    "argv",
    "pattern",
    "name",
    "prompt",
    "source",
    "from",
)  # a title shows the first of these that is given


def kind_of(tool: str) -> ToolKind:
    return _KINDS.get(tool, "other")


def status_of(state: str) -> ToolCallStatus:
    return _STATES.get(state, "failed")


def title_of(tool: str, args: Mapping[str, Any]) -> str:
    """The title of a call, for example `read notes.txt`."""
    first = next((args[name] for name in _TITLED if args.get(name)), "")
    words = " ".join(map(str, first)) if isinstance(first, (list, tuple)) else str(first)
    return shorten(clean(f"{tool.removeprefix('worker.')} {words}", lines=False), TITLE)


def locations_of(args: Mapping[str, Any], root: Path) -> list[ToolCallLocation]:
    """The existing project files that the call names; an editor cannot open any others."""
    named = (args[name] for name in _PATHS if isinstance(args.get(name), str))
    paths = (os.path.normpath(root / name) for name in named if "\x00" not in name)
    return [ToolCallLocation(path=path) for path in paths if Path(path).is_relative_to(root) and os.path.lexists(path)]


def shown_input(value: Any, depth: int = DEPTH) -> Any:
    """The arguments, cleaned and shortened."""
    match value:
        case str():
            return clean(value) if len(value) <= TEXT else f"{clean(value[:TEXT])} …"
        case Mapping() if depth:
            items = list(value.items())[:MOST]
            return {clean(str(key)[:TEXT]): shown_input(item, depth - 1) for key, item in items}
        case list() | tuple() if depth:
            return [shown_input(item, depth - 1) for item in value[:MOST]]
        case None | bool() | int() | float():
            return value
    return "…"
