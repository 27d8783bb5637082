"""Edits the files that list MCP servers and keeps the entries of others unchanged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.config.mcp_settings import whole

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer

KEY = "mcpServers"


def change(file: Path, writer: Writer, edit: Callable[[dict[str, Any]], None]) -> None:
    """Passes the servers by name to `edit`, which changes them, and writes the file; one process at a time. Damaged if
    the file cannot be read; it then stays unchanged."""
    writer.make_folder(file.parent)
    with file_lock(file.with_name(f".{file.name}.lock")):
        document = whole(file)
        servers = document.setdefault(KEY, {})
        edit(servers)
        writer.write(file, f"{json.dumps(document, ensure_ascii=False, indent=2)}\n".encode(), mode=0o600)
