"""Links in `.agents/skills` to skills in `.claude/skills`, for agents that read only the former."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.errors import Refused
from navigator_kernel.skills.formats.names import NAME
from navigator_kernel.text import fold

if TYPE_CHECKING:
    from navigator_kernel.skills.catalog.place import InstallScope


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
    if (held := _said(path)) != link_text(place, name):
        hint = f"move it away, or, for a copy of ours, navigator skill uninstall {name} --target agents"
        raise Refused(
            f"{str(path)!r} already exists and is not a link to {place.told(place.skills / name)!r}", hint=hint
        )
    return held


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
