"""Looks at the content of a skill's files, and says what an installer should know before it trusts them.

It reads text by rules and runs nothing; what it does not find is not thereby safe. What it may miss is contained by the
sandbox. Rules are in `rules.yaml`; what can only be seen in bytes is in `hidden` and
`unwanted_files`, what takes two places in `sequences`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from msgspec.structs import replace

from navigator_kernel.skills.scan.finding import finding, shortened
from navigator_kernel.skills.scan.flows import hits as flows
from navigator_kernel.skills.scan.hidden import findings as hidden
from navigator_kernel.skills.scan.passages import is_named_text, passages
from navigator_kernel.skills.scan.rule import Hit, rules
from navigator_kernel.skills.scan.sequences import hits as sequences
from navigator_kernel.skills.scan.unwanted_files import findings as unwanted
from navigator_kernel.text import pattern
from navigator_kernel.values.resource import Diagnostic

TEXT_LIMIT = 1024 * 1024  # characters of one file that are looked at
NOT_WHOLE = "scanned-in-part"
LINE = 200  # characters of it that stand for a file that is looked at in part
_RANK = {"note": 0, "warning": 1, "error": 2}
_AS_ASCII = str.maketrans("ſıK", "sik")  # letters that a pattern takes for these
_BLANK = pattern(r"[^\S\n ]")


def findings(files: Mapping[str, bytes]) -> tuple[Diagnostic, ...]:
    """Each thing found once a line, by path; `error` blocks an installation. Of the warnings of one rule in one file
    only the first is more than a note: the others say nothing new."""
    found: dict[tuple[str, int | None, str], Diagnostic] = {}
    for path, data in sorted(files.items()):
        for one in (*unwanted(path, data, files), *_of_text(path, data)):
            key = (one.path, one.line, one.code)
            if key not in found or _RANK[one.level] > _RANK[found[key].level]:
                found[key] = one
    return tuple(_once(found.values()))


def _once(found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    blocked = {(one.path, one.code) for one in found if one.level == "error"}
    warned: set[tuple[str, str]] = set()
    for one in found:
        key = (one.path, one.code)
        if one.level == "warning" and (key in warned or key in blocked):
            one = replace(one, level="note")
        warned |= {key} if one.level == "warning" else set()
        yield one


def _of_text(path: str, data: bytes) -> Iterator[Diagnostic]:
    text = _text(path, data)
    if text is None:
        return
    if len(text) > TEXT_LIMIT:
        message = f"only its first {TEXT_LIMIT:,} characters were looked at"
        yield finding(NOT_WHOLE, "warning", path, message, 1, text[:LINE])
        text = text[:TEXT_LIMIT]
    for hit in hidden(path, text):
        yield _finding(path, text, data, hit, hit.at)
    flat = _lowered(text).replace("\n", " ")
    worth = [rule for rule in rules() if rule.is_worth(flat)]
    for passage in passages(path, text):
        lowered = _lowered(passage.body)
        made = chain(
            flows(passage, lowered), sequences(passage, lowered), *(rule.hits(passage, lowered) for rule in worth)
        )
        for hit in made:
            yield _finding(path, text, data, hit, passage.start + hit.at)


def _finding(path: str, text: str, data: bytes, hit: Hit, at: int) -> Diagnostic:
    """With the line that it stands on; of a flow with all of its file."""
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[begin : end if end >= 0 else len(text)]
    shown = shortened(line, at - begin) or ascii(line[:40])
    judged = data if hit.whole else line
    return finding(hit.code, hit.level, path, hit.message, text.count("\n", 0, at) + 1, shown, judged=judged or shown)


def _text(path: str, data: bytes) -> str | None:
    """None for what is no text: bytes with zeros under a name that promises none."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").replace("\r\n", "\n")
    if b"\x00" in data[:4096] and not (data.startswith(b"#!") or is_named_text(path)):
        return None
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _lowered(text: str) -> str:
    """In lower case, each character where it was, all blanks of a line as spaces."""
    text = _BLANK.sub(" ", text)
    if not text.isascii():
        text = text.translate(_AS_ASCII)
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(one if len(one.lower()) > 1 else one.lower() for one in text)
