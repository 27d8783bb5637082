"""The tools that write: a whole file, or an exact replacement. Both are planned first and shown as a diff."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, NamedTuple

from navigator_kernel.adapters.files.inside import read_inside
from navigator_kernel.errors import NotFound, Refused, UsageProblem
from navigator_kernel.tools.places import Place

LARGEST = 4 * 1024 * 1024  # bytes of a file to write or edit
CONTEXT = 3  # lines around a change
LONGEST = 200_000  # characters of a text for which a diff is computed


class Change(NamedTuple):
    """A file to write; `before` is None for a new file."""

    place: Place
    before: bytes | None
    after: bytes

    @property
    def diff(self) -> str:
        return unified("/".join(self.place.parts), self.before, self.after)


def unified(name: str, before: bytes | None, after: bytes) -> str:
    """A change as a unified diff, or only its size if it is long; the caller makes invisible characters visible."""
    texts = [_text(data) for data in (before or b"", after)]
    if sum(map(len, texts)) > LONGEST:
        return f"(a file of {len(before or b''):,} bytes becomes one of {len(after):,})"
    old, new = (text.splitlines(keepends=True) for text in texts)
    head = "/dev/null" if before is None else f"a/{name}"
    lines = difflib.unified_diff(old, new, head, f"b/{name}", n=CONTEXT)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def written(place: Place, arguments: Mapping[str, Any]) -> Change:
    """The change that makes `content` the whole file."""
    after = _encoded(str(arguments["content"]))
    return Change(place, now_in(place), after)


def edited(place: Place, arguments: Mapping[str, Any]) -> Change:
    """The change that replaces `old_string` with `new_string`: in exactly one place, or in every one with
    `replace_all`.

    UsageProblem if the text is not there, or is there more than once, with the number of times.
    """
    before = now_in(place)
    if before is None:
        raise NotFound(f"there is no {place.path.name!r}", hint="write makes a new file")
    old, new = str(arguments["old_string"]), str(arguments["new_string"])
    try:
        text = before.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{place.path.name!r} is not UTF-8 text", hint="change it with a script") from error
    count = text.count(old) if old else 0
    if not count:
        raise UsageProblem(f"old_string is not in {place.path.name!r}", hint="read the file, and copy the text exactly")
    if count > 1 and not arguments.get("replace_all"):
        hint = "add lines around it until it occurs once, or set replace_all"
        raise UsageProblem(f"old_string occurs {count} times", hint=hint)
    if old == new:
        raise UsageProblem("old_string and new_string are the same", hint="nothing would change")
    return Change(place, before, _encoded(text.replace(old, new)))


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


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
