"""Handles skills with the same name: finds copies, and names the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from navigator_kernel.skills.formats.names import NAME
from navigator_kernel.text import fold, lazy_compile

if TYPE_CHECKING:
    from navigator_kernel.skills.source.found import Found

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
    held = list(skills)
    copies: dict[str, Found] = {}
    for group in _by_name((skill, skill.name) for skill in held):
        copies |= copies_in(group, contents)
    return [skill for skill in held if skill.folder not in copies]


def copies_in(group: Sequence[Found], contents: Contents) -> dict[str, Found]:
    """Maps the folder of each copy among skills of one name to its original.

    Every file of a copy is also in the original; of two equal skills, the first by `nearness` is the original.
    """
    if len(group) < 2:
        return {}
    files = {skill.folder: contents(skill) for skill in group}
    kept: list[Found] = []
    copies: dict[str, Found] = {}
    for skill in sorted(group, key=lambda skill: (-len(files[skill.folder]), nearness(skill))):
        original = next((one for one in kept if files[skill.folder] <= files[one.folder]), None)
        if original is None:
            kept.append(skill)
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

    Of several skills with the same name, the first by `_rank` keeps it. `top` is the name of the repository.
    """
    told: dict[str, Label] = {}
    others: list[Found] = []
    for group in _by_name((skill, named(skill)) for skill in skills):
        name = fold(named(group[0]))
        first, *rest = sorted(group, key=lambda skill: _rank(skill, name))
        told[first.folder] = Label(named(first))
        others += rest
    taken = {fold(label.name) for label in told.values()}
    for skill in sorted(others, key=nearness):
        free = (label for label in _qualified(skill, named(skill), top) if fold(label.name) not in taken)
        told[skill.folder] = next(free, Label(""))
        taken.add(fold(told[skill.folder].name))
    return told


def _rank(skill: Found, name: str) -> tuple[bool, bool, bool, tuple[bool, bool, bool, int, str]]:
    """The sort key for keeping `name`: a skill in a plugin's manifest comes before one whose folder has the name."""
    return skill.role != "skill", not skill.declared, fold(skill.name) != name, nearness(skill)


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
