"""Creates the client of MCP servers, with its consents and the folder for large answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from navigator_kernel.adapters.mcp_client.servers import Servers
from navigator_kernel.bootstrap.parts import box_writer, open_sandbox, state_writer
from navigator_kernel.bootstrap.places import box_of, project_state
from navigator_kernel.config.settings import user_state
from navigator_kernel.sandbox.guard import ConsentGate
from navigator_kernel.sandbox.servers import ToolPins, load_pins, request, starter
from navigator_kernel.tools.outward import mcp_tools

if TYPE_CHECKING:
    from navigator_kernel.config.settings import Settings
    from navigator_kernel.ports import Audit, Consents, McpServers
    from navigator_kernel.sandbox.contain import ContainedRunner
    from navigator_kernel.values.chat import GuardedTool
    from navigator_kernel.values.mcp import OfferedTool


def open_servers(
    root: Path,
    settings: Settings,
    gate: ConsentGate,
    contained: ContainedRunner,
    pins: ToolPins,
    workspace: Callable[[str], Path],
) -> Servers:
    """Creates the client without starting a server."""

    def keep(run: str, server: str, body: bytes) -> Path:
        folder = workspace(run)
        taken = sum(1 for _ in folder.glob(f"mcp-{server}-*.json"))
        file = folder / f"mcp-{server}-{taken + 1}.json"
        box_writer(root).write(file, body, mode=0o600)
        return file

    def folder(name: str) -> Path:
        """The folder of a server's own data, outside the project."""
        state = project_state(root)
        path = state.folder / "servers" / name
        state_writer(state).make_folder(path)
        return path

    return Servers(
        servers=settings.servers,
        started=starter(gate.check, contained.argv, secret_named, root),
        workspace=folder,
        approve=pins.require,
        secret=secret_named,
        keep=keep,
    )


class Held(NamedTuple):
    """The MCP client, the callable tools, and the subjects of consent to servers."""

    client: Servers
    pins: ToolPins
    subject: Callable[[str], str]


def servers_of(root: Path, settings: Settings, consents: Consents, audit: Audit, *, unsafe: bool) -> Held:
    """The client alone, without the rest of a kernel."""

    def workspace(run: str) -> Path:
        path = box_of(root) / "workspace" / run
        box_writer(root).make_folder(path)
        return path

    contained, pins = open_sandbox(unsafe=unsafe), open_pins(settings, consents, audit)
    gate = ConsentGate(consents, contained, settings.policy, audit)
    client = open_servers(root, settings, gate, contained, pins, workspace)
    return Held(client, pins, lambda name: request(name, settings.servers[name], "", root).consent)


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


def open_pins(settings: Settings, consents: Consents, audit: Audit) -> ToolPins:
    return ToolPins(consents, settings.policy, audit, suspicions)


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
