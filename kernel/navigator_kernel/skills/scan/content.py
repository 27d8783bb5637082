"""Looks at the content of a skill's files, and says what an installer should know before it trusts them.

It reads text by rules and runs nothing; what it does not find is not thereby safe. What it may miss is contained by the
sandbox. Rules are in `rules.yaml`; what can only be seen in bytes is in `hidden` and
`unwanted_files`, what takes two places in `sequences`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from navigator_kernel.skills.scan.hidden import findings as hidden
from navigator_kernel.skills.scan.passages import is_named_text, passages
from navigator_kernel.skills.scan.rule import rules
from navigator_kernel.skills.scan.sequences import hits as sequences
from navigator_kernel.skills.scan.unwanted_files import findings as unwanted
from navigator_kernel.text import pattern
from navigator_kernel.values.resource import Diagnostic

TEXT_LIMIT = 1024 * 1024  # characters of one file that are looked at
NOT_WHOLE = "scanned-in-part"
_AS_ASCII = str.maketrans("ſıK", "sik")  # letters that a pattern takes for these
_BLANK = pattern(r"[^\S\n ]")


def findings(files: Mapping[str, bytes]) -> tuple[Diagnostic, ...]:
    """Each thing found once a line, by path; `error` blocks an installation."""
    found: dict[tuple[str, int | None, str], Diagnostic] = {}
    for path, data in sorted(files.items()):
        for one in (*unwanted(path, data, files), *_of_text(path, data)):
            key = (one.path, one.line, one.code)
            if key not in found or one.level == "error":
                found[key] = one
    return tuple(found.values())


def _of_text(path: str, data: bytes) -> Iterator[Diagnostic]:
    text = _text(path, data)
    if text is None:
        return
    if len(text) > TEXT_LIMIT:
        message = f"only its first {TEXT_LIMIT:,} characters were looked at"
        yield Diagnostic(code=NOT_WHOLE, level="warning", path=path, message=message)
        text = text[:TEXT_LIMIT]
    for hit in hidden(path, text):
        line = text.count("\n", 0, hit.at) + 1
        yield Diagnostic(code=hit.code, level=hit.level, path=path, message=hit.message, line=line)
    for passage in passages(path, text):
        lowered = _lowered(passage.body)
        for hit in chain(sequences(passage, lowered), *(rule.hits(passage, lowered) for rule in rules())):
            line = passage.line(hit.at)
            yield Diagnostic(code=hit.code, level=hit.level, path=path, message=hit.message, line=line)


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
