"""Finds in one pass over a text which of many patterns may match it, so that most are never tried (Hyperscan)."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from re import _constants as ops  # type: ignore[attr-defined,unused-ignore] # not public; mypy finds it where hypothesis imports it
from re import _parser as parser  # type: ignore[attr-defined,unused-ignore] # as above
from typing import Any

from navigator_kernel.adapters.files.writer import make_private
from navigator_kernel.adapters.stores.project_state import PrivateWriter
from navigator_kernel.errors import KernelError
from navigator_kernel.text import lazy_compile

# Without Hyperscan, to scan 1,600 skills takes 47 s of processor time, not 5 s
_MAKER = Path(__file__)  # made the stored databases, so its bytes are part of their names


SPARE = 512 * 1024  # characters for which trying every pattern takes as long as compiling those of a scan (0.4 s)


class PatternSet:
    """`sources` are patterns of `re`, with any flags. A compiled database of them is read from the folder `kept`, which
    must be the person's own; if it is not there, it is made when more than `spare` characters were read. Before that,
    every pattern may match, and without Hyperscan, which has no wheel for some machines."""

    def __init__(self, sources: Iterable[str], kept: Path | None, spare: int = 0) -> None:
        self._sources: Sequence[str] = tuple(dict.fromkeys(sources))
        self.every = frozenset(self._sources)
        self._spare, self._database = spare, None
        try:
            import hyperscan
        except ImportError:
            self._spare = sys.maxsize
            return
        name = hashlib.blake2b("\0".join(self._sources).encode() + _MAKER.read_bytes(), digest_size=16).hexdigest()
        self._place = kept / f"{name}.hsdb" if kept is not None else None
        if self._place is not None:
            with suppress(OSError, hyperscan.error):  # missing, damaged, or of another release or processor
                self._database = hyperscan.loadb(self._place.read_bytes(), hyperscan.HS_MODE_BLOCK)
                self._database.scratch = hyperscan.Scratch(self._database)

    def possible(self, text: str) -> frozenset[str]:
        """The sources of the patterns that may match in `text`, or would if its spaces were line breaks."""
        self._spare -= len(text)
        if self._database is None and self._spare < 0:
            self._database = self._compiled()
        read = folded(text)
        if self._database is None or read is None:
            return self.every
        numbers = set[int]()

        def add(number: int, *_: object) -> None:
            numbers.add(number)

        self._database.scan(read, match_event_handler=add)
        return frozenset(self._sources[number] for number in numbers)

    def _compiled(self) -> Any:
        import hyperscan

        flags = hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_DOTALL | hyperscan.HS_FLAG_ALLOWEMPTY
        database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        database.compile(
            expressions=[widened(source) for source in self._sources],
            ids=list(range(len(self._sources))),
            elements=len(self._sources),
            flags=[flags] * len(self._sources),
        )
        if self._place is not None:
            folder = self._place.parent
            with suppress(OSError, KernelError):
                PrivateWriter(folder, partial(make_private, folder)).write(self._place, hyperscan.dumpb(database))
        return database


# A pattern of Python's `re` is widened into a simpler one over bytes, which matches wherever the first one might. It is
# cheap to compile for Hyperscan and has nothing that Hyperscan does not support: anchors, lookahead, lookbehind,
# references to groups. It is matched against the text in lower case. The idea is from Cox 2012, "Regular Expression
# Matching with a Trigram Index": a cheap test without false negatives.

_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
_ZERO_WIDTH = (ops.AT, ops.ASSERT, ops.ASSERT_NOT)
_ANY = r"[\x00-\xff]"
_ASCII = 128
_MANY = 32  # repetitions that are counted exactly; above it, any number matches
_SPACE, _BREAK = ord(" "), ord("\n")
_FOLDED = lazy_compile("[\u0130\u0131\u017f\u212a]")  # letters that `re.IGNORECASE` matches with i, s and k
_CLASSES = {
    ops.CATEGORY_WORD: r"\w",
    ops.CATEGORY_NOT_WORD: r"\W",
    ops.CATEGORY_DIGIT: r"\d",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S",
}
_Set = frozenset[int]  # byte values; _ASCII stands for every character beyond ASCII


def folded(text: str) -> bytes | None:
    """`text` in lower case; None if it has letters that `re.IGNORECASE` matches with others than their lower case."""
    if not text.isascii() and _FOLDED.search(text):
        return None
    return text.lower().encode("utf-8", "surrogatepass")


def widened(source: str) -> bytes:
    """A pattern that matches in `folded(text)` if `source`, with any flags, matches in `text`, even if line breaks of
    the text are replaced by spaces. re.error for an invalid pattern."""
    return _all(parser.parse(source)).encode("ascii")


def _all(items: Iterable[tuple[Any, Any]]) -> str:
    return "".join(_one(op, argument) for op, argument in items)


def _one(op: Any, argument: Any) -> str:
    if op is ops.LITERAL:
        if argument == _BREAK:
            return r"[\x0a\x20]"
        return "".join(f"\\x{byte:02x}" for byte in chr(argument).lower().encode("utf-8", "surrogatepass"))
    if op is ops.IN:
        return _written(_members(argument))
    if op is ops.NOT_LITERAL:
        return _written(_complement(_cased(argument)))
    if op is ops.SUBPATTERN:
        return f"(?:{_all(argument[-1])})"
    if op is ops.ATOMIC_GROUP:
        return f"(?:{_all(argument)})"
    if op is ops.BRANCH:
        return f"(?:{'|'.join(_all(branch) for branch in argument[1])})"
    if op is ops.ANY:
        return f"{_ANY}+"
    if op not in _REPEATS:
        return "" if op in _ZERO_WIDTH else f"{_ANY}*"  # a position, or an unknown construct, which may match anything
    least, most, items = argument
    inner = _all(items)
    if not inner:
        return ""
    if most == 1:
        return f"(?:{inner}){'' if least else '?'}"
    counted = min(least, _MANY)
    times = {0: "", 1: f"(?:{inner})"}.get(counted, f"(?:{inner}){{{counted}}}")
    return times if counted == most else f"{times}(?:{inner})*"


def _members(items: Iterable[tuple[Any, Any]]) -> _Set:
    codes: set[int] = set()
    inverted = False
    for op, argument in items:
        if op is ops.NEGATE:
            inverted = True
        elif op is ops.LITERAL:
            codes |= {argument} if inverted else _cased(argument)
        elif op is ops.RANGE:
            first, last = argument
            members = set(range(first, min(last, _ASCII - 1) + 1))
            codes |= members if inverted else members.union(*map(_cased, members))
            codes |= {_ASCII} if last >= _ASCII else set()
        else:
            codes |= _category(argument, certain=inverted)
    return _complement(frozenset(codes)) if inverted else frozenset(codes)


@cache
def _category(name: Any, *, certain: bool) -> _Set:
    """The characters that it matches with some flags or, if `certain`, with all flags: `re.ASCII` has fewer blanks."""
    patterns = (lazy_compile(_CLASSES[name]), lazy_compile(_CLASSES[name], re.ASCII))
    matched = (frozenset(code for code in range(_ASCII) if pattern.match(chr(code))) for pattern in patterns)
    return frozenset.intersection(*matched) if certain else frozenset.union(*matched) | {_ASCII}


def _cased(code: int) -> _Set:
    low, high = chr(code).lower(), chr(code).upper()
    return frozenset(min(ord(one), _ASCII) for one in (chr(code), low, high) if len(one) == 1)


def _complement(members: _Set) -> _Set:
    """All other characters. Those beyond ASCII are always included, as `members` can exclude only some of them."""
    return frozenset(range(_ASCII)) - members | {_ASCII}


def _written(members: _Set) -> str:
    """`members` as a class of bytes in lower case; a character beyond ASCII is several bytes."""
    codes = {ord(chr(code).lower()) for code in members if code < _ASCII}
    if _BREAK in codes:
        codes |= {_SPACE}
    beyond = any(code >= _ASCII for code in members)
    listed = "".join(f"\\x{code:02x}" for code in sorted(codes)) + (r"\x80-\xff" if beyond else "")
    if not listed:
        return r"[^\x00-\xff]" if not members else r"\x20"
    return f"[{listed}]{'+' if beyond else ''}"
