"""Writes out what a script computes from constants (joined, reversed and encoded names, attributes by name), so that
rules can read it."""

from __future__ import annotations

import base64
import binascii
import json
import re
from functools import partial
from typing import TYPE_CHECKING

from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 6  # a joined name may be an attribute's, and that one a key
_PART = r"[\w./:@~-]{0,80}"
_LIST = rf"[\[(]\s{{0,4}}((?:[\"']{_PART}[\"']\s{{0,4}},?\s{{0,4}}){{1,40}})[\])]"
_ITEM = lazy_compile(rf"[\"']({_PART})[\"']")
_JOINED = lazy_compile(rf"([\"'])({_PART})\1\s{{0,80}}(?:\+|\.{{1,2}}|&)\s{{0,80}}([\"'])({_PART})\3")
_LISTED = lazy_compile(rf"[\"']{{2}}\.join\(\s?{_LIST}\s?\)|{_LIST}\.join\(\s?[\"']{{2}}\s?\)")
_REVERSED = lazy_compile(
    rf"([\"'])({_PART})\1(?:\[::-1\]|\.split\([\"']{{2}}\)\.reverse\(\)\.join\([\"']{{2}}\)|\.reverse\b(?!\())"
)
_NUMBERS = lazy_compile(
    r"(?:\bString\.fromCharCode|\bbytes|\bbytearray)\(\s?\[?((?:\d{1,3}\s?,\s?){2,80}\d{1,3})\s?\]?\)"
)
_HEX = lazy_compile(r"\b(?:fromhex|unhexlify)\(\s?b?[\"']((?:[0-9a-fA-F]{2}){4,200})[\"']\s?\)")
_BASE64 = lazy_compile(
    r"(?:\b(?:b64decode|atob|(?:strict_)?decode64|decode_base64|base64_decode|FromBase64String|DecodeString|Buffer\.from)\(\s?b?|\becho\s(?:-n\s)?)"
    r"([\"']?)([A-Za-z0-9+/_-]{8,400}={0,2})\1(?=\s?[,)]|\s?\|\s?base64\s{1,4}(?:-d|-D|--decode)\b)"
)
_ATTRIBUTE = lazy_compile(
    r"\b(?:getattr|Reflect\.get)\(\s?(\w+)\s?,\s?[\"'](\w+)[\"']\s?(?:,[^()\n]{0,40})?\)"
    r"|\bvars\((\w+)\)\[\s?[\"'](\w+)[\"']\s?\]|\b(\w+)\.__dict__\[\s?[\"'](\w+)[\"']\s?\]"
    r"|\b(process|os|Deno|Bun)\[\s?[\"'](\w+)[\"']\s?\]"
)
_MODULE = lazy_compile(r"\b(?:__import__|(?:importlib\.)?import_module)\(\s?[\"']([\w.]+)[\"']\s?\)")
_COMPUTES = lazy_compile(
    r"[\"']\s?(?:\+|\.{1,2}|&)\s?[\"']|\.join\(|\[::-1\]|\breverse\b|fromCharCode|\bbytes|fromhex|unhexlify|base64|Base64|b64|atob"
    r"|decode64|DecodeString|getattr\(|Reflect\.|\bvars\(|__dict__|__import__|import_module|\b(?:process|os|Deno|Bun)\["
)
_SOURCE = lazy_compile(r"\"source\"\s{0,9}:\s{0,9}(?=[\[\"])")


def written_out(text: str) -> str:
    """`text` with its computed constants written out; each line keeps its place and its length."""
    if not _COMPUTES.search(text):
        return text
    return "\n".join(_written_out(line) if _COMPUTES.search(line) else line for line in text.split("\n"))


def _written_out(line: str) -> str:
    value = line
    for _ in range(ROUNDS):
        before = value
        for pattern, result in _RULES:
            value = pattern.sub(partial(_computed, result), value)
        if value == before:
            break
    return value.ljust(len(line)) if len(value) <= len(line) else line


def _computed(result: Callable[[re.Match[str]], str | None], hit: re.Match[str]) -> str:
    value = result(hit)
    return hit[0] if value is None else value


def cells_of(notebook: str) -> str:
    """The text of a Jupyter notebook's cells, each string on its line of the file if the file has a line for each."""
    decoder, pieces, line = json.JSONDecoder(), list[str](), 0
    for hit in _SOURCE.finditer(notebook):
        try:
            value, _ = decoder.raw_decode(notebook, hit.end())
        except ValueError:
            continue
        strings = [item for item in value if isinstance(item, str)] if isinstance(value, list) else [value]
        first = notebook.count("\n", 0, notebook.find('"', hit.end()))
        pieces.append("\n" * max(first - line, 0))
        cell = "".join(text if text.endswith("\n") else f"{text}\n" for text in strings)
        pieces.append(cell)
        line = max(first, line) + cell.count("\n")
    return "".join(pieces)


def _decoded(hit: re.Match[str]) -> str | None:
    """The call with what its text decodes to; None if that is not a name or address."""
    try:
        data = base64.b64decode(hit[2].translate(_URL_SAFE) + "=" * (-len(hit[2]) % 4), validate=True)
    except binascii.Error:
        return None
    value = data.decode("ascii", "replace")
    call = hit[0][: hit.start(2) - hit.start() - len(hit[1])]
    return f"{call}{hit[1]}{value}{hit[1]}" if _PLAIN.fullmatch(value) else None


_URL_SAFE = str.maketrans("-_", "+/")
_PLAIN = lazy_compile(r"[\w./:@~?=&-]{3,}", re.ASCII)


def _quoted(value: str) -> str | None:
    return f"'{value}'" if _PLAIN.fullmatch(value) else None


def _attribute(hit: re.Match[str]) -> str:
    return ".".join(filter(None, hit.groups()))


_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]], ...] = (
    (_BASE64, _decoded),
    (_HEX, lambda hit: _quoted(bytes.fromhex(hit[1]).decode("ascii", "replace"))),
    (_NUMBERS, lambda hit: _quoted("".join(chr(int(number)) for number in hit[1].split(",")))),
    (_REVERSED, lambda hit: f"{hit[1]}{hit[2][::-1]}{hit[1]}"),
    (_LISTED, lambda hit: f"'{''.join(_ITEM.findall(hit[1] or hit[2]))}'"),
    (_JOINED, lambda hit: f"{hit[1]}{hit[2]}{hit[4]}{hit[1]}"),
    (_ATTRIBUTE, _attribute),
    (_MODULE, lambda hit: hit[1]),
)
