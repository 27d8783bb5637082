"""Finds secrets in text: those of this process's own environment, and what detect-secrets knows the shape of (SAF-8).

Most text has none, so a cheap look decides whether the library (140 ms to import) is asked at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from msgspec import Struct

from navigator_kernel.adapters.secret_shapes import MAYBE, SHAPES, hits
from navigator_kernel.text import pattern

REDACTED = "[redacted]"
LINE_LIMIT = 4_000  # characters of one line that the library is asked about at once
BEFORE = 200  # characters before what looks like a secret that may say what it is
ROUNDS = 4

SHORTEST = 8  # characters of a value of the environment that is no word of everyday text
_NAMED = pattern(
    r"(?:TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIAL|_PASS|_PWD?|_PAT)S?(?:_|$)|_AUTH$",
    re.IGNORECASE,
)
_QUOTES = " \t\"'"  # what a match may hold before and behind its secret
_TOKEN = pattern(r"[\w+/=.~-]*")
# Digests and addresses are facts; OpenAI's takes a time that grows with the square, and `_SHAPES` has its shape
_LEFT_OUT = frozenset({"Base64HighEntropyString", "HexHighEntropyString", "IPPublicDetector", "OpenAIDetector"})
_PARTS = frozenset({"BasicAuthDetector", "KeywordDetector", "PrivateKeyDetector"})  # a match holds more than the secret


class Secret(NamedTuple):
    """Where it stands in the text, and what kind it is."""

    begin: int
    end: int
    kind: str


class Redactor(Struct, frozen=True):
    """`known` are values that are replaced wherever they stand."""

    known: tuple[str, ...] = ()

    def text(self, text: str) -> str:
        """`text` with `[redacted]` in place of each secret."""
        for value in self.known:
            if value in text:
                text = text.replace(value, REDACTED)
        for _ in range(ROUNDS):  # some detectors tell of one secret a line
            before, text = text, _without(text, found(text))
            if text == before:
                break
        return text

    def value(self, value: Any) -> Any:
        """The same for each text in a JSON value; names of keys stay."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {key: self.value(held) for key, held in value.items()}
            case list() | tuple():
                return type(value)(self.value(held) for held in value)
            case _:
                return value


def _without(text: str, secrets: Sequence[Secret]) -> str:
    pieces, at = [], 0
    for one in secrets:
        if one.end > at:
            pieces += [text[at : max(one.begin, at)], REDACTED]
            at = one.end
    return "".join([*pieces, text[at:]]) if pieces else text


def secrets_of(environment: Mapping[str, str]) -> Iterator[str]:
    """The values of variables whose names say that they are secret, longest first."""
    held = {value for name, value in environment.items() if len(value) >= SHORTEST and _NAMED.search(name)}
    yield from sorted(held, key=len, reverse=True)


def found(text: str) -> list[Secret]:
    """The secrets in `text`, in order; they may overlap."""
    every = [Secret(*hit.span("value"), kind) for kind, hit in hits(SHAPES, text)]
    last = -1
    for at in sorted(hit.start() for _, hit in hits(MAYBE, text)):
        if at < last:
            continue  # the line was looked at
        begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        begin, last = max(begin, at - BEFORE), len(text) if end < 0 else end
        last = min(last, at + LINE_LIMIT)
        every += [Secret(begin + one.begin, begin + one.end, one.kind) for one in _in_line(text[begin:last])]
    return sorted(every)


def _in_line(line: str) -> Iterator[Secret]:
    for name, kind, search in _detectors():
        for begin, end in search(line):
            begin, end = end - len(line[begin:end].lstrip(_QUOTES + "=:")), begin + len(line[begin:end].rstrip(_QUOTES))
            tail = _TOKEN.match(line, end)
            yield Secret(begin, tail.end() if tail and name not in _PARTS else end, kind)


Search = Callable[[str], list[tuple[int, int]]]


@cache
def _detectors() -> tuple[tuple[str, str, Search], ...]:
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    classes: Iterable[tuple[str, Any]] = get_mapping_from_secret_type_to_class().items()
    return tuple((one.__name__, kind, _search(one())) for kind, one in classes if one.__name__ not in _LEFT_OUT)


def _search(detector: Any) -> Search:
    """What the detector calls a secret, as it stands in the line; some of its own answers are parts of a match."""

    def search(line: str) -> list[tuple[int, int]]:
        values = {str(one.secret_value) for one in detector.analyze_line(filename="", line=line, line_number=1)}
        spans = [hit.span() for value in values for hit in re.finditer(re.escape(value), line) if value]
        if values and type(detector).__name__ not in _PARTS:
            spans += [hit.span() for regex in getattr(detector, "denylist", ()) for hit in regex.finditer(line)]
        return spans

    return search
