"""An install says which MCP servers the plugin of a skill brings and what else of it is not installed; it adds none."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from skill_repositories import make_repo, skill_text
from tables import table

AGENT = {"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "tools"}
SERVERS = table(__file__, "SERVERS", lists=True)
ADDED = {
    "notes": ["notes", "--env=KEY=${KEY}", "--", "npx", "-y", "notes server"],
    "far": ["far", "--header=X-Team=a b", "--url=https://example.org/mcp"],
}


def plugin_in(tmp_path: Path, **files: Any) -> str:
    texts = {path: text if isinstance(text, str) else json.dumps(text) for path, text in files.items()}
    return f"file://{make_repo(tmp_path, {'skills/fold/SKILL.md': skill_text('fold'), **texts}, name='plugin')}"


@pytest.mark.parametrize(
    "files",
    [
        {"plugin.json": AGENT, "mcp.json": {"mcpServers": SERVERS}},
        {".claude-plugin/plugin.json": {"name": "tools"}, ".mcp.json": SERVERS},
        {".claude-plugin/plugin.json": {"name": "tools", "mcpServers": SERVERS}},
        {".claude-plugin/plugin.json": {"name": "tools", "mcpServers": "./.mcp.json"}, ".mcp.json": SERVERS},
    ],
)
def test_the_servers_of_a_plugin_are_offered_and_not_added(project: Any, tmp_path: Path, files: dict[str, Any]) -> None:
    result = project.run("install", source=plugin_in(tmp_path, **files), skill="fold")
    (plugin,) = result["plugins"]
    assert plugin["plugin"] == "tools"
    assert {name: shlex.split(text)[3:] for name, text in plugin["servers"].items()} == ADDED
    assert {*plugin["left_out"]} == {"own", "root", "old", "bad"}
    assert "files of the plugin" in plugin["left_out"]["own"]
    assert "SSE" in plugin["left_out"]["old"]
    assert not (project.root / ".mcp.json").exists()


@pytest.mark.parametrize("mentioned", ["./config/servers.json", ["./config/servers.json"], [], 7, True])
def test_other_parts_of_a_plugin_are_named_with_the_reason(project: Any, tmp_path: Path, mentioned: object) -> None:
    files = {"commands/go.md": "go", "hooks/hooks.json": "{}", ".mcp.json": "{", "agents/a.md": "a"}
    manifest = {"name": "tools", "lspServers": {}, "mcpServers": mentioned}
    result = project.run("install", source=plugin_in(tmp_path, **{".claude-plugin/plugin.json": manifest}, **files))
    (plugin,) = result["plugins"]
    assert (plugin["servers"], {*plugin["left_out"]}) == (
        {},
        {"commands", "hooks", "agents", "lspServers", "mcpServers", ".mcp.json"},
    )


@pytest.mark.parametrize(
    "servers", [[], {"mcpServers": []}, {"x/y": {"command": "a"}}, {"x": {"command": "a\u001b[2J"}}, "[" * 50_000]
)
def test_odd_servers_never_keep_a_skill_out(project: Any, tmp_path: Path, servers: Any) -> None:
    source = plugin_in(tmp_path, **{"plugin.json": AGENT, "mcp.json": servers})
    result = project.run("install", source=source)
    assert [one["name"] for one in result["skills"]] == ["fold"]
    assert not result["plugins"][0]["servers"]


def test_a_skill_outside_of_plugins_has_none(project: Any, tmp_path: Path) -> None:
    result = project.run("install", source=plugin_in(tmp_path, **{".mcp.json": SERVERS}))
    assert result["plugins"] == []
