"""Scans the content of a skill's files, and reports what an installer should know before trusting them.

It reads text by rules and runs nothing; a skill without findings is not therefore safe, and the sandbox confines what
the scan misses. Rules are in `rules.yaml`; checks of bytes are in `hidden` and `unwanted_files`, checks of several
places in `hidden`, `flow` and `theft`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from navigator_kernel.skills.scan import hidden, theft, unwanted_files
from navigator_kernel.skills.scan.context import (
    Passage,
    is_aside,
    is_named_text,
    line_around,
    line_at,
    passages,
    warned_of,
)
from navigator_kernel.skills.scan.finding import MOST, finding, shortened
from navigator_kernel.skills.scan.finding import lowered as less
from navigator_kernel.skills.scan.flow import python_flow, text_flow
from navigator_kernel.skills.scan.rule import rules
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.receipt import FILE_LIMIT, NOT_SCANNED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from navigator_kernel.skills.scan.rule import Hit
    from navigator_kernel.values.resource import Diagnostic

LINE = 4_000  # characters of a long line, before and after a finding, that are judged with it
MOST_KNOWN = 10_000  # files whose findings are cached in this process
_known: dict[bytes, tuple[Diagnostic, ...]] = {}
_RANK = {"note": 0, "warning": 1, "error": 2}
_AS_ASCII = (("\u017f", "s"), ("\u0131", "i"), ("\u212a", "k"), ("\u0130", "i"))  # patterns with IGNORECASE match both
_WIDE = (b"\xff\xfe", b"\xfe\xff")  # byte order marks of UTF-16
_BLANK = lazy_compile(r"[^\S\n ]")


def findings(files: Mapping[str, bytes]) -> tuple[Diagnostic, ...]:
    """Each finding once a line, by path; `error` blocks an installation. Of the warnings of one rule in one file only
    the first is more than a note: the others say nothing new."""
    by_place: dict[tuple[str, int | None, str], Diagnostic] = {}
    leaks: dict[str, list[Diagnostic]] = {}
    for leak in theft.findings(files):
        leaks.setdefault(leak.path, []).append(leak)
    for path, data in sorted(files.items()):
        count, blocked = Counter[tuple[str, str]](), set[int | None]()
        for one in chain(unwanted_files.findings(path, data, files), _of_file(path, data), leaks.get(path, ())):
            place = (one.path, one.line, one.code)
            if one.code == "secret-leaves" and one.line in blocked:
                continue  # a flow of the same line says more
            if place in by_place and _RANK[one.level] <= _RANK[by_place[place].level]:
                continue
            count[one.code, one.level] += 1
            if count[one.code, one.level] <= MOST:
                by_place[place] = one
                blocked |= {one.line} if one.level == "error" else set()
    # Of each rule that a file breaks, the first warning, or none beside an error
    reported = {(one.path, one.code) for one in by_place.values() if one.level == "error"}
    results = []
    for one in by_place.values():
        key = (one.path, one.code)
        results.append(replace(one, level="note") if one.level == "warning" and key in reported else one)
        reported |= {key} if one.level == "warning" else set()
    return tuple(results)


def _of_file(path: str, data: bytes) -> Sequence[Diagnostic]:
    """The findings of a file, cached by its path and its bytes, which skills of one author often share."""
    key = hashlib.blake2b(path.encode("utf-8", "surrogatepass") + b"\0" + data, digest_size=16).digest()
    if key not in _known:
        results = tuple(_of_text(path, data))
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[key] = results
    return _known[key]


def _of_text(path: str, data: bytes) -> Iterator[Diagnostic]:
    if len(data) > FILE_LIMIT:
        data = data[:FILE_LIMIT]
        yield _not_whole(path, f"it has over {FILE_LIMIT} bytes", data[:LINE].decode("utf-8", "replace"), 0)
    is_wide, is_text = data.startswith(_WIDE), data.startswith(b"#!") or is_named_text(path)
    if path.lower().endswith(".pdf") and data.startswith(b"%PDF-"):
        return
    if b"\x00" in data[:4096] and not (is_wide or is_text):
        return
    encoding = "utf-16" if is_wide else "utf-8"
    text = data.decode(encoding, "replace").replace("\r\n", "\n")
    if "\ufffd" in text and is_text:
        try:
            data.decode(encoding)
        except UnicodeDecodeError:
            yield _not_whole(path, "it is neither UTF-8 nor UTF-16", text, text.index("\ufffd"))
    for hit in hidden.findings(path, text):
        yield _finding(path, text, data, hit, hit.at)
    every = [(passage, in_lower_case(passage.body)) for passage in passages(path, text)]
    whole = "\n".join(lowered for _, lowered in every)
    possible = [rule for rule in rules() if rule.may_match(whole)]
    for passage, lowered in every:
        by_rule = (rule.hits(passage, lowered) for rule in possible)
        for hit in chain(_flows(passage), hidden.hits(passage), *by_rule):
            yield _finding(path, text, data, hit, passage.start + hit.at)


def _flows(passage: Passage) -> Iterator[Hit]:
    """The hits of data flows in a passage."""
    if passage.kind == "prose":
        return
    is_python = passage.path.lower().endswith((".py", ".pyw"))
    in_python = list(python_flow.hits(passage.body)) if is_python or passage.kind == "fence" else []
    for hit in in_python if in_python or is_python else text_flow.hits(passage.body):
        mild = passage.kind != "comment" and (is_aside(passage.path) or warned_of(passage, hit.at))
        yield hit._replace(level=less(hit.level)) if mild else hit


def _finding(path: str, text: str, data: bytes, hit: Hit, at: int) -> Diagnostic:
    """A finding, judged by its line or the part of a long line around it; that of a flow by the whole file."""
    line, shown = _line(text, at)
    judged = data if hit.whole else line
    return finding(hit.code, hit.level, path, hit.message, line_at(text, at), shown, judged=judged or shown)


def _not_whole(path: str, why: str, text: str, at: int) -> Diagnostic:
    _, shown = _line(text, at)
    return finding(NOT_SCANNED, "warning", path, f"not all of it was scanned: {why}", line_at(text, at), shown)


def _line(text: str, at: int) -> tuple[str, str]:
    """The line at `at`, or the part of a long one around it, and what is shown of it."""
    begin, end = line_around(text, at, LINE)
    line = text[begin:end]
    return line, shortened(line, at - begin) or ascii(line[:40])


def in_lower_case(text: str) -> str:
    """`text` in lower case, with each character in its place and all blanks of a line as spaces."""
    text = _BLANK.sub(" ", text)
    if not text.isascii():
        for letter, plain in _AS_ASCII:
            text = text.replace(letter, plain)
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(one if len(one.lower()) > 1 else one.lower() for one in text)
