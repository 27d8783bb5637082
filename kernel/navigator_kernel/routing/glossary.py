"""Finds terms of one meaning: a message says 表格 or "slide deck", a skill says xlsx or pptx."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from navigator_kernel.text import fold, lazy_compile

_HAN = lazy_compile(r"[㐀-䶿一-鿿豈-﫿]")


def alike(text: str) -> list[Sequence[str]]:
    """The terms of each phrase of `glossary.tsv` that is in `text`; of phrases that overlap, of the longest."""
    terms = _terms()
    return list(dict.fromkeys(terms[hit.group()] for hit in _phrases().finditer(fold(text))))


@cache
def _terms() -> Mapping[str, tuple[str, ...]]:
    """By phrase; a phrase of several lines has the terms of all. An underscore in the file stands for a blank."""
    held: dict[str, tuple[str, ...]] = {}
    for line in Path(__file__).with_name("glossary.tsv").read_text(encoding="utf-8").splitlines():
        words, _, phrases = line.partition("\t")
        for phrase in map(fold, phrases.split()):
            held[phrase] = (*held.get(phrase, ()), *words.split())
    return held


@cache
def _phrases() -> re.Pattern[str]:
    """Any of them, the longest first; one in Latin letters counts as a whole word."""
    longest = sorted(_terms(), key=len, reverse=True)
    han = [re.escape(phrase) for phrase in longest if _HAN.search(phrase)]
    latin = [re.escape(phrase) for phrase in longest if not _HAN.search(phrase)]
    return lazy_compile(f"{'|'.join(han)}|(?<![a-z0-9])(?:{'|'.join(latin)})(?![a-z0-9])")
