"""Decides whether a place in code is in a comment, by the marks of its language."""

from __future__ import annotations

import re
from functools import lru_cache

from navigator_kernel.skills.scan.passages import Passage, language_of
from navigator_kernel.text import lazy_compile

FAR = 2_000  # characters before and after a place that are examined instead of a whole long line
_HASH = lazy_compile(r"(?:^|(?<=\s))#(?!!)")
_SLASHES = lazy_compile(r"(?:^|(?<=\s))//")
_BLOCK = lazy_compile(r"^[ \t]*/\*", re.MULTILINE)
_DASHES = lazy_compile(r"(?:^|(?<=\s))--\s")
_NONE = lazy_compile(r"(?!)")
_ANY = lazy_compile(r"^\s*(?:#(?!!)|//|\*|/\*|--\s|;|::|rem\s|%|<!--)|(?<=\s)(?:#|//)\s", re.IGNORECASE)
_MARKS = {
    **dict.fromkeys("bash sh zsh fish py python python3 yaml yml toml rb ruby pl perl r".split(), _HASH),
    **dict.fromkeys("make makefile mk ps1 powershell".split(), _HASH),
    **dict.fromkeys("c h cc cpp cs csharp dart go java js javascript mjs cjs jsx jsonc kotlin kt".split(), _SLASHES),
    **dict.fromkeys("php rs rust scala swift ts tsx typescript".split(), _SLASHES),
    **dict.fromkeys("lua sql".split(), _DASHES),
    "json": _NONE,
}
_NODE = lazy_compile(r"#![^\n]*\b(?:node|deno|bun)\b")


def is_comment(passage: Passage, at: int) -> bool:
    """Whether a mark before place `at` on its line, outside of quotes, starts a comment. A fence has comments only
    if it names a language: in a terminal session `#` may be the prompt of root. A line that a backslash joins to a
    comment is not part of it."""
    marks = _marks_of(passage)
    place = passage.start + at
    begin = max(passage.text.rfind("\n", max(place - FAR, 0), place) + 1, place - FAR, 0)
    before = passage.text[begin:place]
    if marks is _SLASHES:
        held = passage.text[max(place - FAR, 0) : place]
        blocks = [hit.start() for hit in _BLOCK.finditer(held)]
        if blocks and "*/" not in held[blocks[-1] :]:
            return True
    return any(not _is_open(before[: hit.start()]) for hit in marks.finditer(before))


def _marks_of(passage: Passage) -> re.Pattern[str]:
    if passage.kind == "fence":
        return _MARKS.get(language_of(passage), _NONE)
    return _marks_of_file(passage.path, passage.text[:100])


@lru_cache(maxsize=256)
def _marks_of_file(path: str, head: str) -> re.Pattern[str]:
    if head.startswith("#!"):
        return _SLASHES if _NODE.match(head) else _HASH
    return _MARKS.get(path.rpartition("/")[2].lower().rpartition(".")[2], _ANY)


def _is_open(text: str) -> bool:
    """Whether a string starts in the text and does not end."""
    quote, is_escaped = "", False
    for mark in text:
        if is_escaped:
            is_escaped = False
        elif mark == "\\":
            is_escaped = True
        elif quote:
            quote = "" if mark == quote else quote
        elif mark in "\"'`":
            quote = mark
    return bool(quote)
