"""An install scope: the folder of skills of one level, its records, and our links to its skills."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from navigator_kernel.adapters.files.database import own_lock
from navigator_kernel.errors import UNWRITABLE, KernelError, Refused
from navigator_kernel.skills.catalog.listing import INNER
from navigator_kernel.skills.formats.names import NAME
from navigator_kernel.text import fold

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from navigator_kernel.ports import Writer
    from navigator_kernel.skills.options import Target
    from navigator_kernel.values.resource import Level


PATIENCE = 60.0  # seconds to wait for a change that is under way


# Git keeps receipts with their skills; other files can be rebuilt, or belong to this machine
_IGNORED = b"""\
# Made by navigator. These files belong to this machine, or are rebuilt when needed.
/.gitignore
/skills.db
/.navigator-*.tmp
/.navigator/*
!/.navigator/*.json
"""


# A checkout with other line ends would be another skill than the receipt's
_ATTRIBUTES = b"""\
# Made by navigator: git keeps the bytes of skills as they are, also on Windows.
* -text
"""


class InstallScope(NamedTuple):
    """A level's folder of skills. Shown paths are relative to `base`; `lock` is the lock file for people. `shared` is
    the folder for links to these skills: `.agents/skills` for `.claude/skills`.
    """

    level: Level
    base: Path
    skills: Path
    lock: Path
    target: Target = "claude"
    shared: Path | None = None

    @property
    def database(self) -> Path:
        return self.skills / "skills.db"

    @property
    def inner(self) -> Path:
        """Receipts, staged and removed folders, and the lock between processes."""
        return self.skills / INNER

    @property
    def guard(self) -> Path:
        return self.inner / "lock"

    @property
    def locks(self) -> Path:
        """Earlier lock files, which `rollback` returns to."""
        return self.inner / "locks"

    @property
    def backups(self) -> Path:
        """The folder of backups of edited skills that an update replaced."""
        return self.inner / "backups"

    def told(self, path: Path) -> str:
        """`path` relative to `base`, or unchanged if it lies elsewhere."""
        return path.relative_to(self.base).as_posix() if path.is_relative_to(self.base) else str(path)


def scope_at(
    level: Level, skills: Path, root: Path, *, target: Target = "claude", shared: Path | None = None
) -> InstallScope:
    """The place of `level`: the lock file of a project's `.claude/skills` lies at its root, any other beside its folder
    of skills."""
    if level != "project":
        beside = skills.parent / "skills.lock.json"
        return InstallScope(level=level, base=skills.parent, skills=skills, lock=beside, target=target, shared=shared)
    if target == "agents":
        return InstallScope(
            level=level, base=root, skills=skills, lock=skills.parent / "skills.lock.json", target=target
        )
    return InstallScope(level=level, base=root, skills=skills, lock=root / "skills.lock.json", shared=shared)


def prepare(place: InstallScope, writer: Writer) -> None:
    """Makes the folder of records; in a project, first makes a `.gitignore` for files that belong only to this machine
    (X-42). An existing `.gitignore` stays as it is."""
    _create(".gitignore", _IGNORED, place, writer)
    writer.make_folder(place.inner)


def keep_bytes(place: InstallScope, writer: Writer) -> None:
    """Makes a `.gitattributes` beside the skills of a project, so that git does not change them. An existing one stays
    as it is."""
    _create(".gitattributes", _ATTRIBUTES, place, writer)


def drop_attributes(place: InstallScope, writer: Writer) -> None:
    """Removes the `.gitattributes` that `keep_bytes` made, unless somebody changed it."""
    path = place.skills / ".gitattributes"
    with suppress(OSError):
        if place.level == "project" and not path.is_symlink() and path.read_bytes() == _ATTRIBUTES:
            writer.remove(path)


def _create(name: str, data: bytes, place: InstallScope, writer: Writer) -> None:
    if place.level == "project" and not os.path.lexists(place.skills / name):
        writer.create(place.skills / name, data, mode=0o644)


@contextmanager
def at_rest(place: InstallScope) -> Iterator[None]:
    """Holds the lock of changes, so that no command is between two steps of one. Nothing is held where nothing was
    installed yet, or where this person cannot change anything."""
    with ExitStack() as locks:
        if place.guard.exists():
            try:
                locks.enter_context(own_lock(place.guard, timeout=PATIENCE))
            except KernelError as error:
                if error.data.get("errno") not in UNWRITABLE:
                    raise
        yield


def refuse_escape(place: InstallScope) -> None:
    """Refused if a link leads a level's folder out of its base: a repository must not choose where to write."""
    real, base = os.path.realpath(place.inner), os.path.realpath(place.base)
    if not Path(real).is_relative_to(base):
        raise Refused(f"{str(place.skills)!r} leads out of {str(place.base)!r}", hint="remove the link")


def link_path(place: InstallScope, name: str) -> Path:
    """The path of the link to skill `name`; Refused for a scope without links."""
    return _shared(place) / name


def link_text(place: InstallScope, name: str) -> str:
    """The link's target: `../../.claude/skills/<name>`."""
    return f"{_above(place)}/{name}"


def held_link(place: InstallScope, name: str) -> str | None:
    """The target of our link, or None if there is no entry; Refused for a foreign entry."""
    path = link_path(place, name)
    if not os.path.lexists(path):
        return None
    if (target := _said(path)) != link_text(place, name):
        hint = f"move it away, or, for a copy of ours, navigator skill uninstall {name} --target agents"
        raise Refused(
            f"{str(path)!r} already exists and is not a link to {place.told(place.skills / name)!r}", hint=hint
        )
    return target


def own_links(place: InstallScope) -> frozenset[str]:
    """The names of the skills that our links lead to, even if a skill is missing."""
    if place.shared is None or not place.shared.is_dir() or _astray(place):
        return frozenset()
    above = _above(place)
    with os.scandir(place.shared) as entries:
        links = [entry for entry in entries if entry.is_symlink() and NAME.fullmatch(entry.name)]
    return frozenset(link.name for link in links if _said(Path(link.path)) == f"{above}/{link.name}")


def dangling(place: InstallScope) -> list[str]:
    """Our links to missing skills."""
    return sorted(name for name in own_links(place) if not os.path.lexists(place.skills / name))


def told_links(place: InstallScope, linked: Collection[str], name: str) -> list[str]:
    """The link to `name` for an answer, if it is one of `linked`."""
    return [place.told(link_path(place, name))] if name in linked else []


def refuse_unlinkable(place: InstallScope, names: Iterable[str]) -> None:
    """Raises Refused if a link to one of `names` would lead elsewhere, or if a foreign entry is in its place."""
    for name in names:
        if why := _astray(place):
            hint = "remove the link yourself, or leave --link out"
            raise Refused(f"{place.told(_shared(place))!r} {why}", hint=hint)
        held_link(place, name)
        for other in _shared(place).iterdir() if _shared(place).is_dir() else ():
            if other.name != name and fold(other.name) == fold(name):
                raise Refused(f"{str(other)!r} already exists and looks like {name!r}", hint="move it away first")


def _astray(place: InstallScope) -> str:
    """Why links in the shared folder would not lead to the skills, or empty."""
    shared, skills = os.path.realpath(_shared(place)), os.path.realpath(place.skills)
    if shared == skills:
        return f"is {place.told(place.skills)!r} itself"
    return "" if os.path.realpath(Path(shared, _above(place))) == skills else "leads elsewhere through a link"


def _shared(place: InstallScope) -> Path:
    if place.shared is None:
        raise Refused(f"nothing can be linked to {str(place.skills)!r}", hint="leave --link out")
    return place.shared


def _above(place: InstallScope) -> str:
    """The folder of the skills as a link's target."""
    return os.path.relpath(place.skills, _shared(place))


def _said(path: Path) -> str:
    """The target of a link, or empty for other entries."""
    try:
        return str(path.readlink())
    except OSError:
        return ""
