"""Splits a line into words as a shell does, in linear time: `shlex` takes quadratic time."""

from __future__ import annotations

import re

from navigator_kernel.text import lazy_compile

_PIECE = lazy_compile(
    r"(?P<gap>[ \t\r\n]+)|'(?P<single>[^']*)'|\"(?P<double>(?:[^\"\\]|\\.)*+)\"|\\(?P<escaped>.)"
    r"|(?P<plain>[^ \t\r\n'\"\\]+)",
    re.DOTALL,
)
_ESCAPED = lazy_compile(r"\\([\\\"])")


def split_words(text: str) -> list[str] | None:
    """Splits like `shlex.split`; returns None if that raises an error."""
    words: list[str] = []
    word: list[str] | None = None
    at = 0
    for hit in _PIECE.finditer(text):
        if hit.start() != at:
            return None
        at = hit.end()
        if not hit["gap"]:
            word = [] if word is None else word
            word.append(_ESCAPED.sub(r"\1", hit["double"]) if hit["double"] else hit[hit.lastgroup or 0])
        elif word is not None:
            words.append("".join(word))
            word = None
    return [*words, *([] if word is None else ["".join(word)])] if at == len(text) else None
