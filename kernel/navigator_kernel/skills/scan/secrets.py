"""Secrets that a skill brings along, told without being shown: a real one is a warning, an example a note."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Protocol

from navigator_kernel.skills.scan.context import is_aside
from navigator_kernel.skills.scan.finding import Level, finding
from navigator_kernel.text import pattern
from navigator_kernel.values.resource import Diagnostic

# Kinds that only say that a word like "password" stands beside a value
_GUESSED = pattern(r"keyword|basic auth|authori[sz]ation|header|entropy|password|url", re.IGNORECASE)
_EXAMPLE = pattern(
    r"example|sample|dummy|fake|test|your|my[-_]|xxx|\.\.\.|…|[<{$%]|change.?me|placeholder|password|secret|redacted|1234|abcd|todo|foo|bar|demo|mock"
    r"|(.)\1{4}",
    re.IGNORECASE,
)
_SHORT, _EVEN = 12, 3.2  # characters, and bits a character, below which nobody made it by chance


class Place(Protocol):
    """Where a secret stands in a text, and what kind it is."""

    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def kind(self) -> str: ...


def findings(path: str, text: str, found: Iterable[Place]) -> Iterator[Diagnostic]:
    """One a line, of the first kind that stands there; the line is shown with the secret cut out."""
    places = sorted(found, key=lambda one: (one.begin, -one.end))
    told: set[int] = set()
    for one in places:
        line = text.count("\n", 0, one.begin) + 1
        if line in told:
            continue
        told.add(line)
        message = f"holds a secret ({one.kind})"
        yield finding("secret", _level(path, text, one), path, message, line, _redacted(text, one, places))


def _level(path: str, text: str, one: Place) -> Level:
    value = text[one.begin : one.end]
    if _GUESSED.search(one.kind) or is_aside(path) or _EXAMPLE.search(value):
        return "note"
    return "note" if len(value) < _SHORT or _bits(value) < _EVEN else "warning"


def _bits(value: str) -> float:
    """Shannon's entropy of a character."""
    return -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())


def _redacted(text: str, one: Place, places: Iterable[Place]) -> str:
    begin = text.rfind("\n", 0, one.begin) + 1
    end = text.find("\n", one.begin)
    end = len(text) if end < 0 else end
    shown, at = [], begin
    for held in places:
        if held.end <= begin or held.begin >= end or held.end <= at:
            continue
        shown += [text[at : max(held.begin, at)], "[secret]"]
        at = min(max(held.end, at), end)
    return "".join([*shown, text[at:end]]) or "[secret]"
