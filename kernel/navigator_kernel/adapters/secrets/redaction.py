"""Finds secrets in text: values of this process's environment, and strings shaped like secrets (SAF-8).

A short text is checked here, a long one in a process of its own, which is killed at its limits. A text that was not
checked to its end is withheld as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from navigator_kernel.adapters.secrets.shapes import Shape, spans, wanted
from navigator_kernel.text import lazy_compile

REDACTED = "[redacted]"
WITHHELD = "[withheld: {:,} characters that could not be checked for secrets]"
AT_ONCE = 64 * 1024  # characters of one value that this process scans
CHILD = "navigator_kernel.adapters.secrets.redaction_child"
SHORT = 1_000  # characters of a text that this process always scans: even many such texts take little time
SECONDS, MEMORY = 10, 1024**3  # limits of the process that scans the longer texts of one value: seconds, bytes
ROUNDS = 4

SHORTEST = 8  # least characters of a secret environment value: shorter ones may be everyday words
_NAMED = lazy_compile(
    r"(?:TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIAL|_PASS|_PWD?|_PAT)S?(?:_|$)|_AUTH$",
    re.IGNORECASE,
)


class Secret(NamedTuple):
    """The place of a secret in the text, and its kind."""

    begin: int
    end: int
    kind: str


class Redactor(Struct, frozen=True):
    """Replaces secrets. `known` are values that are replaced wherever they occur. A process for long texts may take
    `seconds`, and `memory` in bytes."""

    known: tuple[str, ...] = ()
    seconds: int = SECONDS
    memory: int = MEMORY

    def text(self, text: str) -> str:
        """`text` with `[redacted]` in place of each secret."""
        return self._each([text])[0]

    def value(self, value: Any) -> Any:
        """The JSON value with each text redacted; names of keys stay."""
        texts: list[str] = []

        def held(text: str) -> str:
            texts.append(text)
            return text

        _replaced(value, held)
        done = iter(self._each(texts))
        return _replaced(value, lambda _: next(done))

    def _each(self, texts: Sequence[str]) -> list[str]:
        done, left, long = [self._without_known(text) for text in texts], AT_ONCE, list[int]()
        for at in sorted(range(len(done)), key=lambda at: len(done[at])):
            if len(done[at]) <= max(left, SHORT):
                left -= len(done[at])
                done[at] = without_secrets(done[at])
            elif wanted(done[at]):
                long.append(at)
        if long:
            for at, text in zip(long, self._apart([done[at] for at in long]), strict=True):
                done[at] = text
        return done

    def _without_known(self, text: str) -> str:
        for value in self.known:
            if value in text:
                text = text.replace(value, REDACTED)
        return text

    def _apart(self, texts: list[str]) -> list[str]:
        from navigator_kernel.adapters.processes.module_call import (
            call_module,
        )  # most processes need neither this import nor the next
        from navigator_kernel.errors import KernelError

        try:
            done = call_module(CHILD, {"texts": texts}, seconds=self.seconds, memory=self.memory)["texts"]
            if len(done) == len(texts) and all(isinstance(text, str) for text in done):
                return list(done)
        except (KernelError, OSError, ValueError, KeyError, TypeError):
            pass  # whatever the error, the texts were not scanned
        return [_withheld(text) for text in texts]


def _replaced(value: Any, replace: Callable[[str], str]) -> Any:
    match value:
        case str():
            return replace(value)
        case Mapping():
            return {key: _replaced(held, replace) for key, held in value.items()}
        case list() | tuple():
            return type(value)(_replaced(held, replace) for held in value)
        case _:
            return value


def without_secrets(text: str) -> str:
    """`text` with `[redacted]` in place of everything like a secret; withheld if every round finds another one."""
    shown = text
    for _ in range(ROUNDS):  # a replacement can uncover another secret
        before, shown = shown, _without(shown, found(shown))
        if shown == before:
            return shown
    return _withheld(text)


def _withheld(text: str) -> str:
    return WITHHELD.format(len(text))


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


def found(text: str, shapes: Iterable[Shape] | None = None) -> list[Secret]:
    """The secrets in `text` of any shape, or of `shapes`, in order; they may overlap. The time grows with the length of
    the text."""
    every = [Secret(*span) for span in spans(wanted(text) if shapes is None else shapes, text)]
    return sorted(one for one in every if not text.startswith(REDACTED, one.begin))
