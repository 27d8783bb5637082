"""Merges a lock that git could not merge, entry by entry, and saves the entries of a lock that cannot be read."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from navigator_kernel.errors import ConsentNeeded, KernelError
from navigator_kernel.skills.install.lockfile import CONFLICT, Entries, entries_in
from navigator_kernel.text import clean, lazy_compile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Side = Literal["ours", "theirs"]
_ENTRY = lazy_compile(rb'^    ("(?:[^"\\\n]|\\[^\n])*"): (\{\n(?:      [^\n]*\n)*    \}),?$', re.MULTILINE)


class Sides(NamedTuple):
    """The entries of both sides of a merge, and of their common base, None if it is not known."""

    base: Entries | None
    ours: Entries
    theirs: Entries


class EntryConflict(Struct, frozen=True, kw_only=True):
    """An entry that both sides changed: the commit that each side wants, empty if it removed the skill."""

    name: str
    ours: str
    theirs: str


def merged(sides: Sides, take: Mapping[str, Side]) -> Entries:
    """The entries of both sides: what one side changed, added or removed is so. ConsentNeeded, with `conflicts`, for
    an entry that both changed to something else, unless `take` names a side for it."""
    base, ours, theirs = sides
    entries: dict[str, Mapping[str, object]] = {}
    conflicts: list[EntryConflict] = []
    for name in sorted({*ours, *theirs}):
        one, other = ours.get(name), theirs.get(name)
        if one == other:
            chosen = one
        elif base is None and (one is None or other is None):
            chosen = other if one is None else one  # added or removed: nobody knows, and an addition is easy to undo
        elif base is not None and one == base.get(name):
            chosen = other
        elif base is not None and other == base.get(name):
            chosen = one
        elif name in take:
            chosen = one if take[name] == "ours" else other
        else:
            conflicts.append(EntryConflict(name=clean(name, lines=False), ours=_wanted(one), theirs=_wanted(other)))
            continue
        if chosen is not None:
            entries[name] = chosen
    if conflicts:
        names = ", ".join(repr(conflict.name) for conflict in conflicts)
        message = f"both sides of the merge changed {names} in the lock; nothing was changed"
        hint = "navigator skill repair --take NAME=ours, or --take NAME=theirs, for each of them"
        raise ConsentNeeded(message, hint=hint, subject="lock", conflicts=conflicts)
    return entries


def _wanted(entry: Mapping[str, object] | None) -> str:
    if entry is None:
        return ""
    return clean(str(entry.get("commit") or entry.get("digest") or ""), lines=False)[:19]


def sides_of(lock: Path, content: bytes) -> Sides | None:
    """The sides of a lock with conflict markers: as git's index keeps them, else as the text has them. None for a lock
    without markers."""
    if not CONFLICT.search(content):
        return None
    staged = _staged(lock)
    if staged is not None:
        return staged
    base, ours, theirs = _split(content)
    return Sides(saved(base) if base is not None else None, saved(ours), saved(theirs))


def saved(content: bytes) -> Entries:
    """The entries that can be read in the bytes of a lock that as a whole cannot: each stands in lines of its own."""
    entries: dict[str, Mapping[str, object]] = {}
    for match in _ENTRY.finditer(content.replace(b"\r\n", b"\n")):
        with suppress(ValueError, RecursionError):
            entries[json.loads(match[1])] = json.loads(match[2])
    return entries


def _split(content: bytes) -> tuple[bytes | None, bytes, bytes]:
    """The texts of the base, if the markers have it, and of both sides."""
    texts: tuple[list[bytes], list[bytes], list[bytes]] = ([], [], [])
    into: Sequence[int] = (0, 1, 2)
    has_base = False
    for line in content.splitlines(keepends=True):
        if line.startswith(b"<<<<<<< "):
            into = (1,)
        elif line.startswith(b"||||||| ") and into == (1,):
            into, has_base = (0,), True
        elif line.rstrip() == b"=======" and into in {(0,), (1,)}:
            into = (2,)
        elif line.startswith(b">>>>>>> "):
            into = (0, 1, 2)
        else:
            for at in into:
                texts[at].append(line)
    base, ours, theirs = (b"".join(lines) for lines in texts)
    return (base if has_base else None), ours, theirs


def _staged(lock: Path) -> Sides | None:
    """The sides in the index of git's repository, if it has them and git is here: it only reads."""
    from navigator_kernel.adapters.sources.git_process import GitProcess

    top = next((folder for folder in lock.parents if (folder / ".git").exists()), None)
    if top is None:
        return None
    path = lock.relative_to(top).as_posix()
    with TemporaryDirectory(prefix="navigator-") as scratch, suppress(KernelError, OSError):
        git = GitProcess(folder=top, scratch=lock.__class__(scratch), url=top.as_uri(), timeout=20.0)
        git.prepare()
        listed = git.run("ls-files", "--unmerged", "-z", "--full-name", "--", f":(top,literal){path}").decode()
        ids = {line.split()[2]: line.split()[1] for line in listed.split("\0") if line}
        if {"2", "3"} & ids.keys():  # a side that has no lock wants nothing
            blobs = {stage: git.run("cat-file", "blob", oid) for stage, oid in ids.items()}
            base, ours, theirs = (entries_in(blobs[stage], lock) if stage in blobs else {} for stage in "123")
            return Sides(base, ours, theirs)
    return None
