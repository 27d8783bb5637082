"""Finds secrets in text: values of this process's environment, and strings shaped like secrets (SAF-8).

Values are searched before they are cut or encoded: each text also with its escapes decoded, the words of a list also as
one line, and a text of an object together with its name. A secret that was found is replaced wherever the same turn
stores or shows it again, in any encoding.

A short text is checked here, a long one in a process of its own, which is killed at its limits. A text that was not
checked to its end is withheld as a whole.
"""

from __future__ import annotations

import json
import re
from binascii import b2a_base64
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

from msgspec import Struct, field

from navigator_kernel.adapters.secrets.shapes import WORD, Shape, possible, spans
from navigator_kernel.text import lazy_compile

REDACTED = "[redacted]"
WITHHELD = "[withheld: {:,} characters that could not be checked for secrets]"
AT_ONCE = 64 * 1024  # characters of one value that this process scans
CHILD = "navigator_kernel.adapters.secrets.redaction_child"
SHORT = 1_000  # characters of a text that this process always scans: even many such texts take little time
SECONDS, MEMORY = 10, 1024**3  # limits of the process that scans the longer texts of one value: seconds, bytes
ROUNDS = 4
MOST = 500  # secrets of one turn that are replaced wherever they occur again

SHORTEST = 8  # least characters of a secret environment value: shorter ones may be everyday words
_NAMED = lazy_compile(
    r"(?:TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIAL|_PASS|_PWD?|_PAT)S?(?:_|$)|_AUTH$",
    re.IGNORECASE,
)
_TELLING = lazy_compile(
    r"pass|pwd|secret|token|(?<!idempotency_)key|auth|cookie|密|口令|令牌|私钥|授权码|访问码", re.IGNORECASE
)
_PASSWORD = lazy_compile(r"(?:passw(?:or)?d|passphrase|passcode|pwd|密码|口令)$", re.IGNORECASE)
_NO_PASSWORD = lazy_compile(
    r".{0,3}$|(?:string|none|null|true|false|required|optional|password|secret|token)$|[$<]|\{\{|%\(", re.IGNORECASE
)
_RUN = lazy_compile(r"\d{8}-\d{9}-[0-9a-f]{6}(?:-t[0-9a-f]{8})?")  # the "token" of a workflow is the id of its run
_ESCAPE = lazy_compile(  # of JSON, however deep in other JSON, and of addresses
    r"(?<!\\)\\++(?:u([0-9A-Fa-f]{4})|([nrtbf\"'/]))|((?:%[0-9A-Fa-f]{2})+)"
)
_MEANT = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_ODD = frozenset("!#$%&*+=@^~")  # characters that tell a password from a word

_SEEN: ContextVar[dict[str, None] | None] = ContextVar("secrets of this turn", default=None)


@contextmanager
def remembering() -> Iterator[None]:
    """Until the end of the block, all redactors replace every secret that one of them has found in it."""
    before = _SEEN.set({})
    try:
        yield
    finally:
        _SEEN.reset(before)


class Secret(NamedTuple):
    """The place of a secret in the text, and its kind."""

    begin: int
    end: int
    kind: str


class Found(NamedTuple):
    """The places of the secrets in a text, in order and without overlaps, and the decoded values."""

    places: Sequence[tuple[int, int]] = ()
    values: Sequence[str] = ()


