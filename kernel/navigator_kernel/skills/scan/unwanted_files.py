"""Files that a skill has no business to bring: what hosts start by themselves, and programs that nobody can read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from navigator_kernel.text import pattern
from navigator_kernel.values.resource import Diagnostic

_HOSTS = r"\.(?:claude|codex|gemini|cursor|windsurf|vscode|agents|opencode|github/copilot)"
_STARTED = pattern(
    rf"(?:^|/)(?:{_HOSTS}/(?:settings(?:\.local)?\.json|hooks(?:\.json|/.+)|mcp\.json|tasks\.json|config\.toml)"
    r"|hooks/hooks\.json|\.?mcp\.json|\.husky/.+|\.githooks/.+|\.envrc|\.direnvrc|sitecustomize\.py|usercustomize\.py|[^/]+\.pth"
    r"|\.devcontainer/devcontainer\.json|\.devcontainer\.json|claude_desktop_config\.json)$",
    re.IGNORECASE,
)
_WORDS = (b"mcpServers", b"PreToolUse", b"PostToolUse", b"SessionStart", b"UserPromptSubmit")
_INSTRUCTIONS = pattern(
    rf"(?:^|/)(?:{_HOSTS}/(?:commands|agents|rules|memory)/.+|CLAUDE(?:\.local)?\.md|AGENTS\.md|GEMINI\.md|\.cursorrules"
    r"|\.windsurfrules|copilot-instructions\.md)$",
    re.IGNORECASE,
)
_PROGRAM = pattern(
    r"\.(?:pyc|pyo|pyd|so(?:\.\d+)*|dll|dylib|exe|msi|class|jar|pyz|pyzw|egg|whl|xpi|crx|vsix|phar|asar|node|scr|deb|rpm|dmg|pkg|apk)$",
    re.IGNORECASE,
)
_MAGIC = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xfe\xed\xfa\xcf")
_PYTHON = re.compile(rb"..\r\n", re.DOTALL)  # what Python's own bytecode begins with
_SETTINGS = pattern(r"(?:^|/)\.\w+/settings(?:\.local)?\.json$", re.IGNORECASE)
_CONFIGURED = pattern(r"\"(?:hooks|mcpServers|servers|command|tasks)\"\s*:")


def findings(path: str, data: bytes, files: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    if (_STARTED.search(path) and _starts_something(path, data)) or _is_settings(path, data):
        message = "a host may start this by itself: hooks, servers or tasks come with the skill"
        yield Diagnostic(code="shipped-start", level="error", path=path, message=message)
    elif _INSTRUCTIONS.search(path):
        message = "an agent may read these instructions by itself, without choosing the skill"
        yield Diagnostic(code="shipped-instructions", level="warning", path=path, message=message)
    if _PROGRAM.search(path) or data.startswith(_MAGIC) or (_PYTHON.match(data) and b"\x00" in data[:16]):
        source = re.sub(r"(?:__pycache__/)?([^/.]+)(?:\.[\w-]+)?\.py[co]$", r"\1.py", path)
        if source != path and source in files:
            message = "bytecode comes along, which need not be that of its source"
        else:
            message = "a program comes along whose source does not"
        yield Diagnostic(code="unreadable-program", level="error", path=path, message=message)


def _is_settings(path: str, data: bytes) -> bool:
    """Whether it is what a host reads as its own settings, under whatever name it comes."""
    name = path.lower()
    if name.endswith(".toml"):
        return b"[mcp_servers." in data
    if not name.endswith((".json", ".jsonc")) or not any(word in data for word in _WORDS):
        return False
    return _names_command(_json(data))


def _starts_something(path: str, data: bytes) -> bool:
    if path.lower().endswith(".pth"):  # a line of Python, or a model's weights
        return data.lstrip().startswith(b"import")
    if not path.lower().endswith(".json") or _SETTINGS.search(path):
        return data.strip() not in {b"", b"{}"}
    held = _json(data)
    return bool(_CONFIGURED.search(data.decode("utf-8", "replace"))) if held is None else _names_command(held)


def _json(data: bytes) -> object:
    """None for what is no JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _names_command(value: object) -> bool:
    """Whether somewhere in it a command or a server is named."""
    left = [value]
    while left:
        held = left.pop()
        if isinstance(held, dict):
            if any(
                held.get(key)
                for key in ("command", "hooks", "mcpServers", "servers", "tasks", "postCreateCommand", "url")
            ):
                return True
            left += held.values()
        elif isinstance(held, list):
            left += held
    return False
