"""The settings files of each coding agent, and the entries for its MCP servers and hooks."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.errors import Refused

NAME = "navigator"
OPENCODE = "https://opencode.ai/config.json"
SECONDS = 5  # a host's time limit for the hook, which needs a fiftieth of it


Form = Literal["json", "jsonc", "toml", "yaml"]


class Entry(Struct, frozen=True, kw_only=True):
    """One value in a settings file: `value` at `keys`, or with `joins` as an additional element of the list there. With
    `names` it is set for each of these keys of the object there that has none, and an existing value is kept; with
    both, an element is added for each of these paths. `is_frame`: the file needs it, and it goes with the last entry.
    """

    file: Path
    form: Form
    keys: tuple[str, ...]
    value: Any
    joins: bool = False
    names: tuple[str, ...] | None = None
    is_frame: bool = False

    def elements(self) -> list[Any]:
        """The elements to add to a list: with names, one for each path."""
        return [self.value] if self.names is None else [{"path": name, **self.value} for name in self.names]

    def is_in(self, there: Any) -> bool:
        """Whether `there` is the value, or has all of its members: hosts add members of their own."""
        if isinstance(there, dict) and isinstance(self.value, dict):
            return all(key in there and there[key] == self.value[key] for key in self.value)
        return bool(there == self.value)

    def refusal(self) -> Refused:
        """The error for something else at the entry's place."""
        where = ".".join(self.keys)
        return Refused(
            f"{where} of {str(self.file)!r} has unexpected contents", hint="remove it, or write the entry by hand"
        )


class Host(Struct, frozen=True, kw_only=True):
    """`mine` is true if its files are the person's own, not the project's; `entries` are the values for its files. The
    host is on this machine if one of `programs` exists or one of `folders` has files. `skills` are the folders of
    skills that it lists itself, if a setting of it hides some of them."""

    title: str
    entries: tuple[Entry, ...]
    mine: bool = False
    programs: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    skills: tuple[Path, ...] = ()

    def is_here(self, created: Collection[Path] = ()) -> bool:
        """Whether the host is on this machine; the files that an install `created` do not show that."""
        files = (file for place in self.folders for file in ([place] if place.is_file() else place.glob("*")))
        return any(map(shutil.which, self.programs)) or any(
            Path(os.path.realpath(file)) not in created for file in files
        )


