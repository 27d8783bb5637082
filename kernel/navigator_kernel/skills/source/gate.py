"""Decides whether a skill's files may be written to disk, before any of them is written."""

from __future__ import annotations

import re
import unicodedata
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from navigator_kernel.adapters.sources.git import TreeEntry
from navigator_kernel.errors import Refused
from navigator_kernel.skills.source.discover import LINK as LINK
from navigator_kernel.skills.source.discover import REGULAR, BrokenPath, Found, Tree
from navigator_kernel.text import clean, lazy_compile
from navigator_kernel.values.receipt import FILE_LIMIT as FILE_LIMIT
from navigator_kernel.values.resource import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

SKILL_LIMIT = 50 * 1024 * 1024  # bytes
COUNT_LIMIT = 2_000  # files
DEPTH_LIMIT = 12  # folders
PART_LIMIT = 200  # bytes of one name

_MODES = {"100644": 0o644, "100755": 0o755}
_DEVICE = lazy_compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])", re.IGNORECASE)
_GIT = frozenset({".git", "git~1", ".git::$index_allocation"})


class PlannedFile(NamedTuple):
    """A file to write: its path, content and mode."""

    path: str
    oid: str
    mode: int


class _Problem(NamedTuple):
    code: str
    text: str


def admit(skill: Found, links: Mapping[str, bytes], tree: Tree | None = None) -> tuple[PlannedFile, ...]:
    """The files of `skill`; each link is replaced by the file, or the files of the folder, that it points to. A link
    that leads to nothing is left out (`dead_links` names it).

    `links` holds the text of each link by id. Links may point to anything in `tree`; without it, only to entries of
    the skill. Refused with every problem in `data["problems"]`, and their kinds in `data["codes"]`.
    """
    within = tree or Tree(skill.entries)
    items = list(islice(_files(skill, skill.entries, links, within), max(COUNT_LIMIT, len(skill.entries)) + 1))
    items = [(path, item) for path, item in items if not _is_dead(skill, path, item)]
    paths = [path for path, _ in items if path.count("/") <= DEPTH_LIMIT]
    problems: list[_Problem] = []
    if len(items) > COUNT_LIMIT:
        problems.append(_Problem("too-many", f"it has {len(items)} files, over {COUNT_LIMIT}"))
    if any(path.count("/") > DEPTH_LIMIT for path, _ in items):
        problems.append(_Problem("too-deep", f"it nests deeper than {DEPTH_LIMIT} folders"))
    problems += [*_collisions(paths), *_repositories(paths)]
    planned: list[PlannedFile] = []
    for path, item in sorted(items, key=lambda item: item[0]):
        problem = _path_problem(path)
        if problem is None and isinstance(item, BrokenPath):
            problem = _Problem(item.code, str(item))
        elif problem is None and isinstance(item, TreeEntry) and item.kind == "commit":
            problem = _Problem("submodule", "is a submodule")
        elif problem is None and isinstance(item, TreeEntry) and item.mode not in REGULAR:
            problem = _Problem("special-file", "is not a regular file")
        if problem:
            problems.append(_Problem(problem.code, f"{clean(path, lines=False)!r} {problem.text}"))
        elif isinstance(item, TreeEntry):
            planned.append(PlannedFile(path, item.oid, _MODES[item.mode]))
    if problems:
        texts = [problem.text for problem in problems]
        message = f"skill {clean(skill.shown, lines=False)!r} is not safe to write: {'; '.join(texts[:3])}"
        codes = sorted({problem.code for problem in problems})
        raise Refused(message, hint="tell its author", reason="unsafe-files", problems=texts, codes=codes)
    return tuple(planned)


def dead_links(skill: Found, links: Mapping[str, bytes], tree: Tree) -> tuple[Diagnostic, ...]:
    """A warning for each link of `skill` that is left out: it leads to nothing, or to a folder of its author's own
    machine."""
    led = [entry for entry in skill.entries if entry.mode == LINK]
    dead = (
        sorted({path for path, item in _files(skill, led, links, tree) if _is_dead(skill, path, item)}) if led else ()
    )
    return tuple(
        Diagnostic(
            code="dead-link",
            level="warning",
            path=clean(path, lines=False),
            message="it is a link to nothing in the repository, and was left out",
        )
        for path in dead
    )


