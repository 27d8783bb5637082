"""MCP servers: the tools of theirs that the person agreed to, and the checks of their texts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.config.settings import Settings, user_state
from navigator_kernel.sandbox.servers import load_pins
from navigator_kernel.tools.outward import mcp_tools

if TYPE_CHECKING:
    from navigator_kernel.ports import Consents, McpServers
    from navigator_kernel.values.chat import GuardedTool
    from navigator_kernel.values.mcp import OfferedTool


def approved_tools(settings: Settings, consents: Consents, client: McpServers) -> tuple[GuardedTool, ...]:
    """The tools of configured servers that the person agreed to, in the form agreed to; a server is asked only when a
    tool is called, and must still offer the same tool."""

    def may(tool: OfferedTool) -> bool:
        return tool.server in settings.servers and consents.trusted(tool.subject)

    async def call(server: str, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return await client.call(server, "call", {"tool": tool, "args": dict(arguments)}, "")

    def outward(server: str) -> bool:
        held = settings.servers.get(server)
        return held is None or held.network or bool(held.url)

    return mcp_tools(load_pins(tool_file()), may, call, outward)


_EVERY = "every text"  # subject of findings that are not about one text


def tool_file() -> Path:
    return user_state() / "mcp-tools.json"


def suspicions(texts: Sequence[str], *, seconds: int = 20) -> Sequence[Sequence[str]]:
    """The findings of the content rules for each text that a model would read, worst first. If the rules fail, or take
    longer than `seconds`, every text has that as a finding."""
    from navigator_kernel.bootstrap.scanning.scanners import Scanners

    files = {f"{at}/SKILL.md": text.encode("utf-8", "replace") for at, text in enumerate(texts)}
    scanners = Scanners(seconds=seconds)
    try:
        found = scanners.contents(files, _EVERY, secrets=False)
    finally:
        scanners.close()
    worst = sorted(found, key=lambda one: ("error", "warning", "note").index(one.level))
    return [[one.message for one in worst if one.path in (_EVERY, path)] for path in files]


def secret_named(name: str) -> str | None:
    """The value from the environment, else from the system's keyring."""
    from navigator_kernel.adapters.models.providers import in_keyring

    return os.environ.get(name) or in_keyring(name) or None