class Redactor(Struct, frozen=True):
    """Replaces secrets. `known` are values that are replaced wherever they occur. A process for long texts may take
    `seconds`, and `memory` in bytes."""

    known: tuple[str, ...] = ()
    seconds: int = SECONDS
    memory: int = MEMORY

    def text(self, text: str) -> str:
        """`text` with `[redacted]` in place of each secret."""
        return str(self.value(text))

    def value(self, value: Any) -> Any:
        """The JSON value with `[redacted]` in place of each secret in its texts, and in keys of WORD characters or
        more."""
        parts = _Parts()
        parts.read(value)
        results = self._searched(parts.texts, [line.text for line in parts.lines])
        places = [None if result is None else [*result.places] for result in results[: len(parts.texts)]]
        for line, result in zip(parts.lines, results[len(places) :], strict=True):
            line.share(result, places)
        for number in parts.secret:
            places[number] = [(0, len(parts.texts[number]))]

        seen = _SEEN.get()
        seen = {} if seen is None else seen
        named = [parts.texts[number] for number in parts.secret]
        # Remembered are the values with the name of a password, and all other secrets but everyday words; a secret of
        # several words, such as a key of several lines, also with its long words
        secrets = [secret for result in results if result for secret in result.values]
        words = (
            word for secret in secrets for word in (secret, *(part for part in secret.split() if len(part) > WORD))
        )
        for word in (*named, *filter(_is_rare, words)):
            if len(seen) < MOST and len(word) >= SHORTEST - 2 and REDACTED not in word:
                seen[word] = None
        forms = [(form, False) for secret in self.known for form in _forms(secret)]
        forms += [
            (form, len(secret) < SHORTEST or not _is_rare(secret)) for secret in tuple(seen) for form in _forms(secret)
        ]
        done = iter([_shown(text, cuts, forms) for text, cuts in zip(parts.texts, places, strict=True)])
        return _replaced(value, lambda _: next(done))

    def _searched(self, texts: Sequence[str], lines: Sequence[str]) -> list[Found | None]:
        """What is found in each of the texts, then in each of the lines; None if that was not checked to its end."""
        every, long, room = [*texts, *lines], list[int](), [AT_ONCE, AT_ONCE]
        done: list[Found | None] = [Found()] * len(every)
        whole = "\n".join(every)  # most values hold no secret, and one search is several times faster than many
        if not (any(found(view.text) for view in _views(whole, ())) if len(whole) <= AT_ONCE else _may_hold(whole)):
            return done
        for at in sorted(range(len(every)), key=lambda at: len(every[at])):
            text, kind = every[at], int(at >= len(texts))
            if len(text) <= max(room[kind], SHORT):
                room[kind] -= len(text)
                done[at] = search(text)
            elif _may_hold(text):
                long.append(at)
        if long:
            for at, result in zip(long, self._apart([every[at] for at in long]), strict=True):
                done[at] = result
        return done

    def _apart(self, texts: list[str]) -> Sequence[Found | None]:
        from navigator_kernel.adapters.processes.module_child import (
            call_module,
        )  # most processes need neither this import nor the next
        from navigator_kernel.errors import KernelError

        try:
            done = call_module(CHILD, {"texts": texts}, seconds=self.seconds, memory=self.memory)["found"]
            if len(done) == len(texts):
                return [result and Found([(begin, end) for begin, end in result[0]], result[1]) for result in done]
        except (KernelError, OSError, ValueError, KeyError, TypeError):
            pass  # whatever the error, the texts were not scanned
        return [None] * len(texts)


class _Line(NamedTuple):
    """Texts of a value that are read as one line: their numbers, and where each begins and ends in it."""

    text: str
    numbers: Sequence[int]
    begins: Sequence[int]
    ends: Sequence[int]

    def share(self, result: Found | None, places: list[list[tuple[int, int]] | None]) -> None:
        """Adds what was found in the line to the places in its texts."""
        for begin, end in [(0, len(self.text))] if result is None else result.places:
            for at in range(max(bisect_right(self.begins, begin) - 1, 0), bisect_left(self.begins, end)):
                start, marked = self.begins[at], places[self.numbers[at]]
                span = max(begin, start) - start, min(end, self.ends[at]) - start
                if marked is not None and span[0] < span[1]:
                    marked.append(span)


