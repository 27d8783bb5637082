"""Finds the skills in a tree listing, in one pass, at any depth."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from navigator_kernel.adapters.git import TreeEntry
from navigator_kernel.errors import SkillNotFound, UsageProblem
from navigator_kernel.text import clean, fold

REGULAR = frozenset({"100644", "100755"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A folder with a manifest. `folder` is its path in the tree, empty for the top; `name` the folder's own name
    (the repository's for the top); `entries` all that lies below it, the manifest among them."""

    folder: str
    name: str
    manifest: TreeEntry
    entries: tuple[TreeEntry, ...]
    tree: str

    @property
    def shown(self) -> str:
        return self.folder or "."

    def inner(self, entry: TreeEntry) -> str:
        """The entry's path inside the skill."""
        return entry.path[len(self.folder) + 1 :] if self.folder else entry.path


Named = Callable[[Found], str]  # the name that its manifest declares; empty where it cannot be read
Alike = Callable[[Found], object]  # equal for equal contents


def find_skills(entries: Sequence[TreeEntry], *, top: str, subpath: str = "", tree: str = "") -> tuple[Found, ...]:
    """Every skill below `subpath`, by path; `top` names the one at the top, whose git tree is `tree`.

    SkillNotFound where there is none.
    """
    ordered = sorted(entries, key=lambda entry: entry.path.split("/"))
    manifests: dict[str, TreeEntry] = {}
    for entry in ordered:
        folder, _, name = entry.path.rpartition("/")
        if name.lower() == "skill.md" and entry.mode in REGULAR and _below(folder, subpath):
            manifests.setdefault(folder, entry)
    if not manifests:
        raise SkillNotFound(f"no SKILL.md lies in {subpath or top!r}", hint="check the source and its path")
    trees = {entry.path: entry.oid for entry in ordered if entry.kind == "tree"}
    spans = _spans(ordered, manifests)
    return tuple(
        Found(
            folder=folder,
            name=folder.rpartition("/")[2] or top,
            manifest=manifest,
            entries=tuple(entry for entry in ordered[slice(*spans[folder])] if entry.kind != "tree"),
            tree=trees.get(folder, tree),
        )
        for folder, manifest in manifests.items()
    )


def choose(found: Sequence[Found], wanted: Sequence[str], named: Named, alike: Alike) -> tuple[Found, ...]:
    """The skills that `wanted` names, each by folder name, path, glob or declared name, in that order.

    SkillNotFound with suggestions for one that is not there, UsageProblem for one that means several.
    """
    chosen: dict[str, Found] = {}
    for word in wanted:
        for skill in _meant(word, found, named, alike):
            chosen.setdefault(skill.folder, skill)
    return tuple(chosen.values())


def distinct(found: Iterable[Found], alike: Alike) -> tuple[Found, ...]:
    """`found` with identical ones of the same name collapsed; UsageProblem where different ones share a name."""
    groups: dict[str, list[Found]] = {}
    for skill in found:
        groups.setdefault(fold(skill.name), []).append(skill)
    return tuple(_only(group[0].name, group, alike) for group in groups.values())


def _below(folder: str, subpath: str) -> bool:
    return not subpath or folder == subpath or folder.startswith(f"{subpath}/")


def _spans(ordered: Sequence[TreeEntry], folders: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Where the entries of each folder begin and end: sorted by parts, they lie together."""
    open_at: dict[str, int] = {"": 0}
    spans = {"": (0, len(ordered))}
    wanted = set(folders)
    before: list[str] = []
    for at, entry in enumerate([*ordered, None]):
        parts = entry.path.split("/")[:-1] if entry else []
        same = _shared(before, parts)
        for depth in range(len(before), same, -1):
            folder = "/".join(before[:depth])
            spans[folder] = (open_at.pop(folder), at)
        for depth in range(same + 1, len(parts) + 1):
            open_at["/".join(parts[:depth])] = at
        before = parts
    return {folder: span for folder, span in spans.items() if folder in wanted}


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many parts both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _meant(word: str, found: Sequence[Found], named: Named, alike: Alike) -> tuple[Found, ...]:
    path = word.strip("/").removeprefix("./")
    if word in {".", "./"}:
        path = ""
    hits = [skill for skill in found if skill.folder == path and (path == "" or "/" in path)]
    if not hits and re.search(r"[*?\[]", word):
        globbed = [skill for skill in found if fnmatchcase(skill.name, word) or fnmatchcase(skill.folder, path)]
        if globbed:
            return distinct(globbed, alike)
    folded = fold(path)
    hits = hits or [skill for skill in found if fold(skill.name) == folded or skill.folder == path]
    hits = hits or [skill for skill in found if fold(named(skill)) == folded]
    if not hits:
        raise _unknown(word, [named(skill) or skill.name for skill in found])
    return (_only(word, hits, alike),)


def _only(word: str, hits: Sequence[Found], alike: Alike) -> Found:
    if len(hits) == 1 or len({alike(skill) for skill in hits}) == 1:
        return min(hits, key=lambda skill: (skill.folder.count("/"), len(skill.folder), skill.folder))
    paths = sorted(skill.shown for skill in hits)
    hint = f"name one by its path: {clean(', '.join(paths), lines=False)}"
    raise UsageProblem(f"{word!r} is the name of {len(hits)} skills", hint=hint, paths=paths)


def _unknown(word: str, names: Sequence[str]) -> SkillNotFound:
    near = suggestions(word, names)
    hint = f"did you mean {', '.join(near)}?" if near else "navigator skill info lists what is there"
    return SkillNotFound(f"no skill here is called {clean(word, lines=False)!r}", hint=hint, suggestions=near)


def suggestions(word: str, names: Iterable[str], k: int = 3) -> list[str]:
    """The `k` names nearest to `word`, nearest first."""
    import difflib  # 5 ms, and only for a mistake

    folded = {fold(name): clean(name, lines=False) for name in names}
    return [folded[near] for near in difflib.get_close_matches(fold(word), list(folded), k, 0.5)]
