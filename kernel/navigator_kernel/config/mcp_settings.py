"""Reads the files that list MCP servers: the person's `mcp.json`, the project's `.mcp.json`, those of common hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from navigator_kernel.config.project_root import OWN_SERVERS_FILE, SERVERS_FILE
from navigator_kernel.errors import Damaged, UsageProblem
from navigator_kernel.values.mcp import McpServer, server_from

PROJECT_FILE, OWN_FILE = SERVERS_FILE, OWN_SERVERS_FILE
LIMIT = 4 * 1024 * 1024  # bytes of a servers file


class Found(NamedTuple):
    """Servers by name, and notes on what was left out and why."""

    servers: Mapping[str, McpServer]
    notes: tuple[str, ...]


class HostFile(NamedTuple):
    """The file in which a host stores its servers, below the home folder or, with `project`, below the project."""

    host: str
    path: str
    keys: tuple[str, ...] = ("mcpServers",)
    project: bool = False


HOSTS = (
    HostFile("claude-code", ".claude.json"),
    HostFile("claude-desktop", ".config/Claude/claude_desktop_config.json"),
    HostFile("claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
    HostFile("codex", ".codex/config.toml", ("mcp_servers",)),
    HostFile("gemini", ".gemini/settings.json"),
    HostFile("cursor", ".cursor/mcp.json"),
    HostFile("windsurf", ".codeium/windsurf/mcp_config.json"),
    HostFile("cursor", ".cursor/mcp.json", project=True),
    HostFile("vscode", ".vscode/mcp.json", ("servers",), project=True),
    HostFile("gemini", ".gemini/settings.json", project=True),
)


def found(root: Path, own: Path, settings: Mapping[str, McpServer]) -> Found:
    """All configured servers; the settings take precedence over the person's own file, and that over the project's."""
    theirs = servers_in(root / PROJECT_FILE, "project", lenient=True)
    others = {name: one for name, one in theirs.servers.items() if one.args[-2:] != ("mcp", "serve")}
    theirs = theirs._replace(servers=others)  # without this kernel, which `navigator host install` adds for others
    mine = servers_in(own, "user", lenient=False)
    hidden = theirs.servers.keys() & {*mine.servers, *settings}
    greedy = [name for name, server in theirs.servers.items() if server.network]
    notes = (
        *theirs.notes,
        *mine.notes,
        *(f"{PROJECT_FILE}: {name!r} is hidden by a server of yours" for name in hidden),
        *(f"{PROJECT_FILE}: {name!r} may not reach the network: your own settings grant that" for name in greedy),
    )
    project = {name: server._replace(network=False) for name, server in theirs.servers.items()}
    return Found({**project, **mine.servers, **settings}, tuple(sorted(notes)))


def servers_in(file: Path, origin: str, keys: tuple[str, ...] = ("mcpServers",), *, lenient: bool) -> Found:
    """The servers in `file`. Damaged if it cannot be read, or with `lenient` a note: it may be a stranger's file."""
    try:
        table = table_in(file, keys)
    except (Damaged, UsageProblem) as error:
        if lenient:
            return Found({}, (error.message,))
        raise
    servers: dict[str, McpServer] = {}
    notes: list[str] = []
    for name, body in table.items():
        if isinstance(body, Mapping) and (body.get("disabled") is True or body.get("enabled") is False):
            continue
        try:
            servers[name] = server_from(name, body, origin)
        except UsageProblem as error:
            notes.append(f"{file.name}: {error.message}")
    return Found(servers, tuple(notes))


def table_in(file: Path, keys: tuple[str, ...] = ("mcpServers",)) -> dict[str, Any]:
    """The table at `keys`, empty if there is no file; Damaged if it cannot be read."""
    held: Any = whole(file)
    for key in keys:
        held = held.get(key, {}) if isinstance(held, dict) else held
    if not isinstance(held, dict):
        raise Damaged(f"{str(file)!r} has no table {'.'.join(keys)!r}", hint="correct or remove the file")
    return held


def whole(file: Path) -> dict[str, Any]:
    """The whole document of a JSON or TOML file."""
    try:
        with file.open("rb") as opened:
            body = opened.read(LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Damaged(f"cannot read {str(file)!r}: {error.strerror}", hint="correct or remove the file") from error
    if len(body) > LIMIT:
        raise Damaged(f"{str(file)!r} is over {LIMIT // 1024**2} MiB", hint="correct or remove the file")
    try:
        text = body.decode("utf-8-sig")
        if file.suffix == ".toml":
            import tomllib

            return tomllib.loads(text)
        document = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{str(file)!r} cannot be read: {error}", hint="correct or remove the file") from error
    if not isinstance(document, dict):
        raise Damaged(f"{str(file)!r} holds no table", hint="correct or remove the file")
    return document


def of_hosts(root: Path, home: Path) -> Iterator[tuple[HostFile, Path, Found]]:
    """Yields the hosts that have a file of servers, with the servers in it."""
    for host in HOSTS:
        file = (root if host.project else home) / host.path
        if file.is_file():
            yield host, file, servers_in(file, host.host, host.keys, lenient=True)
