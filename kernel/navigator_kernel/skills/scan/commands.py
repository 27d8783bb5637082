"""Checks the command of a skill for parts that cannot work or reach beyond the skill's folder."""

from __future__ import annotations

import posixpath
import shlex
import shutil
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from navigator_kernel.skills.formats.template import OWN_PYTHON
from navigator_kernel.skills.scan.finding import finding
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.receipt import NOT_SCANNED
from navigator_kernel.values.resource import Diagnostic

if TYPE_CHECKING:
    from navigator_kernel.values.resource import SkillDef

LONG = 4_000  # characters; a longer command is not scanned
_SHELL = lazy_compile(r"[|;&<>`]|\$\(|\$\{?\w|&&")
_RUNNERS = lazy_compile(r"^(?:python[\d.]*|node|deno|bun|ruby|perl|php|(?:ba|z|da|k)?sh|pwsh|powershell|Rscript|lua)$")
_INLINE = frozenset({"-c", "-e", "--eval", "-Command", "-enc", "-EncodedCommand"})
_FILLED = lazy_compile(r"'[^']*'|\"[^\"]*\"|\{\{?\w+\}?\}|<[\w-]+>|\$\{?(?:[A-Z_]+|\d|[@*])\}?")
_GLOBAL = lazy_compile(
    r"\bpip[\d.]*\s+install\b(?!.{0,400}(?:--target|-t\s))|\bnpm\s+(?:i|install)\s++(?:\S{1,200}+\s++){0,40}?(?:-g|--global)\b|\bgem\s+install\b|\bcargo\s+install\b"
    r"|\b(?:apt(?:-get)?|brew|dnf|yum|apk|pacman)\s+(?:-\S{1,200}+\s++){0,40}?(?:install|add|-S)\b"
)
_SCRIPT = lazy_compile(r"\.(?:py|sh|bash|js|mjs|cjs|ts|rb|pl|php|ps1|lua|R)$")
_OWN_FOLDER = lazy_compile(r"^\$\{?(?:SKILL_ROOT|SKILL_DIR|CLAUDE_SKILL_DIR|CLAUDE_PLUGIN_ROOT)\}?/")
_SLASH_COMMAND = lazy_compile(r"^/[\w-]+:[\w-]+$")  # a command of another agent's plugin, not a program
_PLACE_HOLDER = lazy_compile(r"^[{<$].*[}>]?$")


def findings(skill: SkillDef, files: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    """One finding for each fault of the command; none for a skill without a command."""
    command = skill.command.strip()
    if not command or _SLASH_COMMAND.match(command):
        return
    path = skill.path.name
    data = files.get(path, b"")
    line = data.count(b"\n", 0, max(data.find(command.split("\n")[0].encode()), 0)) + 1
    if len(command) > LONG:
        message = f"not all of it was scanned: the command has over {LONG} characters"
        yield finding(NOT_SCANNED, "warning", path, message, line, command, judged=command)
        return
    for code, message in _faults(command, files):
        yield finding(code, "warning", path, message, line, command, judged=command)


def _faults(command: str, files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    try:
        words = [_OWN_FOLDER.sub("", word) for word in shlex.split(command)]
    except ValueError:
        yield "command-quotes", "a quotation mark in the command has no second one"
        return
    if not words:
        return
    if _GLOBAL.search(command):
        yield "command-installs", "the command installs packages for the whole machine"
    if _SHELL.search(_FILLED.sub("", command)):  # without quoted text, which is meant literally, and placeholders
        yield (
            "command-shell",
            "no shell reads the command, so that these characters are given to the program as they are",
        )
    program, rest = words[0], words[1:]
    if program.startswith("-"):
        yield "command-option", "an option stands where the program should stand"
        return
    has_script = _RUNNERS.match(posixpath.basename(program))
    script = next((word for word in rest if not word.startswith("-")), "")
    if program.startswith("/") or (has_script and script.startswith("/")):
        yield "command-absolute", "the command names a place of one machine"
    elif "/" in program or _SCRIPT.search(program):
        if posixpath.normpath(program) not in files:
            yield "command-missing", "the skill has no such file"
    elif program not in OWN_PYTHON and shutil.which(program) is None:
        yield "command-missing", "this machine has no such program"
    if has_script and rest and rest[0] in _INLINE:
        yield "command-inline", "the command holds the code itself, and not the name of a file that can be read"
        return
    is_own = script and "-m" not in rest and not _PLACE_HOLDER.match(script) and not script.startswith("/")
    if has_script and is_own and posixpath.normpath(script) not in files:
        yield "command-missing", "the skill has no such file"
