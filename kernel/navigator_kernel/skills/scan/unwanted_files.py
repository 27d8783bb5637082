"""Finds files that a skill should not contain: files that hosts start by themselves, and binary programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from navigator_kernel.skills.scan.context import is_aside
from navigator_kernel.skills.scan.finding import Level, finding
from navigator_kernel.skills.scan.models import findings as model_findings
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.resource import Diagnostic

_HOSTS = r"\.(?:claude|codex|gemini|cursor|windsurf|vscode|agents|opencode|github/copilot)"
_STARTED = lazy_compile(
    rf"(?:^|/)(?:{_HOSTS}/(?:settings(?:\.local)?\.json|hooks(?:\.json|/(?s:.+))|mcp\.json|tasks\.json|config\.toml)"
    r"|hooks/hooks\.json|\.?mcp\.json|\.husky/(?s:.+)|\.githooks/(?s:.+)|\.envrc|\.direnvrc|sitecustomize\.py|usercustomize\.py|[^/]+\.pth"
    r"|\.devcontainer/devcontainer\.json|\.devcontainer\.json|claude_desktop_config\.json)$",
    re.IGNORECASE,
)
_WORDS = (b"mcpServers", b"PreToolUse", b"PostToolUse", b"SessionStart", b"UserPromptSubmit")
_INSTRUCTIONS = lazy_compile(
    rf"(?:^|/)(?:{_HOSTS}/(?:commands|agents|rules|memory)/(?s:.+)|CLAUDE(?:\.local)?\.md|AGENTS\.md|GEMINI\.md|\.cursorrules"
    r"|\.windsurfrules|copilot-instructions\.md)$",
)
_PROGRAM = lazy_compile(
    r"\.(?:pyc|pyo|pyd|so(?:\.\d+)*|dll|dylib|exe|msi|class|jar|pyz|pyzw|egg|whl|xpi|crx|vsix|phar|asar|node|scr|deb|rpm|dmg|pkg|apk)$",
    re.IGNORECASE,
)
_MAGIC = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xfe\xed\xfa\xcf")
_PYTHON = lazy_compile(rb"..\r\n", re.DOTALL)  # beginning of Python's own bytecode
_UNCHECKED = 1  # fifth byte of bytecode: Python does not compare it with its source (PEP 552)
# Actions of a start-up command that no honest skill needs: it fetches code, sends something, or allows everything
_ACTS = lazy_compile(
    r"\b(?:curl|wget|iwr|irm|nc)\b|https?://\S{1,400}\.(?:tgz|tar\.gz|zip|sh|py|js)\b|\bfetch\s*\(|urlopen|base64|\beval\b|bypassPermissions|Bash\(\*\)"
    r"|auto_?approve\"?\s*:\s*true|/dev/tcp/|ANTHROPIC_BASE_URL|OPENAI_BASE_URL|\$\{?\w*(?:TOKEN|SECRET|API_KEY)\b",
    re.IGNORECASE,
)
_PACKAGE = lazy_compile(r"(?:^|/)package\.json$")
_STRING = lazy_compile(r'"(?:[^"\\]|\\.)*+"')
_INSTALLED = ("preinstall", "install", "postinstall", "prepare")
_COMMANDS = (
    "initializeCommand", "onCreateCommand", "updateContentCommand", "postCreateCommand", "postStartCommand",
    "postAttachCommand",
)  # fmt: skip
_SETTINGS = lazy_compile(r"(?:^|/)\.\w+/settings(?:\.local)?\.json$", re.IGNORECASE)
_CONFIGURED = lazy_compile(r"\"(?:hooks|mcpServers|servers|command|tasks)\"\s*:")
_BYTECODE = lazy_compile(r"(?:__pycache__/)?(?<![^/.])([^/.]++)(?:\.[\w-]+)?\.py[co]$")


def findings(path: str, data: bytes, files: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    if (_STARTED.search(path) and _starts_something(path, data)) or _is_settings(path, data):
        yield from _started(path, data, files)
    elif _INSTRUCTIONS.search(path):
        message = "an agent may read these instructions by itself, without choosing the skill"
        yield _of_file("shipped-instructions", "note", path, data, message)
    elif _PACKAGE.search(path) and (command := _installing(data)):
        message = "a package runs this while it is installed"
        yield finding("shipped-start", "error", path, message, _line_of(command, data), command)
    if _PROGRAM.search(path) or data.startswith(_MAGIC) or (_PYTHON.match(data) and b"\x00" in data[:16]):
        yield _program(path, data, files)
    else:
        yield from model_findings(path, data)


def _started(path: str, data: bytes, files: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    """A file that a host starts is not harmful by itself; one that fetches, sends or allows everything is."""
    text = data.decode("utf-8", "replace")
    named = [held for name, held in files.items() if name != path and name.rpartition("/")[2] in text and len(name) > 3]
    hit = _ACTS.search(text)
    acts = hit or any(_ACTS.search(held.decode("utf-8", "replace")) for held in named[:8])
    level: Level = "error" if acts and not is_aside(path) else "warning"
    if path.endswith(".pth"):
        level = "error"
    at = hit.start() if hit else 0
    lines = text.split("\n")
    number = text.count("\n", 0, at)
    shown = lines[number] if lines[number].strip() else text.strip()[:80] or "(empty)"
    message = "a host may start this by itself: hooks, servers or tasks come with the skill"
    yield finding("shipped-start", level, path, message, number + 1, shown, judged=data or shown)


def _program(path: str, data: bytes, files: Mapping[str, bytes]) -> Diagnostic:
    source = _BYTECODE.sub(r"\1.py", path)
    if source == path or source not in files:
        return _of_file("unreadable-program", "error", path, data, "a program comes without its source")
    if data[4:5] == bytes([_UNCHECKED]):
        message = "Python takes this compiled file whatever its source says"
        return _of_file("unreadable-program", "error", path, data, message)
    return _of_file("unreadable-program", "warning", path, data, "a compiled file is beside its source")


def _of_file(code: str, level: Level, path: str, data: bytes, message: str) -> Diagnostic:
    """A finding for a whole file, judged by all its bytes; it shows the first line, or the size and first bytes."""
    readable = b"\x00" not in data[:4096] and data.strip()
    text = data.decode("utf-8", "replace").lstrip("\ufeff").strip().split("\n")[0] if readable else ""
    kind = f"{len(data):,} bytes that begin with {data[:8].hex(' ') or 'nothing'}"
    line = data[: len(data) - len(data.lstrip())].count(b"\n") + 1 if readable else None
    return finding(code, level, path, message, line if text else None, text or kind, judged=data or kind)


def _installing(data: bytes) -> str:
    """The package's installation command that fetches, sends or decodes; empty if there is none."""
    held = _json(data)
    scripts = held.get("scripts") if isinstance(held, dict) else None
    commands = [scripts.get(name) for name in _INSTALLED] if isinstance(scripts, dict) else []
    return next((one for one in commands if isinstance(one, str) and _ACTS.search(one)), "")


