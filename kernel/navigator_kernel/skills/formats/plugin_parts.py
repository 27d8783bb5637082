"""What a plugin brings beside its skills: MCP servers, which only the person adds, and parts that are not installed.

Servers are in `mcp.json` (Agent Plugins 1.0.0), in `.mcp.json`, or under `mcpServers` in the manifest (Claude Code).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from navigator_kernel.errors import KernelError, UsageProblem
from navigator_kernel.skills.formats.plugin_manifests import COUNT_LIMIT, FILE_LIMIT
from navigator_kernel.text import clean
from navigator_kernel.values.mcp import server_from

FILES = ("mcp.json", ".mcp.json")
# Parts by the key of the manifest, with the folder or file that holds them without one
_OTHERS = {"commands": "commands", "agents": "agents", "hooks": "hooks", "lspServers": ".lsp.json"}
_OWN_FILES = ("./", "../", "${PLUGIN_", "${CLAUDE_PLUGIN_")
COMMAND_LIMIT = 2_000  # characters


class PluginParts(Struct, frozen=True, kw_only=True):
    """`servers` maps each MCP server to the command that adds it, `left_out` each other part to the reason."""

    plugin: str
    servers: dict[str, str]
    left_out: dict[str, str]


def plugin_parts(
    plugin: str, root: str, manifest: Mapping[str, Any], paths: Collection[str], read: Callable[[str], bytes]
) -> PluginParts | None:
    """The parts of the plugin in the folder `root` of a tree with these `paths`, whose files `read` returns; None if it
    has only skills. Never raises because of their contents."""
    above = f"{root}/" if root else ""
    servers: dict[str, str] = {}
    left_out: dict[str, str] = {}
    inline = manifest.get("mcpServers")
    tables = [inline] if isinstance(inline, dict) else []
    if inline is not None and not tables and inline not in [f"./{name}" for name in FILES]:
        left_out["mcpServers"] = f"the servers are read from {' and '.join(FILES)} only"
    for file in FILES:
        if f"{above}{file}" in paths:
            table = None
            with suppress(ValueError, RecursionError, KernelError):
                data = read(f"{above}{file}")
                whole = json.loads(data.decode("utf-8-sig")) if len(data) <= FILE_LIMIT else None
                table = whole.get("mcpServers", whole) if isinstance(whole, dict) else None
            if isinstance(table, dict):
                tables.append(table)
            else:
                left_out[file] = "it cannot be read as a table of servers"
    for name, body in [pair for table in tables for pair in table.items()][:COUNT_LIMIT]:
        shown = clean(str(name), lines=False)[:64]
        try:
            server = server_from(shown, body)
        except UsageProblem as error:
            left_out[shown] = error.message
            continue
        options = [f"--env={key}={value}" for key, value in server.env.items()]
        options += [f"--header={key}={value}" for key, value in server.headers.items()]
        options += [f"--url={server.url}"] if server.url else ["--", server.command, *server.args]
        command = shlex.join(["navigator", "mcp", "add", shown, *options])
        if "cwd" in body or any(mark in command for mark in _OWN_FILES):
            left_out[shown] = "it starts files of the plugin, which are not installed"
        elif clean(command, lines=False) != command or "\n" in command or len(command) > COMMAND_LIMIT:
            left_out[shown] = "its command is too long or holds control characters"
        else:
            servers[shown] = command
    others = (key for key, place in _OTHERS.items() if key in manifest or f"{above}{place}" in paths)
    left_out |= dict.fromkeys(others, "only skills are installed")
    return PluginParts(plugin=plugin, servers=servers, left_out=left_out) if servers or left_out else None
