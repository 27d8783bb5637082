"""Looks at the content of a skill's files, and says what an installer should know before it trusts them.

It reads text by rules and runs nothing; what it does not find is not thereby safe. What it may miss is contained by the
sandbox. Rules are in `rules.yaml`; what can only be seen in bytes is in `hidden` and
`unwanted_files`, what takes two places in `sequences`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain

from navigator_kernel.skills.scan.hidden import findings as hidden
from navigator_kernel.skills.scan.passages import is_named_text, line_at, passages
from navigator_kernel.skills.scan.rule import rules
from navigator_kernel.skills.scan.sequences import hits as sequences
from navigator_kernel.skills.scan.unwanted_files import findings as unwanted
from navigator_kernel.text import pattern
from navigator_kernel.values.receipt import FILE_LIMIT, NOT_SCANNED
from navigator_kernel.values.resource import Diagnostic

MOST = 100  # findings of one code and level in one file
_AS_ASCII = str.maketrans("ſıK", "sik")  # letters that a pattern takes for these
_WIDE = (b"\xff\xfe", b"\xfe\xff")  # what UTF-16 begins with
_BLANK = pattern(r"[^\S\n ]")


def findings(files: Mapping[str, bytes]) -> tuple[Diagnostic, ...]:
    """Each thing found once a line, by path; `error` blocks an installation."""
    found: dict[tuple[str, int | None, str], Diagnostic] = {}
    for path, data in sorted(files.items()):
        told = Counter[tuple[str, str]]()
        for one in chain(unwanted(path, data, files), _of_text(path, data)):
            key = (one.path, one.line, one.code)
            if key not in found or one.level == "error":
                told[one.code, one.level] += 1
                if told[one.code, one.level] <= MOST:
                    found[key] = one
    return tuple(found.values())


def _of_text(path: str, data: bytes) -> Iterator[Diagnostic]:
    if len(data) > FILE_LIMIT:
        yield _not_whole(path, f"it has over {FILE_LIMIT} bytes")
        data = data[:FILE_LIMIT]
    text = _text(path, data)
    if text is None:
        return
    if "\ufffd" in text and _is_text(path, data) and not _is_decoded(data):
        yield _not_whole(path, "it is neither UTF-8 nor UTF-16")
    for hit in hidden(path, text):
        yield Diagnostic(code=hit.code, level=hit.level, path=path, message=hit.message, line=line_at(text, hit.at))
    for passage in passages(path, text):
        lowered = _lowered(passage.body)
        for hit in chain(sequences(passage, lowered), *(rule.hits(passage, lowered) for rule in rules())):
            line = passage.line(hit.at)
            yield Diagnostic(code=hit.code, level=hit.level, path=path, message=hit.message, line=line)


def _not_whole(path: str, why: str) -> Diagnostic:
    return Diagnostic(code=NOT_SCANNED, level="warning", path=path, message=f"it was not looked at whole: {why}")


def _text(path: str, data: bytes) -> str | None:
    """None for what is no text: bytes with zeros under a name that promises none."""
    if b"\x00" in data[:4096] and not (data.startswith(_WIDE) or _is_text(path, data)):
        return None
    return data.decode(_encoding(data), "replace").replace("\r\n", "\n")


def _is_text(path: str, data: bytes) -> bool:
    return data.startswith(b"#!") or is_named_text(path)


def _encoding(data: bytes) -> str:
    return "utf-16" if data.startswith(_WIDE) else "utf-8"


def _is_decoded(data: bytes) -> bool:
    try:
        data.decode(_encoding(data))
    except UnicodeDecodeError:
        return False
    return True


def _lowered(text: str) -> str:
    """In lower case, each character where it was, all blanks of a line as spaces."""
    text = _BLANK.sub(" ", text)
    if not text.isascii():
        text = text.translate(_AS_ASCII)
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(one if len(one.lower()) > 1 else one.lower() for one in text)
