"""Compares two descriptions of the public surface, and says which version a release needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

GROWS = frozenset({"accepts", "always", "words"})  # accepted input, fields of every answer, known words
SHRINKS = frozenset({"required", "is"})  # required input, possible types of an answer
ANYTHING = "anything"

Version = tuple[int, int, int]


class Break(NamedTuple):
    """`section` and `name` say which public thing; `what` says what happened to it."""

    section: str
    name: str
    what: str

    def __str__(self) -> str:
        return (
            f"{self.section} `{self.name}`: {self.what}. Programs that use it break. Keep it, or write a file in "
            f"docs/changes/ with a line that begins with 'Breaking:' and names `{self.name}`; the next release then "
            "needs a new major version (before 1.0.0 a new minor version)"
        )


def breaks(old: dict[str, Any], new: dict[str, Any]) -> Iterator[Break]:
    """What was promised in `old` and is not in `new`."""
    for section, names in old.items():
        for name, held in names.items():
            now = new.get(section, {}).get(name)
            for what in ("was removed",) if now is None else _changes(held, now, ()):
                yield Break(section, name, what)


def additions(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """What is promised in `new` and was not in `old`."""
    for section, names in new.items():
        for name, held in names.items():
            was = old.get(section, {}).get(name)
            if was is None or any(_changes(held, was, ())):
                yield f"{section} `{name}`"


def excused(one: Break, changes: Path) -> bool:
    """Whether a file of `changes` says that this breaks."""
    said = (path.read_text("utf-8") for path in sorted(changes.glob("*.md")) if path.name != "README.md")
    lines = (line for text in said for line in text.splitlines() if line.startswith("Breaking:"))
    return any(f"`{one.name}`" in line for line in lines)


def version_of(text: str) -> Version:
    """`x.y.z` as numbers. Raises ValueError."""
    found = re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", text)
    if found is None:
        raise ValueError(f"{text!r} is not a version: write three numbers, such as 1.4.0")
    major, minor, patch = map(int, found.groups())
    return major, minor, patch


def lowest_next(last: Version, *, broken: bool, added: bool) -> Version:
    """The lowest version that may follow `last`. Before 1.0.0 the second number does what the first does after it."""
    major, minor, patch = last
    if broken and major:
        return major + 1, 0, 0
    if broken or (added and major):
        return major, minor + 1, 0
    return major, minor, patch + 1


def _changes(old: Any, new: Any, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key, held in old.items():
            if key in new:
                yield from _changes(held, new[key], (*path, key))
            else:
                yield f"{' '.join((*path, key))} was removed"
    elif isinstance(old, list) and isinstance(new, list):
        yield from _changed_set(old, new, path)
    elif old != new:
        yield f"{' '.join(path)} was {old}, is {new}"


def _changed_set(old: list[Any], new: list[Any], path: tuple[str, ...]) -> Iterator[str]:
    name = path[-1]
    if ANYTHING in (new if name in GROWS else old):
        return
    if name in GROWS:
        yield from (f"{' '.join(path)} has lost {one}" for one in old if one not in new)
    elif name in SHRINKS:
        yield from (f"{' '.join(path)} has got {one}" for one in new if one not in old)
    elif old != new:
        yield f"{' '.join(path)} was {old}, is {new}"
