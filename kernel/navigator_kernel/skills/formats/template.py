"""Fills a resource's text or command in one pass: inserted text is never expanded again (X-26)."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from navigator_kernel.errors import NotLoadable, Refused
from navigator_kernel.text import lazy_compile

OWN_PYTHON = frozenset({"python", "python3"})  # program names that mean the kernel's own interpreter
_MARK = lazy_compile(
    r"\\(?P<escaped>\$)|\{\{\s*(?P<double>[\w-]+)\s*\}\}|\{(?P<single>[\w-]+)\}"
    r"|\$\{(?P<root>SKILL_ROOT)\}|\$(?P<all>ARGUMENTS)\b|\$(?P<number>[1-9]\d?)(?!\d)"
)
_SHELL = r"(?:(?<=\s)|^)!`(?P<shell>[^`\n]+)`"
_WITH_SHELL = lazy_compile(rf"{_SHELL}|{_MARK.pattern}", re.MULTILINE)
_NUMBER = lazy_compile(r"-\d+(?:\.\d+)?")
_SHELL_MARK = lazy_compile(_SHELL, re.MULTILINE)


class Filling(Struct, frozen=True, kw_only=True):
    """The values of placeholders (PRE-10..12, FMT-3). `arguments` are `$1 $2 …`, `raw` is `$ARGUMENTS`; `outputs` maps
    each command in the text to its output."""

    request: str = ""
    arguments: tuple[str, ...] = ()
    raw: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    root: Path | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)


def commands_in(template: str) -> tuple[str, ...]:
    """The commands that a text contains as `` !`cmd` ``, each once (X-4)."""
    return tuple(dict.fromkeys(hit["shell"].strip() for hit in _SHELL_MARK.finditer(template)))


def fill(template: str, filling: Filling, *, braces: bool = True, numbers: bool = True) -> str:
    """`template` with every placeholder that has a value replaced; others stay as written, `\\$` becomes `$`."""

    def value(hit: re.Match[str]) -> str:
        if filling.outputs and hit["shell"]:
            return filling.outputs.get(hit["shell"].strip(), hit.group())
        if (hit["number"] and not numbers) or ((hit["double"] or hit["single"]) and not braces):
            return hit.group()
        text = _value(hit, filling)
        return hit.group() if text is None else text

    return (_WITH_SHELL if filling.outputs else _MARK).sub(value, template)


def fill_argv(command: str, filling: Filling) -> tuple[str, ...]:
    """`command` split into words, each placeholder filled by exactly one whole argument (AGT-8).

    An optional value that is missing drops its word and the `--flag` before it. NotLoadable for a template
    that glues a placeholder to other text, Refused for a value that would be read as an option.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise NotLoadable(f"the command {command!r} cannot be split: {error}", hint="close every quote") from error
    if not words:
        raise NotLoadable("the command is empty", hint="name a program and its arguments")
    if (hit := _MARK.fullmatch(words[0])) and not hit["root"]:
        raise NotLoadable(f"the program of {command!r} is a placeholder", hint="name the program itself")
    argv: list[str] = []
    for word in words:
        hit = _MARK.fullmatch(word)
        if hit is None:
            argv.append(_fixed(word, filling, command))
        elif value := _value(hit, filling):
            # Most parsers read the value of `--top --exec=x` as a second option. A number is not an option
            is_harmless = "--" in argv or value == "-" or _NUMBER.fullmatch(value)
            if value.startswith("-") and not is_harmless:
                message = f"the value {value!r} for {word} would be read as an option"
                raise Refused(message, hint="start it with another letter")
            if "\x00" in value:
                raise Refused(f"the value for {word} has a NUL character", hint="remove it")
            argv.append(value)
        elif argv and argv[-1].startswith("--") and argv[-1] != "--":
            argv.pop()
    return (sys.executable, *argv[1:]) if argv[0] in OWN_PYTHON else tuple(argv)


def _fixed(word: str, filling: Filling, command: str) -> str:
    """A word without placeholders for values; `${SKILL_ROOT}` is the kernel's own and may appear anywhere, and `{json}`
    is text if no parameter has that name."""
    for hit in _MARK.finditer(word):
        name = hit["double"] or hit["single"]
        is_placeholder = name is None or name == "request" or name in filling.params
        if is_placeholder and not hit["root"] and not hit["escaped"]:
            hint = f"write {hit.group()} as a word of its own"
            raise NotLoadable(f"the command {command!r} glues {hit.group()!r} to other text", hint=hint)
    return word.replace("${SKILL_ROOT}", str(filling.root or "")).replace("\\$", "$")


def _value(hit: re.Match[str], filling: Filling) -> str | None:
    if hit["escaped"]:
        return "$"
    if hit["root"]:
        return None if filling.root is None else str(filling.root)
    if hit["all"]:
        return filling.raw
    if hit["number"]:
        at = int(hit["number"]) - 1
        return filling.arguments[at] if at < len(filling.arguments) else None
    name = hit["double"] or hit["single"]
    if name in filling.params:
        param = filling.params[name]
        return None if param is None else str(param)
    return filling.request if name == "request" else None
