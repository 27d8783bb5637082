"""Presets of well-known public MCP servers, each with a short name; starting one needs the usual consent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from navigator_kernel.errors import UsageProblem
from navigator_kernel.values.mcp import McpServer


class Preset(NamedTuple):
    """`wants` names the arguments that the preset needs. uvx and npx fetch a package at its first start, and so need
    the network."""

    server: McpServer
    what: str
    wants: str = ""


def _python(package: str, *words: str) -> McpServer:
    return McpServer(command="uvx", args=(package, *words), network=True)


def _node(package: str, **env: str) -> McpServer:
    return McpServer(command="npx", args=("-y", f"@modelcontextprotocol/server-{package}"), env=env, network=True)


def _address(url: str, **headers: str) -> McpServer:
    return McpServer(url=url, headers=headers)


PRESETS: Mapping[str, Preset] = {
    "context7": Preset(_address("https://mcp.context7.com/mcp"), "documentation of libraries"),
    "deepwiki": Preset(_address("https://mcp.deepwiki.com/mcp"), "questions about public repositories"),
    "everything": Preset(_node("everything"), "the reference server, which has every part of the protocol"),
    "fetch": Preset(_python("mcp-server-fetch"), "web pages as text"),
    "filesystem": Preset(_node("filesystem"), "files in the named folders", "FOLDER…"),
    "git": Preset(_python("mcp-server-git", "--repository"), "one git repository", "FOLDER"),
    "github": Preset(
        _address("https://api.githubcopilot.com/mcp/", Authorization="Bearer ${GITHUB_TOKEN}"),
        "repositories, issues and pull requests; GITHUB_TOKEN has to be set",
    ),
    "memory": Preset(_node("memory", MEMORY_FILE_PATH="${SERVER_FOLDER}/memory.jsonl"), "a graph of facts"),
    "sequential-thinking": Preset(_node("sequential-thinking"), "thoughts in numbered steps"),
    "time": Preset(_python("mcp-server-time"), "the time in other time zones"),
}


def preset(name: str, words: Sequence[str]) -> McpServer:
    """The server, with `words` after its own arguments. UsageProblem for an unknown preset or wrong `words`."""
    held = PRESETS.get(name)
    if held is None:
        raise UsageProblem(f"no preset is called {name!r}", hint=f"one of: {', '.join(PRESETS)}")
    if held.wants and not words:
        raise UsageProblem(f"the preset {name!r} needs {held.wants}", hint=f"navigator mcp add {name} {held.wants}")
    if words and held.server.url:
        raise UsageProblem(f"the preset {name!r} takes no more arguments", hint=f"navigator mcp add {name}")
    return held.server._replace(args=(*held.server.args, *words))