class _Parts(Struct):
    """The texts of a value in the order of `_replaced`, the lines that they make together, and the numbers of those
    that are secret as a whole."""

    texts: list[str] = field(default_factory=list)
    lines: list[_Line] = field(default_factory=list)
    secret: list[int] = field(default_factory=list)

    def read(self, value: Any, name: str = "") -> None:
        """Adds the texts of a value; `name` is its key, if that says that the value may be secret."""
        match value:
            case str():
                self.texts.append(value)
                if name and not _RUN.fullmatch(value):
                    self._read_named(name, value)
            case Mapping():
                for key, part in value.items():
                    if _is_long(key):
                        self.texts.append(key)
                    named = value.get("name") if key == "value" else key  # as {"name": "DB_PASSWORD", "value": "…"}
                    self.read(part, named if isinstance(named, str) and _TELLING.search(named) else "")
            case list() | tuple():
                numbers = list[int]()
                for part in value:
                    numbers += [len(self.texts)] if isinstance(part, str) else []
                    self.read(part, name)
                if len(numbers) > 1:
                    begins, ends, at = list[int](), list[int](), 0
                    for number in numbers:
                        begins.append(at)
                        ends.append(at := at + len(self.texts[number]))
                        at += 1
                    self.lines.append(_Line(" ".join(self.texts[number] for number in numbers), numbers, begins, ends))

    def _read_named(self, name: str, text: str) -> None:
        number = len(self.texts) - 1
        if _PASSWORD.search(name) and not _NO_PASSWORD.match(text) and len(text.split()) == 1:
            self.secret.append(number)
            return
        sign = "" if name.lower().endswith(("token", "tokens")) else '"'  # in quotes a word of letters is secret, too
        begin = len(name) + 2 + len(sign)
        self.lines.append(_Line(f"{name}: {sign}{text}{sign}", [number], [begin], [begin + len(text)]))


def _is_long(key: object) -> bool:
    return isinstance(key, str) and len(key) >= WORD


def _replaced(value: Any, replace: Callable[[str], str]) -> Any:
    match value:
        case str():
            return replace(value)
        case Mapping():
            return {replace(key) if _is_long(key) else key: _replaced(part, replace) for key, part in value.items()}
        case list() | tuple():
            return type(value)(_replaced(part, replace) for part in value)
        case _:
            return value


def _shown(text: str, places: list[tuple[int, int]] | None, secrets: Sequence[tuple[str, bool]]) -> str:
    """The text without what is at `places` and without `secrets`, some of which are replaced only as a word of their
    own; withheld if it was not searched."""
    if places is None:
        return WITHHELD.format(len(text))
    pieces, at = [""], 0
    for begin, end in _merged(places):
        pieces += [text[at:begin], REDACTED]
        at = end
    text = "".join([*pieces, text[at:]])
    for secret, is_word in secrets:
        if secret in text:
            text = _without_word(text, secret) if is_word else text.replace(secret, REDACTED)
    return text


def _without_word(text: str, word: str) -> str:
    """The text without a short secret where it is a word of its own, or stands after an escape such as `\\n`."""
    pieces, at = [""], 0
    while (begin := text.find(word, at)) >= 0:
        before, behind = text[max(begin - 2, 0) : begin], text[begin + len(word) : begin + len(word) + 1]
        alone = not before[-1:].isalnum() or (len(before) == 2 and before[0] == "\\")
        end = begin + len(word)
        pieces += [text[at:begin], REDACTED if alone and not behind.isalnum() else word]
        at = end
    return "".join([*pieces, text[at:]])


# ---- one text


def search(text: str) -> Found | None:
    """What is like a secret in `text`, as it is and with its escapes decoded; None if every round finds another one."""
    places, values = list[tuple[int, int]](), dict[str, None]()
    for _ in range(ROUNDS):  # a replacement can uncover another secret
        more = [*places]
        for view in _views(text, places):
            for one in found(view.text):
                more.append(view.place(one.begin, one.end))
                values[view.text[one.begin : one.end]] = None
        if (more := _merged(more)) == places:
            return Found(places, [*values])
        places = more
    return None


def _may_hold(text: str) -> bool:
    """Whether a search may find a secret; this takes far less time than a search."""
    return any(possible(view.text) for view in _views(text, ()))