def hosts(root: Path, env: Mapping[str, str] | None = None) -> dict[str, Host]:
    """The coding agents by their names on the command line, for a project at `root`.

    Each one's place and shape are from its own documentation: code.visualstudio.com/docs/agents/reference,
    docs.github.com (copilot-cli-reference, hooks-reference), opencode.ai/docs/mcp-servers and the types of
    @opencode-ai/sdk, the guide config-files of goose, ampcode.com/docs/cli/settings, the pages in the npm package of
    Qwen Code, moonshotai.github.io/kimi-code, docs.windsurf.com, cursor.com/docs (mcp, hooks). A prompt hook is set
    where the host gives its output to the model: Copilot, VS Code, goose and Windsurf drop it (their pages on hooks,
    2026), opencode and Amp have plugins in JavaScript only. After a compaction, SessionStart says the same again, word
    for word; PreCompact has no hook, because its output only passes through the summary, and its failure can stop it.
    """
    env = os.environ if env is None else env
    home = Path(env.get("HOME") or Path.home())

    def own(name: str, usual: str) -> Path:
        """The person's folder of a host, which the environment may name."""
        return Path(env.get(name) or home / usual)

    codex, qwen, kimi = own("CODEX_HOME", ".codex"), own("QWEN_HOME", ".qwen"), own("KIMI_CODE_HOME", ".kimi-code")
    copilot, claude_home, settings = (
        own("COPILOT_HOME", ".copilot"),
        own("CLAUDE_CONFIG_DIR", ".claude"),
        own("XDG_CONFIG_HOME", ".config"),
    )
    goose = Path(env["GOOSE_PATH_ROOT"], "config") if env.get("GOOSE_PATH_ROOT") else settings / "goose"
    opencode = _existing(root / "opencode.json", root / "opencode.jsonc")
    amp = _existing(root / ".amp" / "settings.json", root / ".amp" / "settings.jsonc")
    server, hook = (
        [*_called(NAME, "cli.main"), "mcp", "serve"],
        shlex.join(_called(f"{NAME}-hook", "daemon.prompt_hook")),
    )
    bare: dict[str, Any] = {"command": server[0], "args": server[1:]}
    plain: dict[str, Any] = {"type": "stdio", **bare}
    extension = {
        "type": "stdio",
        "name": NAME,
        "description": "Finds and loads the installed skill that fits",
        "cmd": server[0],
        "args": server[1:],
        "enabled": True,
        "timeout": 300,
    }
    run: dict[str, Any] = {"type": "command", "command": hook}
    in_seconds = {"hooks": [{**run, "timeout": SECONDS}]}
    in_milliseconds = {"hooks": [{**run, "name": NAME, "timeout": SECONDS * 1000}]}
    compacted = {"matcher": "compact", **in_milliseconds}
    event = {"event": "UserPromptSubmit", "command": hook, "timeout": SECONDS}
    return {
        "claude-code": Host(
            title="Claude Code",
            entries=(
                _at(root / ".mcp.json", "mcpServers", NAME, value=plain),
                _joins(root / ".claude" / "settings.local.json", "UserPromptSubmit", in_seconds),
                _joins(root / ".claude" / "settings.local.json", "SessionStart", {"matcher": "compact", **in_seconds}),
            ),
            programs=("claude",),
            folders=(claude_home,),
            skills=(root / ".claude" / "skills",),
        ),
        "codex": Host(
            title="Codex",
            entries=(
                _at(codex / "config.toml", "mcp_servers", NAME, value=bare, form="toml"),
                _joins(codex / "hooks.json", "UserPromptSubmit", in_seconds),
                _joins(codex / "hooks.json", "SessionStart", {"matcher": "compact", **in_seconds}),
            ),
            mine=True,
            programs=("codex",),
            folders=(codex,),
            skills=(root / ".agents" / "skills", home / ".agents" / "skills", codex / "skills"),
        ),
        "gemini": Host(
            title="Gemini CLI",
            entries=_as_gemini(root / ".gemini" / "settings.json", "BeforeAgent", bare, in_milliseconds),
            programs=("gemini",),
            folders=(home / ".gemini",),
        ),
        "cursor": Host(
            title="Cursor",
            entries=(
                _at(root / ".cursor" / "mcp.json", "mcpServers", NAME, value=bare, form="jsonc"),
                _joins(root / ".cursor" / "hooks.json", "beforeSubmitPrompt", {"command": hook, "timeout": SECONDS}),
                Entry(file=root / ".cursor" / "hooks.json", form="json", keys=("version",), value=1, is_frame=True),
            ),
            programs=("cursor", "cursor-agent"),
            folders=(home / ".cursor",),
        ),
        "vscode": Host(
            title="Copilot in VS Code",
            entries=(_at(root / ".vscode" / "mcp.json", "servers", NAME, value=plain, form="jsonc"),),
            programs=("code", "code-insiders", "codium"),
            folders=(home / ".vscode", settings / "Code"),
        ),
        "copilot": Host(
            title="Copilot CLI",
            entries=(
                _at(copilot / "mcp-config.json", "mcpServers", NAME, value={"type": "local", **bare, "tools": ["*"]}),
            ),
            mine=True,
            programs=("copilot",),
            folders=(copilot,),
        ),
        "opencode": Host(
            title="opencode",
            entries=(
                _at(opencode, "mcp", NAME, value={"type": "local", "command": server, "enabled": True}, form="jsonc"),
                # Which it writes itself where it is missing; the file would no longer be as the install left it
                Entry(file=opencode, form="jsonc", keys=(), value=OPENCODE, names=("$schema",)),
            ),
            programs=("opencode",),
            folders=(settings / "opencode",),
        ),
        "goose": Host(
            title="goose",
            entries=(_at(goose / "config.yaml", "extensions", NAME, value=extension, form="yaml"),),
            mine=True,
            programs=("goose",),
            folders=(goose,),
        ),
        "amp": Host(
            title="Amp",
            entries=(_at(amp, "amp.mcpServers", NAME, value=bare, form="jsonc"),),
            programs=("amp",),
            folders=(settings / "amp",),
        ),
        "qwen": Host(
            title="Qwen Code",
            entries=(
                *_as_gemini(root / ".qwen" / "settings.json", "UserPromptSubmit", bare, in_milliseconds),
                _joins(root / ".qwen" / "settings.json", "SessionStart", compacted, form="jsonc"),
            ),
            programs=("qwen",),
            folders=(qwen,),
        ),
        "kimi": Host(
            title="Kimi Code",
            entries=(
                _at(kimi / "mcp.json", "mcpServers", NAME, value=bare),
                Entry(file=kimi / "config.toml", form="toml", keys=("hooks",), value=event, joins=True),
            ),
            mine=True,
            programs=("kimi",),
            folders=(kimi,),
        ),
        "windsurf": Host(
            title="Windsurf",
            entries=(_at(home / ".codeium" / "windsurf" / "mcp_config.json", "mcpServers", NAME, value=bare),),
            mine=True,
            programs=("windsurf",),
            folders=(home / ".codeium" / "windsurf",),
        ),
        "generic": Host(
            title="any host that reads .mcp.json",
            entries=(_at(root / ".mcp.json", "mcpServers", NAME, value=plain),),
            folders=(root / ".mcp.json",),
        ),
    }