def _is_dead(skill: Found, path: str, item: TreeEntry | BrokenPath) -> bool:
    is_manifest = path == skill.inner(skill.manifest)
    return isinstance(item, BrokenPath) and item.code in {"link-dead", "link-dangling"} and not is_manifest


def unread_links(skills: Iterable[Found], links: Mapping[str, bytes], tree: Tree) -> tuple[str, ...]:
    """The ids of links that must be read before `admit` can resolve them. Call it again after reading them, because
    their targets may be links too."""
    ids: dict[str, None] = {}
    for skill in skills:
        led = (entry for entry in skill.entries if entry.mode == LINK)
        for _, item in islice(_files(skill, led, links, tree), COUNT_LIMIT + 1):
            if isinstance(item, BrokenPath) and item.oid:
                ids[item.oid] = None
    return tuple(ids)


def _files(
    skill: Found, entries: Iterable[TreeEntry], links: Mapping[str, bytes], tree: Tree
) -> Iterator[tuple[str, TreeEntry | BrokenPath]]:
    for entry in entries:
        yield from _led(skill.inner(entry), entry, (skill.folder,), links, tree)


def _led(
    inner: str, entry: TreeEntry, through: tuple[str, ...], links: Mapping[str, bytes], tree: Tree
) -> Iterator[tuple[str, TreeEntry | BrokenPath]]:
    """The entries of a folder by path in the skill, with links resolved; `through` are the folders on the path."""
    if entry.mode != LINK:
        yield inner, entry
        return
    try:
        real = tree.real(entry.path, links)
        target = tree.at(real)
        if target is None or target.kind != "tree":
            yield inner, target or BrokenPath("link-dangling", "is a link to nothing")
            return
        outer = (*through, entry.path)
        if len(outer) > DEPTH_LIMIT or any(f"{folder}/".startswith(f"{real}/") or not real for folder in outer):
            raise BrokenPath("link-loop", "is a link to a folder that holds it, or leads through too many")
    except BrokenPath as astray:
        yield inner, astray
        return
    files = tree.below(real)
    if not files:
        yield inner, BrokenPath("link-dangling", "is a link to an empty folder")
    for below in files:
        yield from _led(f"{inner}/{below.path[len(real) + 1 :]}", below, (*through, real), links, tree)


def _collisions(paths: Sequence[str]) -> list[_Problem]:
    """Names that some file systems do not distinguish: they differ only in case or Unicode form."""
    spelled: dict[str, str] = {}
    files = set(paths)
    problems: dict[str, None] = {}
    for path in paths:
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            name = "/".join(parts[:depth])
            first = spelled.setdefault(unicodedata.normalize("NFC", name).casefold(), name)
            if first != name:
                pair = f"{clean(name, lines=False)!r} and {clean(first, lines=False)!r}"
                problems[f"{pair} are one name on some disks"] = None
            elif depth < len(parts) and name in files:
                problems[f"{clean(name, lines=False)!r} is a file and a folder"] = None
    return [_Problem("collision", text) for text in problems]


def _repositories(paths: Iterable[str]) -> list[_Problem]:
    """Folders that git takes for bare repositories, which could contain hooks."""
    marks: dict[str, set[str]] = {}
    for path in paths:
        parts = path.casefold().split("/")
        for depth, part in enumerate(parts):
            if part in {"objects", "refs"} or (part == "head" and depth == len(parts) - 1):
                marks.setdefault("/".join(parts[:depth]), set()).add(part)
    bare = [clean(folder, lines=False) or "." for folder, names in marks.items() if len(names) == 3]
    return [_Problem("nested-git", f"{folder!r} is a git repository") for folder in bare]


def _path_problem(path: str) -> _Problem | None:
    if path.startswith("/") or clean(path, lines=False) != path or "\t" in path or "\\" in path:
        return _Problem("path-odd", "is not a plain path")
    for part in path.split("/"):
        if part in {"", ".", ".."}:
            return _Problem("traversal", "leads elsewhere")
        if part.casefold().rstrip(". ") in _GIT:
            return _Problem("nested-git", "belongs to git")
        if part.startswith("-"):
            return _Problem("option-like", "could be read as an option")
        if part.endswith((".", " ")):
            return _Problem("path-odd", "ends in a dot or a space")
        if _DEVICE.fullmatch(part.partition(".")[0].rstrip(" ")):
            return _Problem("device-name", "is the name of a device on some systems")
        if len(part.encode()) > PART_LIMIT:
            return _Problem("path-long", "has too long a name")
    return None
