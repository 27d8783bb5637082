"""Decides whether a skill's files may lie on this disk at all, before any of them is written."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

from navigator_kernel.adapters.git import TreeEntry
from navigator_kernel.errors import Refused
from navigator_kernel.skills.discover import REGULAR, Found
from navigator_kernel.text import clean

FILE_LIMIT = 10 * 1024 * 1024  # bytes
SKILL_LIMIT = 50 * 1024 * 1024  # bytes
COUNT_LIMIT = 2_000  # files
DEPTH_LIMIT = 12  # folders
PART_LIMIT = 200  # bytes of one name
LINK = "120000"
_MODES = {"100644": 0o644, "100755": 0o755}


class Planned(NamedTuple):
    """A file that is to be written: where, what, and how."""

    path: str
    oid: str
    mode: int


def passed(skill: Found, links: Mapping[str, bytes]) -> tuple[Planned, ...]:
    """The files of `skill`, links inside it replaced by what they point to. `links` holds the text of each by id.

    Refused with every problem in `data["problems"]`.
    """
    entries = {skill.inner(entry): entry for entry in skill.entries}
    problems = [*_amounts(entries), *_collisions(entries)]
    planned: list[Planned] = []
    for path, entry in sorted(entries.items()):
        target = _followed(path, entries, links) if entry.mode == LINK else entry
        problem = _path_problem(path) or _kind_problem(entry, target)
        if problem or target is None:
            problems.append(f"{clean(path, lines=False)!r} {problem}")
        else:
            planned.append(Planned(path, target.oid, _MODES[target.mode]))
    if problems:
        shown = "; ".join(problems[:3])
        raise Refused(f"skill {skill.shown!r} is not safe to write: {shown}", hint="tell its author", problems=problems)
    return tuple(planned)


def _amounts(entries: Mapping[str, TreeEntry]) -> list[str]:
    problems = []
    if len(entries) > COUNT_LIMIT:
        problems.append(f"it has {len(entries)} files, over {COUNT_LIMIT}")
    if max(path.count("/") for path in entries) > DEPTH_LIMIT:
        problems.append(f"it nests deeper than {DEPTH_LIMIT} folders")
    return problems


def _collisions(entries: Mapping[str, TreeEntry]) -> list[str]:
    """Names that some file systems take for one: they differ in case or in Unicode form only."""
    spelled: dict[str, str] = {}
    problems: dict[str, None] = {}
    for path in entries:
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            name = "/".join(parts[:depth])
            first = spelled.setdefault(unicodedata.normalize("NFC", name).casefold(), name)
            if first != name:
                pair = f"{clean(name, lines=False)!r} and {clean(first, lines=False)!r}"
                problems[f"{pair} are one name on some disks"] = None
    return list(problems)


def _followed(path: str, entries: Mapping[str, TreeEntry], links: Mapping[str, bytes]) -> TreeEntry | None:
    """The regular file inside the skill that a link leads to, or None."""
    for _ in range(8):
        entry = entries.get(path)
        if entry is None or entry.mode != LINK:
            return entry
        target = links.get(entry.oid, b"").decode("utf-8", errors="surrogateescape")
        if not target or target.startswith("/"):
            return None
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return None


def _path_problem(path: str) -> str:
    if path.startswith("/") or clean(path, lines=False) != path or "\t" in path or "\\" in path:
        return "is no plain path"
    for part in path.split("/"):
        if part in {"", ".", ".."}:
            return "leads elsewhere"
        if part.casefold().rstrip(". ") in {".git", "git~1"}:
            return "belongs to git"
        if len(part.encode()) > PART_LIMIT:
            return "has too long a name"
    return ""


def _kind_problem(entry: TreeEntry, target: TreeEntry | None) -> str:
    if entry.kind == "commit":
        return "is a submodule"
    if entry.mode == LINK and (target is None or target.mode not in REGULAR):
        return "is a link that leads out of the skill or to no file"
    return "" if entry.mode == LINK or entry.mode in REGULAR else "is no regular file"
