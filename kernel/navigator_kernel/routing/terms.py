"""Cuts text into terms for matching: words, parts of names, and pairs of Chinese characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import chain

from navigator_kernel.text import STOP, STOP_HAN, lazy_compile

_RUNS = lazy_compile(r"[㐀-䶿一-鿿豈-﫿]+|[^\W_㐀-䶿一-鿿豈-﫿]+", re.UNICODE)
_SPACED = bytes(code if code > 0x7F or chr(code).isalnum() else 0x20 for code in range(256))
_HAN = lazy_compile(r"[㐀-䶿一-鿿豈-﫿]")
_KEPT, _LONG = 1 << 15, 64  # cached words, all dropped if there are more; the longest word to cache, in characters
_CAMEL = lazy_compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def terms(text: str) -> list[str]:
    """Lower-case terms in the order of the text; each run of Chinese becomes overlapping pairs."""
    whole = text if text.isascii() else unicodedata.normalize("NFKC", text)
    spaced = whole.encode("utf-8", "surrogatepass").translate(_SPACED).decode("utf-8", "surrogatepass")
    return list(chain.from_iterable(map(_TERMS.__getitem__, spaced.split())))


def content_terms(text: str) -> list[str]:
    """`terms` without stop words."""
    spaced = _without_han_stops(unicodedata.normalize("NFKC", text))
    return [term for term in terms(spaced) if term not in STOP and (len(term) > 1 or not term.isascii())]


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def _without_han_stops(text: str) -> str:
    """Replaces stop words, the longest first, by a space each, so that no pair spans one."""
    return text if text.isascii() else _STOPS.sub(" ", text)


class _Terms(dict[str, Sequence[str]]):
    """The terms of each word that occurred, in a text with a space for each ASCII character that is not a letter or a
    digit: most words occur again."""

    def __missing__(self, word: str) -> Sequence[str]:
        found = _of_run(word) if word.isascii() else [*chain.from_iterable(map(_of_run, _RUNS.findall(word)))]
        if len(word) <= _LONG:
            if len(self) >= _KEPT:
                self.clear()
            self[word] = found
        return found


def _of_run(run: str) -> Sequence[str]:
    if not run.isascii() and _HAN.match(run):
        return _pairs(run)
    lower = run.lower()
    if run == lower or run[1:].islower() or (run.isalpha() and run.isupper()):  # most words are, and have one part
        return (lower,)
    parts = [part.lower() for part in _CAMEL.split(run)]
    return parts if len(parts) == 1 else [*parts, lower]


_TERMS = _Terms()
_STOPS = lazy_compile("|".join(sorted(STOP_HAN, key=len, reverse=True)))
