"""The settings files of each coding agent, and the entries for its MCP servers and hooks."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

NAME = "navigator"
SECONDS = 5  # a host's time limit for the hook, which needs a fiftieth of it


class Entry(Struct, frozen=True, kw_only=True):
    """One value in a settings file: `value` at `keys`, or with `joins` as an additional element of the list there. With
    `names` it is set for each of these keys of the object there that has none, and an existing value is kept."""

    file: Path
    form: Literal["json", "toml"]
    keys: tuple[str, ...]
    value: Any
    joins: bool = False
    names: tuple[str, ...] | None = None


class Host(Struct, frozen=True, kw_only=True):
    """`mine` is true if its files are the person's own, not the project's; `entries` are the values for its files."""

    title: str
    entries: tuple[Entry, ...]
    mine: bool = False


def hosts(root: Path, env: Mapping[str, str] | None = None) -> dict[str, Host]:
    """The coding agents by their names on the command line, for a project at `root`."""
    env = os.environ if env is None else env
    home = Path(env.get("HOME") or Path.home())
    codex = Path(env.get("CODEX_HOME") or home / ".codex")
    server, hook = [*_called(NAME, "cli.main"), "mcp", "serve"], shlex.join(_called(f"{NAME}-hook", "prompt_hook"))
    plain: dict[str, Any] = {"type": "stdio", "command": server[0], "args": server[1:]}
    bare = {key: held for key, held in plain.items() if key != "type"}
    run: dict[str, Any] = {"type": "command", "command": hook}
    claude, gemini = root / ".claude" / "settings.local.json", root / ".gemini" / "settings.json"
    return {
        "claude-code": Host(
            title="Claude Code",
            entries=(
                _at(root / ".mcp.json", "mcpServers", NAME, value=plain),
                _joins(claude, "UserPromptSubmit", {"hooks": [{**run, "timeout": SECONDS}]}),
            ),
        ),
        "codex": Host(
            title="Codex",
            entries=(
                Entry(file=codex / "config.toml", form="toml", keys=("mcp_servers", NAME), value=bare),
                _joins(codex / "hooks.json", "UserPromptSubmit", {"hooks": [{**run, "timeout": SECONDS}]}),
            ),
            mine=True,
        ),
        "gemini": Host(
            title="Gemini CLI",
            entries=(
                _at(gemini, "mcpServers", NAME, value=bare),
                _joins(gemini, "BeforeAgent", {"hooks": [{**run, "name": NAME, "timeout": SECONDS * 1000}]}),
            ),
        ),
        "generic": Host(
            title="the hosts that read .mcp.json", entries=(_at(root / ".mcp.json", "mcpServers", NAME, value=plain),)
        ),
    }


def hiding(host: Host, root: Path, names: Sequence[str]) -> Host:
    """Claude Code, with an entry that keeps the skills `names` out of the list that it shows its model; the person can
    still call them. Source: the setting skillOverrides of Claude Code, since 2.1.129."""
    file = root / ".claude" / "settings.local.json"
    entry = Entry(
        file=file, form="json", keys=("skillOverrides",), value="user-invocable-only", names=tuple(sorted(names))
    )
    return replace(host, entries=(*host.entries, entry))


def _at(file: Path, *keys: str, value: Any) -> Entry:
    return Entry(file=file, form="json", keys=keys, value=value)


def _joins(file: Path, event: str, value: Any) -> Entry:
    return Entry(file=file, form="json", keys=("hooks", event), value=value, joins=True)


def _called(script: str, module: str) -> list[str]:
    """The name of the installed command if that is this one, or else a call of this interpreter. The project is found
    from the folder in which the host starts it."""
    found, ours = shutil.which(script), Path(sys.executable).with_name(script)
    if found and os.path.realpath(found) == os.path.realpath(ours):
        return [script]
    return [sys.executable, "-P", "-m", f"navigator_kernel.{module}"]
