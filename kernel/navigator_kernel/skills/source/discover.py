"""Finds the skills in a tree listing, at any depth, tells copies and skills of one name apart, and selects by name."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from navigator_kernel.adapters.sources.git import TreeEntry
from navigator_kernel.errors import SkillNotFound, UsageProblem, unknown_name
from navigator_kernel.skills.formats.names import NAME
from navigator_kernel.skills.formats.plugin_manifests import Plugins, plugin_files
from navigator_kernel.text import clean, fold, lazy_compile, suggestions

Role = Literal["skill", "example", "test", "hidden"]


class Found(NamedTuple):
    """A folder with a manifest. `folder` is its path in the tree, empty for the top; `name` is the folder's own name
    (the repository's for the top); `entries` are all entries below it. A manifest that is a link has its target's id.

    `also` are links of the tree that lead to the folder, `plugin` is the plugin that it belongs to, `declared` is true
    if a plugin's manifest names it, `role` follows from its place: "all" means only those with the role `skill`.
    """

    folder: str
    name: str
    manifest: TreeEntry
    entries: tuple[TreeEntry, ...]
    tree: str
    also: tuple[str, ...] = ()
    plugin: str = ""
    role: Role = "skill"
    declared: bool = False

    @property
    def shown(self) -> str:
        return self.folder or "."

    def lies_at(self, path: str) -> bool:
        return path in (self.folder, *self.also)

    def inner(self, entry: TreeEntry) -> str:
        """The entry's path inside the skill."""
        return entry.path[len(self.folder) + 1 :] if self.folder else entry.path


Contents = Callable[["Found"], frozenset[object]]  # the files of a skill; equal bytes give equal values
_UNTOLD = frozenset({"skills", "plugins", "src"})  # folder names that say nothing about the contents
_NOT_PLAIN = lazy_compile(r"[^a-z0-9]+")


class Label(NamedTuple):
    """The name under which a skill is installed. `qualified` is `owner/name` if another skill has its own name; an
    empty `name` means that none is free."""

    name: str
    qualified: str = ""


def nearness(skill: Found) -> tuple[bool, bool, bool, int, str]:
    """The sort key among skills of one name: no example, in a plugin's manifest, outside an agent's own folder, near
    the top of the tree; last, the path decides."""
    own = skill.folder.startswith(".") or "/." in skill.folder
    depth = skill.folder.count("/") if skill.folder else -1
    return skill.role != "skill", not skill.declared, own, depth, skill.folder


def originals(skills: Iterable[Found], contents: Contents) -> list[Found]:
    """The `skills` without copies in other folders of the same name, in order."""
    every = list(skills)
    copies: dict[str, Found] = {}
    for group in _by_name((skill, skill.name) for skill in every):
        copies |= copies_in(group, contents)
    return [skill for skill in every if skill.folder not in copies]


def copies_in(group: Sequence[Found], contents: Contents) -> dict[str, Found]:
    """Maps the folder of each copy among skills of one name to its original.

    Every file of a copy is also in the original; of two equal skills, the first by `nearness` is the original.
    """
    if len(group) < 2:
        return {}
    files = {skill.folder: contents(skill) for skill in group}
    distinct: list[Found] = []
    copies: dict[str, Found] = {}
    for skill in sorted(group, key=lambda skill: (-len(files[skill.folder]), nearness(skill))):
        original = next((one for one in distinct if files[skill.folder] <= files[one.folder]), None)
        if original is None:
            distinct.append(skill)
        else:
            copies[skill.folder] = original
    return copies


def all_copies(skills: Sequence[Found], named: Callable[[Found], str], contents: Contents) -> dict[str, Found]:
    """Like `copies_in`, for skills of all names."""
    copies: dict[str, Found] = {}
    for group in _by_name((skill, named(skill)) for skill in skills):
        copies |= copies_in(group, contents)
    return copies


def labels(skills: Sequence[Found], named: Callable[[Found], str], top: str) -> dict[str, Label]:
    """Maps the folder of each skill to a unique name, or to none; `skills` must not contain copies.

    Of several skills with the same name, a proper one keeps it, one in a plugin's manifest before one whose folder has
    the name, else the first by `nearness`. `top` is the name of the repository.
    """
    by_folder: dict[str, Label] = {}
    others: list[Found] = []
    for group in _by_name((skill, named(skill)) for skill in skills):
        name = fold(named(group[0]))
        ranks = {
            skill.folder: (skill.role != "skill", not skill.declared, fold(skill.name) != name, nearness(skill))
            for skill in group
        }
        first, *rest = sorted(group, key=lambda skill: ranks[skill.folder])
        by_folder[first.folder] = Label(named(first))
        others += rest
    taken = {fold(label.name) for label in by_folder.values()}
    for skill in sorted(others, key=nearness):
        free = (label for label in _qualified(skill, named(skill), top) if fold(label.name) not in taken)
        by_folder[skill.folder] = next(free, Label(""))
        taken.add(fold(by_folder[skill.folder].name))
    return by_folder


def _by_name(named: Iterable[tuple[Found, str]]) -> Iterable[list[Found]]:
    groups: dict[str, list[Found]] = {}
    for skill, name in named:
        groups.setdefault(fold(name), []).append(skill)
    return groups.values()


def _qualified(skill: Found, name: str, top: str) -> Iterator[Label]:
    """The names that a skill may have instead of its own, best first: its plugin's name with its own; its folder's name
    if different; then the names of the folders above it, and of the repository, each with its own."""
    if skill.plugin and (label := _joined(skill.plugin, name)):
        yield label
    if fold(skill.name) != fold(name) and NAME.fullmatch(skill.name):
        yield Label(skill.name, skill.name)
    above = [part for part in skill.folder.split("/")[-2::-1] if part and part not in _UNTOLD]
    for owner in (*above, top):
        if label := _joined(owner, name):
            yield label


def _joined(owner: str, name: str) -> Label | None:
    """The qualified name, or None if it would be too long or the owner has no usable letter."""
    word = _plain(owner)
    joined = f"{word}-{_plain(name) if name.isascii() else name}"
    return Label(joined, f"{owner}/{name}") if word and NAME.fullmatch(joined) else None


def _plain(name: str) -> str:
    """`name` in the letters that the specification allows."""
    return _NOT_PLAIN.sub("-", fold(name)).strip("-")


REGULAR = frozenset({"100644", "100755"})
LINK = "120000"
LINK_LIMIT = 2_000  # links that discovery reads
HOP_LIMIT = 16  # links in the resolution of one path
PART_LIMIT = 256  # names left to resolve in one path

_HOSTS = frozenset({
    ".claude", ".claude-plugin", ".agents", ".gemini", ".opencode", ".codex", ".cursor", ".github", ".curated",
    ".goose", ".qwen", ".kimi-code", ".kimi", ".windsurf",
})  # fmt: skip
_ROLES: Mapping[str, Role] = {
    **dict.fromkeys(("example", "examples", "sample", "samples", "template", "templates"), "example"),
    **dict.fromkeys(("test", "tests", "__tests__", "testdata", "fixture", "fixtures"), "test"),
    "node_modules": "hidden",
}
_SKILL_FILE = lazy_compile(r"(?i)(^|/)skill\.md$")
_SYSTEM = frozenset(
    "bin boot dev etc lib lib64 library net private proc root run sbin sys system tmp usr var windows".split()
) | {"", "."}  # folders of every system
_WILDCARD = lazy_compile(r"[*?\[]")


class BrokenPath(Exception):
    """A path that leads nowhere in its tree: `code` says why; `oid` is a link that must be read first."""

    def __init__(self, code: str, text: str, oid: str = "") -> None:
        super().__init__(text)
        self.code, self.oid = code, oid


class Tree:
    """The entries of a tree by path, including folders that the listing leaves out."""

    def __init__(self, entries: Iterable[TreeEntry]) -> None:
        self._by_path = {entry.path: entry for entry in entries}
        self._files = sorted(
            (entry for entry in self._by_path.values() if entry.kind != "tree"), key=lambda entry: entry.path.split("/")
        )
        self._parts = [entry.path.split("/") for entry in self._files]

    def at(self, path: str) -> TreeEntry | None:
        """The entry at a path, or None. A folder without an entry has an empty id."""
        entry = self._by_path.get(path)
        if entry is None and (path == "" or self._span(path) != (0, 0)):
            return TreeEntry(path=path, mode="040000", kind="tree", oid="")
        return entry

    def below(self, folder: str) -> Sequence[TreeEntry]:
        """The files in `folder` at any depth, by path."""
        return self._files[slice(*self._span(folder))]

    def real(self, path: str, links: Mapping[str, bytes]) -> str:
        """`path` with all links resolved; `links` has their targets by id. BrokenPath if it leads out of the tree."""
        ahead = path.split("/")[::-1]
        done: list[str] = []
        hops = 0
        while ahead:
            part = ahead.pop()
            if part == ".." and not done:
                raise BrokenPath("link-escape", "is a link that leads out")
            if part in {"", ".", ".."}:
                done = done[:-1] if part == ".." else done
                continue
            done.append(part)
            reached = "/".join(done)
            if (entry := self.at(reached)) is None:
                code = "link-escape" if ".git" in reached.lower().split("/") else "link-dangling"
                raise BrokenPath(code, "is a link that leads out or to nothing")
            if entry.kind == "commit":
                raise BrokenPath("link-submodule", "is a link into a submodule")
            if entry.mode == LINK:
                hops += 1
                done.pop()
                if entry.oid not in links:
                    raise BrokenPath("link-unread", "is a link that was not read", entry.oid)
                text = links[entry.oid][:1025].decode("utf-8", errors="surrogateescape")
                if not text or len(text) > 1024 or text.startswith("/") or "\0" in text:
                    raise BrokenPath("link-dead" if _is_elsewhere(text) else "link-escape", "is a link that leads out")
                ahead += text.split("/")[::-1]
            if hops > HOP_LIMIT or len(ahead) > PART_LIMIT:
                raise BrokenPath("link-loop", "is a link that leads in a circle")
        return "/".join(done)

    def _span(self, folder: str) -> tuple[int, int]:
        if not folder:
            return 0, len(self._files)
        parts = folder.split("/")
        start = bisect_left(self._parts, [*parts, ""])
        end = bisect_left(self._parts, [*parts[:-1], f"{parts[-1]}\0"])
        return (start, end) if start < end else (0, 0)


def _is_elsewhere(target: str) -> bool:
    """Whether an absolute path can only be meant for its author's machine: it is neither below this person's home nor
    in a folder that every system has. Judged by its letters, because to look at a path can already mount a network."""
    parts = target.split("/")
    plain = target.startswith("/") and "\0" not in target and ".." not in parts and len(target) <= 1024
    own = PurePosixPath("/" + target.lstrip("/")).is_relative_to(Path.home())
    return plain and not own and next(filter(None, parts), "").lower() not in _SYSTEM


Named = Callable[[Found], str]  # the name in the skill's manifest; empty if it cannot be read


def candidate_manifests(entries: Iterable[TreeEntry]) -> tuple[str, ...]:
    """The ids of small files that `find_skills` and `read_plugins` can use."""
    listed = tuple(entries)
    links = []
    for entry in listed:
        name = entry.path.rpartition("/")[2]
        if entry.mode == LINK and (name.lower() == "skill.md" or "." not in name.lstrip(".")):
            links.append(entry.oid)  # it may stand for a manifest or a folder
    return tuple(dict.fromkeys([*(entry.oid for entry in plugin_files(listed)), *links[:LINK_LIMIT]]))


def find_skills(
    entries: Iterable[TreeEntry],
    *,
    top: str,
    subpath: str = "",
    tree: str = "",
    links: Mapping[str, bytes] | None = None,
    plugins: Plugins | None = None,
    label: str = "",
) -> tuple[Found, ...]:
    """Every skill below `subpath`, by path; `top` names the one at the top, whose git tree is `tree`.

    `links` contains the texts of links by id; without it no link is followed. SkillNotFound, which names `label`, if
    there is no skill.
    """
    whole = Tree(entries)
    scope = subpath
    with suppress(BrokenPath):
        scope = whole.real(subpath, links) if links else subpath
    manifests = _manifests(whole, links)
    places: dict[str, list[str]] = {folder: [] for folder in manifests if _below(folder, scope)}
    places |= _linked(whole, scope, manifests, links or {})
    if not places:
        hint = "check the source and its path"
        if submodules := [clean(entry.path, lines=False) for entry in whole.below(scope) if entry.kind == "commit"]:
            hint = f"no submodule is read ({', '.join(submodules[:3])}): install from its own repository"
        raise SkillNotFound(f"there is no SKILL.md in {subpath or label or top!r}", hint=hint)
    skills, plugins = [], plugins or Plugins()
    for folder in sorted(places, key=lambda folder: folder.split("/")):
        at, paths = whole.at(folder), (folder, *places[folder])
        roles = [_role(path[len(scope) :] if _below(path, scope) else path) for path in paths]
        declared = any(map(plugins.declares, paths))
        one = Found(
            folder=folder,
            name=folder.rpartition("/")[2] or top,
            manifest=manifests[folder],
            entries=tuple(whole.below(folder)),
            tree=at.oid if at and folder else tree,
            also=tuple(places[folder]),
            plugin=next(filter(None, map(plugins.owner, paths)), ""),
            role="skill" if declared or "skill" in roles else roles[0],  # the most open of its places counts
            declared=declared,
        )
        skills.append(one)
    return tuple(skills)


def select_skills(
    found: Sequence[Found],
    wanted: Sequence[str],
    named: Named,
    contents: Contents,
    usable: Callable[[Found], bool] = lambda _skill: True,
) -> tuple[Found, ...]:
    """The skills that `wanted` names, each by folder name, path, glob, `plugin:name`, `plugin/name` or declared name,
    in the order of `wanted`. A skill that is not `usable` is chosen only if no other one matches.

    SkillNotFound with suggestions for an unknown name, UsageProblem for a name of several skills.
    """
    chosen: dict[str, Found] = {}
    for word in wanted:
        hits = _meant(word, found, named)
        if not _WILDCARD.search(word):
            hits = (_only(word, hits, contents, usable),)
        for skill in originals(hits, contents):
            chosen.setdefault(skill.folder, skill)
    return tuple(chosen.values())


def _manifests(whole: Tree, links: Mapping[str, bytes] | None) -> dict[str, TreeEntry]:
    """The manifest of each folder. A broken link is kept, so that its skill is refused and not overlooked."""
    manifests: dict[str, TreeEntry] = {}
    for entry in whole.below(""):
        folder, _, name = entry.path.rpartition("/")
        if name.lower() != "skill.md":
            continue
        if entry.mode == LINK and links is not None:
            target = None
            with suppress(BrokenPath):
                target = whole.at(whole.real(entry.path, links))
            is_file = target is not None and target.mode in REGULAR
            manifests.setdefault(folder, target._replace(path=entry.path) if target and is_file else entry)
        elif entry.mode in REGULAR:
            manifests.setdefault(folder, entry)
    return manifests


def _linked(
    whole: Tree, scope: str, manifests: Mapping[str, TreeEntry], links: Mapping[str, bytes]
) -> dict[str, list[str]]:
    """The links below `scope` to folders with a manifest, by folder."""
    also: dict[str, list[str]] = {}
    for entry in whole.below(scope) if links else ():
        if entry.mode != LINK or entry.oid not in links:
            continue
        try:
            folder = whole.real(entry.path, links)
        except BrokenPath:
            continue
        if folder in manifests and folder and not _below(entry.path, folder):
            also.setdefault(folder, []).append(entry.path)
    return also


def _below(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def _role(path: str) -> Role:
    """The role that the path's folder names suggest. A skill itself may be called `test`."""
    parts = [part for part in path.lower().split("/") if part]
    if len(parts) > 1 and parts[-2:] in (["skills", "test"], ["skills", "tests"]):
        parts.pop()
    for part in parts:
        if part in _ROLES:
            return _ROLES[part]
        if part.startswith(".") and part not in _HOSTS:
            return "hidden"
    return "skill"


def _meant(word: str, skills: Sequence[Found], named: Named) -> Sequence[Found]:
    path = inner_path(word)
    if hits := [skill for skill in skills if skill.lies_at(path) and (path == "" or "/" in path)]:
        return hits
    if _WILDCARD.search(word):
        hits = [
            skill
            for skill in skills
            if fnmatchcase(skill.name, word) or any(fnmatchcase(place, path) for place in (skill.folder, *skill.also))
        ]
        if hits:  # examples, tests and hidden ones only if nothing else matches
            return [skill for skill in hits if skill.role == "skill"] or hits
    folded = fold(path)
    hits = [skill for skill in skills if fold(skill.name) == folded or skill.lies_at(path)]
    hits = [skill for skill in hits if skill.name == path] or hits  # of `Pdf` and `pdf`, the one as it is written
    hits = hits or [skill for skill in skills if any(fold(link.rpartition("/")[2]) == folded for link in skill.also)]
    mark = next((mark for mark in ":/" if mark in word), "")
    if not hits and mark:
        plugin, _, own = word.partition(mark)
        members = [skill for skill in skills if skill.plugin and fold(skill.plugin) == fold(plugin)]
        if members:
            return _meant(own, members, named)
    hits = hits or [skill for skill in skills if fold(named(skill)) == folded]
    if not hits:
        raise unknown(word, [name for skill in skills for name in (named(skill), skill.name) if name])
    return hits


def inner_path(word: str) -> str:
    """The folder that `word` names by its path, if any."""
    path = _SKILL_FILE.sub("", word.strip("/").removeprefix("./"))
    return "" if word in {".", "./"} else path


def _only(word: str, hits: Sequence[Found], contents: Contents, usable: Callable[[Found], bool]) -> Found:
    """The one skill that is meant: copies count once, a skill comes before an example of its name, a usable one before
    an unusable one, and the nearest one before those further away."""
    meant = [skill for skill in hits if skill.role == "skill"] or hits
    if len(meant) > 1:
        meant = [skill for skill in meant if usable(skill)] or meant
        copies = copies_in(meant, contents)
        meant = sorted((skill for skill in meant if skill.folder not in copies), key=nearness)
    if len(meant) == 1 or nearness(meant[0])[:-1] < nearness(meant[1])[:-1]:
        return meant[0]
    paths = sorted(skill.shown for skill in meant)
    hint = f"name one by its path: {clean(', '.join(paths), lines=False)}"
    raise UsageProblem(f"{word!r} is the name of {len(meant)} skills", hint=hint, paths=paths)


def unknown(word: str, names: Sequence[str]) -> SkillNotFound:
    """The error for a name that is not one of `names`."""
    message = f"no skill here is called {clean(word, lines=False)!r}"
    hint = "navigator skill info SOURCE lists its skills"
    return unknown_name(SkillNotFound, message, suggestions(word, names), hint=hint)