def hiding(host: Host, skills: Sequence[Path]) -> Host:
    """The host, with an entry that keeps the `skills` (folders) out of the list that it shows its model. Sources: the
    setting skillOverrides of Claude Code, since 2.1.129, by which the person can still call them; `[[skills.config]]`
    of Codex (codex-rs/config/src/skills_config.rs), which switches them off there."""
    server, hook, *_ = host.entries
    if server.form == "toml":
        names = sorted({os.path.realpath(folder / "SKILL.md") for folder in skills})
        entry = _at(server.file, "skills", "config", value={"enabled": False}, form="toml")
        entry = replace(entry, joins=True, names=tuple(names))
    else:
        names = sorted(folder.name for folder in skills)
        entry = replace(_at(hook.file, "skillOverrides", value="user-invocable-only"), names=tuple(names))
    return replace(host, entries=(*host.entries, entry))


def _as_gemini(file: Path, event: str, server: Any, hook: Any) -> tuple[Entry, ...]:
    """The entries of Gemini CLI and of Qwen Code, which began as a copy of it; both allow comments."""
    return _at(file, "mcpServers", NAME, value=server, form="jsonc"), _joins(file, event, hook, form="jsonc")


def _existing(file: Path, other: Path) -> Path:
    return other if other.exists() and not file.exists() else file


def _at(file: Path, *keys: str, value: Any, form: Form = "json") -> Entry:
    return Entry(file=file, form=form, keys=keys, value=value)


def _joins(file: Path, event: str, value: Any, form: Form = "json") -> Entry:
    return Entry(file=file, form=form, keys=("hooks", event), value=value, joins=True)


def _called(script: str, module: str) -> list[str]:
    """The name of the installed command if that is this one, or else a call of this interpreter. The project is found
    from the folder in which the host starts it."""
    found, ours = shutil.which(script), Path(sys.executable).with_name(script)
    if found and os.path.realpath(found) == os.path.realpath(ours):
        return [script]
    return [sys.executable, "-P", "-m", f"navigator_kernel.{module}"]
