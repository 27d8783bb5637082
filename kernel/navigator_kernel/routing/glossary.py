"""Finds terms with the same meaning: a message says 表格 or "slide deck", a skill says xlsx or pptx."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from navigator_kernel.text import fold

_LATIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_HAN = "\u3400"  # the first Chinese character


def alike(text: str) -> list[Sequence[str]]:
    """The terms of each phrase of `glossary.tsv` in `text`; of phrases with the same start, the longest counts."""
    return list(dict.fromkeys(_terms()[phrase] for phrase in _phrases(fold(text))))


def _phrases(text: str) -> Iterator[str]:
    """Yields each phrase in `text`, from left to right. A pattern of all phrases would find the same, but it takes
    each process 12 ms to compile."""
    terms, lengths, at = _terms(), _lengths(), 0
    while at < len(text):
        ends = (at + length for length in lengths.get(text[at], ()))
        end = next((end for end in ends if text[at:end] in terms and _is_whole(text, at, end)), at)
        if end > at:
            yield text[at:end]
        at = max(end, at + 1)


def _is_whole(text: str, begin: int, end: int) -> bool:
    """Whether a phrase is a whole word; always true for one with Chinese characters."""
    if max(text[begin:end]) >= _HAN:
        return True
    return text[begin - 1 : begin] not in _LATIN and text[end : end + 1] not in _LATIN


@cache
def _terms() -> Mapping[str, tuple[str, ...]]:
    """The terms by phrase; a phrase on several lines has the terms of all. The phrases in the file are already folded,
    with `_` for a blank, because folding takes 8 ms."""
    held: dict[str, tuple[str, ...]] = {}
    for line in Path(__file__).with_name("glossary.tsv").read_text(encoding="utf-8").replace("_", "-").splitlines():
        words, _, phrases = line.partition("\t")
        terms = tuple(words.split())
        for phrase in phrases.split():
            held[phrase] = held[phrase] + terms if phrase in held else terms
    return held


@cache
def _lengths() -> Mapping[str, Sequence[int]]:
    """The lengths of the phrases that begin with a character, the longest first."""
    held: dict[str, set[int]] = defaultdict(set)
    for phrase in _terms():
        held[phrase[0]].add(len(phrase))
    return {first: sorted(lengths, reverse=True) for first, lengths in held.items()}