def _line_of(value: str, data: bytes) -> int:
    """The line of the string `value` in the JSON text `data`, however it is escaped there."""
    text = data.decode(json.detect_encoding(data), "replace")
    at = next((hit.start() for hit in _STRING.finditer(text) if _json(hit[0]) == value), 0)
    return text.count("\n", 0, at) + 1


def _is_settings(path: str, data: bytes) -> bool:
    """Whether the file has the form of a host's own settings, whatever its name."""
    name = path.lower()
    if name.endswith(".toml"):
        return b"[mcp_servers." in data
    if not name.endswith((".json", ".jsonc")) or not any(word in data for word in _WORDS):
        return False
    return _names_command(_json(data))


def _starts_something(path: str, data: bytes) -> bool:
    if path.lower().endswith(".pth"):  # Python code, or the weights of a model
        return data.lstrip().startswith(b"import")
    if not path.lower().endswith(".json") or _SETTINGS.search(path):
        return data.strip() not in {b"", b"{}"}
    held = _json(data)
    return bool(_CONFIGURED.search(data.decode("utf-8", "replace"))) if held is None else _names_command(held)


def _json(data: bytes | str) -> object:
    """The value in `data`; None if it is not JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _names_command(value: object) -> bool:
    """Whether `value` names a command or a server at any depth."""
    left = [value]
    while left:
        held = left.pop()
        if isinstance(held, dict):
            if any(held.get(key) for key in ("command", "hooks", "mcpServers", "servers", "tasks", "url", *_COMMANDS)):
                return True
            left += held.values()
        elif isinstance(held, list):
            left += held
    return False
