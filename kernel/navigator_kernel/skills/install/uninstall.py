"""Removes skills: folder, receipt and records together (LIF-5)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from navigator_kernel.errors import Refused, SkillNotFound
from navigator_kernel.skills.catalog.place import InstallScope, at_rest, refuse_escape
from navigator_kernel.skills.catalog.receipts import read_receipt, read_receipts
from navigator_kernel.skills.install.apply import check_changes, commit_changes, refuse_damage
from navigator_kernel.skills.install.links import own_links, told_links
from navigator_kernel.text import clean, fold, suggestions

if TYPE_CHECKING:
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.options import InstallOptions
    from navigator_kernel.skills.source.address import Source
    from navigator_kernel.values.receipt import Receipt


def uninstall(
    names: Sequence[str],
    place: InstallScope,
    deps: InstallDeps,
    options: InstallOptions,
    *,
    source: Source | None = None,
) -> dict[str, Any]:
    """Removes all of the skills, with our links to them, or none: `{level, target, dry_run, skills: [{name, path,
    links}]}`. `source` means all skills that came from it. The mapping keeps its rows (X-35).

    SkillNotFound with suggestions, Refused for a folder without a receipt.
    """
    refuse_damage(place)
    refuse_escape(place)
    known = [owned(name, place) for name in names] + (_from(source, place) if source else [])
    known = list(dict.fromkeys(known))
    for name in known:
        if (place.skills / name).is_symlink():
            path = str(place.skills / name)
            raise Refused(f"{path!r} is a link that navigator did not make", hint="remove the link yourself")

    linked = own_links(place)

    def decide(receipts: Mapping[str, Receipt]) -> tuple[tuple[()], list[str]]:
        gone = [name for name in known if name not in receipts]
        if gone:
            raise SkillNotFound(f"no skill called {gone[0]!r} is installed", hint="another command removed it")
        return (), known

    if options.dry_run:
        check_changes(place, decide)
    else:
        commit_changes(place, deps, decide)
    told = [
        {"name": name, "path": place.told(place.skills / name), "links": told_links(place, linked, name)}
        for name in known
    ]
    return {"level": place.level, "target": place.target, "dry_run": options.dry_run, "skills": told}


def owned(name: str, place: InstallScope) -> str:
    """The installed skill that `name` means; Damaged if its receipt cannot be read."""
    damaged: list[str] = []
    with at_rest(place):  # a folder without a receipt may be half an install
        receipts, folders = read_receipts(place, damaged), _folders(place)
    folded = {fold(known): known for known in (*receipts, *damaged)}
    if known := folded.get(fold(name)):
        read_receipt(place, known)
        return known
    if unmanaged := next((folder for folder in folders if fold(folder) == fold(name)), None):
        path = place.skills / unmanaged
        hint = "uninstall what it leads to, or remove the link" if path.is_symlink() else "remove the folder yourself"
        raise Refused(f"{str(path)!r} was not installed by navigator", hint=hint)
    near = suggestions(name, [*receipts, *folders])
    hint = f"did you mean {', '.join(near)}?" if near else "navigator skill list shows the installed skills"
    shown = clean(name, lines=False)
    raise SkillNotFound(f"no skill called {shown!r} is installed", hint=hint, suggestions=near)


def _from(source: Source, place: InstallScope) -> list[str]:
    found = [name for name, receipt in read_receipts(place).items() if receipt.source == source.url]
    if not found:
        raise SkillNotFound(
            f"no skill of {source.label!r} is installed", hint="navigator skill list --json names sources"
        )
    return found


def _folders(place: InstallScope) -> list[str]:
    try:
        with os.scandir(place.skills) as entries:
            return [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []
