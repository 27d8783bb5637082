"""The tools that write: a whole file, or an exact replacement. Both are planned first and shown as a diff."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from navigator_kernel.adapters.files.tree import read_inside
from navigator_kernel.adapters.processes.line_diff import same_start, unified_aside
from navigator_kernel.errors import NotFound, Refused, UsageProblem
from navigator_kernel.text import escape_controls, lazy_compile
from navigator_kernel.tools.places import Place

_RETURN, _END = lazy_compile("\r\n"), lazy_compile("\r?\n")
LARGEST = 4 * 1024 * 1024  # bytes of a file to write or edit
WIDTH = 78  # columns of a line of a diff as a person sees it; a terminal of 80 columns does not break it
TAB = 8  # columns of a tab, at most


class Change(NamedTuple):
    """A file to write; `before` is None for a new file."""

    place: Place
    before: bytes | None
    after: bytes

    async def diff(self) -> str:
        """The whole change as a unified diff; may take some seconds, and ends when it is cancelled."""
        return await unified_aside("/".join(self.place.parts), self.before, self.after)

    @property
    def is_text(self) -> bool:
        """Whether the file was UTF-8 text before, or is new."""
        return _is_text(self.before or b"")


def shown(diff: str) -> str:
    """The diff as a person sees it: invisible characters are visible, and a long line is in pieces that each begin with
    the sign of the line, all but the first also with `…`, so that none looks like another line (CWE-1007)."""
    return "\n".join(piece for line in diff.split("\n") for piece in _pieces(escape_controls(line)))


def _pieces(line: str) -> Iterator[str]:
    piece, room = "", WIDTH
    for char in line:
        columns = TAB if char == "\t" else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if columns > room:
            yield piece
            piece, room = f"{line[0]}…", WIDTH - 2
        piece, room = piece + char, room - columns
    yield piece


def written(place: Place, arguments: Mapping[str, Any]) -> Change:
    """The change that makes `content` the whole file."""
    after = _encoded(str(arguments["content"]))
    return Change(place, now_in(place), after)


def edited(place: Place, arguments: Mapping[str, Any]) -> Change:
    """The change that replaces `old_string` with `new_string`: in exactly one place, or in every one with
    `replace_all`. `\\n` in them also stands for `\\r\\n`; the file keeps its own line ends.

    UsageProblem if the text is not there, or is there more than once, with the number of times.
    """
    before = now_in(place)
    if before is None:
        raise NotFound(f"there is no {place.path.name!r}", hint="write makes a new file")
    if not _is_text(before):
        raise UsageProblem(f"{place.path.name!r} is not UTF-8 text", hint="change it with a script")
    text = before.decode("utf-8")
    if isinstance(arguments.get("insert_line"), int):
        return Change(place, before, _encoded(_inserted(text, arguments["insert_line"], str(arguments["new_string"]))))
    edits = arguments.get("edits") or [arguments]
    if not all(isinstance(one.get(name), str) for one in edits for name in ("old_string", "new_string")):
        raise UsageProblem("an edit is not complete", hint="each of edits has an old_string and a new_string")
    for one in edits:
        text = _edited(place, text, one)
    return Change(place, before, _encoded(text))


def _inserted(text: str, line: int, new: str) -> str:
    """`text` with `new` as lines of their own after the line of that number; 0 is before the first one."""
    lines = text.splitlines(keepends=True)
    if not 0 <= line <= len(lines):
        raise UsageProblem(f"there is no line {line}", hint=f"insert_line is from 0 to {len(lines)}")
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    before = "".join(lines[:line])
    before += end if before and not before.endswith("\n") else ""
    new = new.replace("\r\n", "\n").replace("\n", end)
    return f"{before}{new}{'' if new.endswith(end) else end}{''.join(lines[line:])}"


def _edited(place: Place, text: str, arguments: Mapping[str, Any]) -> str:
    """`text` with one replacement."""
    old, new = (str(arguments[name]).replace("\r\n", "\n") for name in ("old_string", "new_string"))
    count = text.replace("\r\n", "\n").count(old) if old else 0
    if not count:
        raise UsageProblem(f"old_string is not in {place.path.name!r}", hint="read the file, and copy the text exactly")
    if count > 1 and not arguments.get("replace_all"):
        hint = "add lines around it until it occurs once, or set replace_all"
        raise UsageProblem(f"old_string occurs {count} times", hint=hint)
    if old == new:
        hint = "nothing would change; write changes line ends"
        raise UsageProblem("old_string and new_string are the same", hint=hint)
    # `text` with every `old` replaced by `new`, both with `\n` as line ends. Only what differs is replaced, and its
    # line ends become those of the lines that it replaces or that follow it; all other lines stay as they are
    returns = [hit.start() - at for at, hit in enumerate(_RETURN.finditer(text))]  # where each is without `\r`
    plain = text.replace("\r\n", "\n")
    begin = same_start(old, new)
    end = same_start(old[begin:][::-1], new[begin:][::-1])
    parts: list[str] = []
    done, at = 0, plain.find(old)
    while at >= 0:
        first, last = (one + bisect_left(returns, one) for one in (at + begin, at + len(old) - end))
        parts += text[done:first], _with_ends(new[begin : len(new) - end], text, first, last)
        done, at = last, plain.find(old, at + len(old))
    return "".join((*parts, text[done:]))


def _with_ends(new: str, text: str, first: int, last: int) -> str:
    """`new` with the line ends of `text[first:last]` in their order, and after them, or without any, with those of the
    line there."""
    if "\n" not in new:
        return new
    ends = _END.findall(text[first:last])
    near = text.find("\n", last) if "\n" in text[last:] else text.rfind("\n", 0, first)
    ends = ends or ["\r\n" if near > 0 and text[near - 1] == "\r" else "\n"]
    lines = new.split("\n")
    rest = (ends[min(at, len(ends) - 1)] + line for at, line in enumerate(lines[1:]))
    return "".join((lines[0], *rest))


def now_in(place: Place) -> bytes | None:
    """The file's content, or None if it does not exist."""
    try:
        data = read_inside(place.root, place.parts, LARGEST + 1)
    except NotFound:
        return None
    if len(data) > LARGEST:
        raise Refused(f"{place.path.name!r} is over {LARGEST // 1024**2} MiB", hint="use a script", reason="too-large")
    return data


def _encoded(text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    if len(data) > LARGEST:
        raise Refused(f"the text is over {LARGEST // 1024**2} MiB", hint="write it in parts", reason="too-large")
    return data


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