class _View(NamedTuple):
    """A text with other words in some places: where each begins and ends in it, and in the original."""

    text: str
    swaps: Sequence[tuple[int, int, int, int]] = ()

    def place(self, begin: int, end: int) -> tuple[int, int]:
        """The place in the original of what is between `begin` and `end`."""
        return self._origin(begin)[0], self._origin(end - 1)[1]

    def _origin(self, at: int) -> tuple[int, int]:
        number = bisect_right(self.swaps, at, key=lambda swap: swap[0]) - 1
        if number < 0:
            return at, at + 1
        _, behind, begin, end = self.swaps[number]
        return (begin, end) if at < behind else (end + at - behind, end + at - behind + 1)


def _views(text: str, places: Sequence[tuple[int, int]]) -> Iterator[_View]:
    """The text without what is at `places`; then also with its escapes decoded, if it has any."""
    cuts = [(begin, end, REDACTED) for begin, end in places]
    yield _view(text, cuts) if cuts else _View(text)
    if "\\" in text or "%" in text:
        escapes = [(hit.start(), hit.end(), _decoded(hit)) for hit in _ESCAPE.finditer(text)]
        if places:
            escapes = [one for one in escapes if not _overlaps(places, one[0], one[1])]
        if escapes:
            yield _view(text, sorted([*cuts, *escapes]))


def _view(text: str, swaps: Sequence[tuple[int, int, str]]) -> _View:
    pieces, marks, at, length = list[str](), list[tuple[int, int, int, int]](), 0, 0
    for begin, end, word in swaps:
        pieces += [text[at:begin], word]
        length += begin - at + len(word)
        marks.append((length - len(word), length, begin, end))
        at = end
    return _View("".join([*pieces, text[at:]]), marks)


def _decoded(escape: re.Match[str]) -> str:
    code, letter, octets = escape.groups()
    if octets:
        return bytes.fromhex(octets.replace("%", "")).decode("utf-8", "replace")
    return chr(int(code, 16)) if code else _MEANT.get(letter, letter)


def _overlaps(places: Sequence[tuple[int, int]], begin: int, end: int) -> bool:
    """Whether one of the places, which are in order, has a character between `begin` and `end`."""
    number = bisect_left(places, end, key=lambda place: place[0]) - 1
    return number >= 0 and places[number][1] > begin


def _merged(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The places in order, with those that overlap as one."""
    merged = list[tuple[int, int]]()
    for begin, end in sorted(places):
        if merged and begin < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def found(text: str, shapes: Iterable[Shape] | None = None) -> list[Secret]:
    """The secrets in `text` of any shape, or of `shapes`, in order; they may overlap. The time grows with the length of
    the text."""
    every = [Secret(*span) for span in spans(possible(text) if shapes is None else shapes, text)]
    return sorted(one for one in every if not text.startswith(REDACTED, one.begin))


# ---- values


def secrets_of(environment: Mapping[str, str]) -> Iterator[str]:
    """The values of variables whose names say that they are secret, longest first."""
    values = {value for name, value in environment.items() if len(value) >= SHORTEST and _NAMED.search(name)}
    yield from sorted(values, key=len, reverse=True)


def _is_rare(word: str) -> bool:
    """Whether no text is likely to contain the word by chance: it mixes letters with digits or signs, or cases."""
    if any(map(str.isdigit, word)) and any(map(str.isalpha, word)):
        return True
    return not _ODD.isdisjoint(word) or word not in {word.lower(), word.upper(), word.capitalize()}


@lru_cache(MOST)
def _forms(secret: str) -> tuple[str, ...]:
    """The secret as it is, in JSON and in JSON in JSON, in an address, in quotes of a shell, and in base64, wherever it
    begins in the encoded text."""
    data = secret.encode("utf-8", "replace")
    forms = {secret, secret.replace("'", "'\"'\"'"), quote(secret, safe="", errors="replace")}
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        forms |= {once, json.dumps(once)[1:-1]}
    if len(data) >= SHORTEST:
        forms.add(b2a_base64(data, newline=False).decode())
        for before in range(3):
            text = b2a_base64(bytes(before) + data, newline=False).decode()
            whole = text[(0, 2, 3)[before] : (before + len(data)) * 8 // 6]  # no bits of what is before and behind
            forms |= {whole, whole.translate({ord("+"): "-", ord("/"): "_"})}
    return tuple(sorted(forms, key=len, reverse=True))
