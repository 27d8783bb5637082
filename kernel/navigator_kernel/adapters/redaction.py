"""Finds secrets in text: those of this process's own environment, and what detect-secrets knows the shape of (SAF-8).

Most text has none, so a cheap look decides whether the library (140 ms to import) is asked at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from navigator_kernel.text import pattern

REDACTED = "[redacted]"
LINE_LIMIT = 20_000  # characters of one line that the library is asked about

_SHORTEST = 8  # characters of a value of the environment that is no word of everyday text
_NAMED = pattern(
    r"(?:TOKEN|SECRET|PASSW(?:OR)?D|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?|_AUTH|_PAT)(?:_|$)", re.IGNORECASE
)
_BLOCK = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*-----|\Z)", re.DOTALL)
_ASSIGNED = pattern(
    r"\b[A-Z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|PRIVATE_KEY)[A-Z0-9_]*=[\"']?(?P<value>[^\s\"'$]{6,})"
)
# What every detector of the library needs to be there: where none of it is, none of them finds anything
_MAYBE = pattern(
    r"A3T[A-Z0-9]|AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|AKC|AccountKey=|://[^\s/@:]*:[^\s/@]+@|gh[pousr]_|gl[a-z]{2,5}-|eyJ|_authToken"
    r"|pypi-|SG\.|xox|hooks\.slack|\bsk[-_]|rk_live|sq0csp|\bAC[a-z0-9]{32}|\bSK[a-z0-9]{32}|\d{8,10}:[\w-]{35}|[MNO][\w-]{23,25}\.|-us\d"
    r"|cloudant|softlayer|ibm|bluemix|hmac|\bAP[\dABCDEF]\w{8}"
    r"|(?:pass\w*|pwd|secret|key|contrase\w*)[\"'\]]{0,2}\s*(?:[:=,(]|=>|<)[:=]?\s*[\"'`@]",
    re.IGNORECASE,
)
_TOKEN = pattern(r"[\w+/=.~-]*")
_NOISY = frozenset(
    {"Base64HighEntropyString", "HexHighEntropyString", "IPPublicDetector"}
)  # digests and addresses are facts
_PARTS = frozenset({"BasicAuthDetector", "KeywordDetector", "PrivateKeyDetector"})  # a match holds more than the secret


class Secret(NamedTuple):
    """Where it stands in the text, and what kind it is."""

    begin: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Redactor:
    """`known` are values that are replaced wherever they stand."""

    known: tuple[str, ...] = ()

    def text(self, text: str) -> str:
        """`text` with `[redacted]` in place of each secret."""
        for value in self.known:
            if value in text:
                text = text.replace(value, REDACTED)
        pieces, at = [], 0
        for one in found(text):
            if one.end > at:
                pieces += [text[at : max(one.begin, at)], REDACTED]
                at = one.end
        return "".join([*pieces, text[at:]]) if pieces else text

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


def secrets_of(environment: Mapping[str, str]) -> Iterator[str]:
    """The values of variables whose names say that they are secret, longest first."""
    held = {value for name, value in environment.items() if len(value) >= _SHORTEST and _NAMED.search(name)}
    yield from sorted(held, key=len, reverse=True)


def found(text: str) -> list[Secret]:
    """The secrets in `text`, in order; they may overlap."""
    every = [Secret(*hit.span(), "Private Key") for hit in _BLOCK.finditer(text)] if "PRIVATE KEY" in text else []
    every += [Secret(*hit.span("value"), "Secret Keyword") for hit in _ASSIGNED.finditer(text)]
    last = -1
    for hit in _MAYBE.finditer(text):
        if hit.start() < last:
            continue  # the line was looked at
        begin, last = text.rfind("\n", 0, hit.start()) + 1, (text + "\n").find("\n", hit.start())
        for one in _in_line(text[begin : min(last, begin + LINE_LIMIT)]):
            every.append(Secret(begin + one.begin, begin + one.end, one.kind))
    return sorted(every)


def _in_line(line: str) -> Iterator[Secret]:
    for name, kind, search in _detectors():
        for begin, end in search(line):
            tail = _TOKEN.match(line, end)
            yield Secret(begin, tail.end() if tail and name not in _PARTS else end, kind)


Search = Callable[[str], list[tuple[int, int]]]


@cache
def _detectors() -> tuple[tuple[str, str, Search], ...]:
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    classes: Iterable[tuple[str, Any]] = get_mapping_from_secret_type_to_class().items()
    return tuple((one.__name__, kind, _search(one())) for kind, one in classes if one.__name__ not in _NOISY)


def _search(detector: Any) -> Search:
    """What the detector calls a secret, as it stands in the line; some of its own answers are parts of a match."""

    def search(line: str) -> list[tuple[int, int]]:
        values = {str(one.secret_value) for one in detector.analyze_line(filename="", line=line, line_number=1)}
        spans = [hit.span() for value in values for hit in re.finditer(re.escape(value), line) if value]
        if values and type(detector).__name__ not in _PARTS:
            spans += [hit.span() for regex in getattr(detector, "denylist", ()) for hit in regex.finditer(line)]
        return spans

    return search
