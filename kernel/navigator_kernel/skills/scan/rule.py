"""A content rule: a table of `rules.yaml`, and how it is matched against a passage.

The code reads `rules.json`, which `make docs` makes from it, because JSON is read faster.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from navigator_kernel.skills.scan.context import (
    Kind,
    Passage,
    excused,
    is_conditional,
    is_image,
    is_mentioned,
    is_quoted,
    line_around,
    names_nobody,
)
from navigator_kernel.skills.scan.finding import Level, lowered
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ADDRESS = lazy_compile(r"(?:git\+)?(?:https?|ftp|ssh):[^\s\"'|)>;]+", re.IGNORECASE)
REACH = 4000  # characters after a line that a pattern of several lines can match
BEFORE, LONG = 300, 1_000  # characters of a line that are searched together: before a needle, and from it on
FEW = 4  # up to this many lines, each is searched by itself
NEAR = 800  # characters before and after a match in which its second fact is searched for
MANY = 20  # findings of one pattern and level in one passage; more of them say nothing new


class Hit(NamedTuple):
    """A match of a rule: its place in the passage, and the message about it."""

    code: str
    at: int
    level: Level
    message: str
    whole: bool = False  # whether more of the file than the line was examined


class Rule(NamedTuple):
    """A table of `rules.yaml`, whose head explains each field."""

    code: str
    says: str
    needles: Sequence[str]
    any: Sequence[str]
    also: Sequence[str] = ()
    near: Sequence[str] = ()
    known: Sequence[str] = ()
    kinds: Sequence[Kind] = ("code", "fence", "config", "comment")
    blocks: Sequence[Kind] = ()
    notes: Sequence[Kind] = ()
    malice: Sequence[str] = ()
    guarded: bool = False
    strangers: bool = False
    here: bool = False
    mild: Sequence[str] = ()
    ordered: bool = False
    strings: bool = False
    within: int = 0

    def may_match(self, lowered: str) -> bool:
        """Whether a text in lower case has the words that each match of this rule needs."""
        return all(not words or any(word in lowered for word in words) for words in (self.needles, self.also))

    def hits(self, passage: Passage, lowered: str) -> Iterator[Hit]:
        """`lowered` is the passage's body in lower case at the same positions."""
        if passage.kind not in self.kinds or not self.may_match(lowered):
            return
        lines = _lines_with(self.needles, lowered) if self.needles else [(0, len(lowered))]
        for source in self.any if lines else ():
            remaining: dict[Level, int] = {"error": MANY, "warning": MANY, "note": MANY}
            for hit in _matches(source, passage.body, lines):
                begin, end = max(hit.start() - self.within, 0), hit.end() + self.within
                if self.near and not any(_compiled(near).search(passage.body, begin, end) for near in self.near):
                    continue
                level = self._level(passage, hit)
                remaining[level] -= 1
                if remaining[level] >= 0:
                    yield Hit(self.code, hit.start(), level, self.says, bool(self.malice))
                if not remaining["error"]:
                    break

    def _is_known(self, text: str) -> bool:
        """Whether `text` has addresses and every one of them is known."""
        addresses = _ADDRESS.findall(text) if self.known else []
        for address in addresses:
            if not any(_compiled(source).match(address) for source in self.known):
                return False
        return bool(addresses)

    def _level(self, passage: Passage, hit: re.Match[str]) -> Level:
        """An error needs a passage in which it takes effect and, for rules with `malice`, the second fact that no
        honest skill adds to the first."""
        if self._is_known(hit.group()):
            return "note"
        if self.guarded and (
            is_conditional(passage, hit.start()) or (passage.kind != "comment" and is_quoted(passage, hit))
        ):
            return "note"
        level: Level = "note" if passage.kind in self.notes else "warning"
        if passage.kind in self.blocks and not self._is_harmless(passage, hit) and self._is_malice(passage, hit):
            level = "warning" if self.strangers and names_nobody(passage, hit) else "error"
        is_excused = passage.kind != "comment" and excused(passage, hit, strings=self.strings or bool(self.malice))
        return lowered(level) if is_excused else level

    def _is_harmless(self, passage: Passage, hit: re.Match[str]) -> bool:
        """Whether the match changes another machine, has a usual form, or is only mentioned."""
        if self.here and is_image(passage.path):
            return True
        if self.mild and "\n" not in hit.group():
            begin, end = line_around(passage.body, hit.start())
            line = passage.body[begin:end]
            if any(_compiled(source).search(line) for source in self.mild):
                return True
        return self.ordered and is_mentioned(passage, hit.start())

    def _is_malice(self, passage: Passage, hit: re.Match[str]) -> bool:
        begin, end = max(hit.start() - NEAR, 0), hit.end() + NEAR
        if passage.kind == "comment" and self.code not in {"hidden-instructions", "unasked"}:
            return True  # the second fact is that people do not see it
        return not self.malice or any(
            not self._is_known(second.group())
            for source in self.malice
            for second in _compiled(source).finditer(passage.body, begin, end)
        )


def _lines_with(needles: Sequence[str], lowered: str) -> list[tuple[int, int]]:
    """Beginning and end of each line with a needle, in order; in a long line, of the part around the needle."""
    ends: dict[int, int] = {}
    for needle in needles:
        at = lowered.find(needle)
        while at >= 0:
            end = lowered.find("\n", at, at + LONG)
            end = min(at + LONG, len(lowered)) if end < 0 else end
            ends[max(lowered.rfind("\n", max(at - BEFORE, 0), at) + 1, at - BEFORE)] = end
            at = lowered.find(needle, end)
    return sorted(ends.items())


def _matches(source: str, body: str, lines: Sequence[tuple[int, int]]) -> Iterator[re.Match[str]]:
    """The first match that begins on each of `lines`. A pattern of several lines is searched for in the whole body if
    there are many lines: that costs less than to search the text after each of them."""
    pattern, reach = _compiled(source), REACH if "[\\s\\S]" in source else 0
    if reach and len(lines) > FEW:
        yield from pattern.finditer(body)
        return
    for begin, end in lines:
        hit = pattern.search(body, begin, end + reach)
        if hit is not None and hit.start() <= end:
            yield hit


@cache
def rules() -> tuple[Rule, ...]:
    return tuple(Rule(**table) for table in json.loads(Path(__file__).with_name("rules.json").read_bytes()))


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return lazy_compile(source, re.IGNORECASE | re.MULTILINE)
