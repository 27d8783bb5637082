"""How a skill gets out: its folder, its receipt and its records go together (LIF-5)."""

from __future__ import annotations

import os
from typing import Any

from navigator_kernel.adapters.database import locked
from navigator_kernel.errors import Refused, SkillNotFound
from navigator_kernel.ports import Writer
from navigator_kernel.skills.change import Change
from navigator_kernel.skills.discover import suggestions
from navigator_kernel.skills.install import derive, refuse_damage
from navigator_kernel.skills.place import Place, refuse_escape
from navigator_kernel.skills.receipts import read_receipts, receipt_path
from navigator_kernel.text import clean, fold


def uninstall(name: str, place: Place, writer: Writer) -> dict[str, Any]:
    """`{name, level, path}`; the mapping keeps its row (X-35).

    SkillNotFound with suggestions, Refused for a folder without a receipt.
    """
    refuse_damage(place)
    refuse_escape(place)
    known = owned(name, place)
    with locked(place.guard), Change(writer, place.inner) as change:
        folder = place.skills / known
        if folder.is_symlink():
            raise Refused(f"{str(folder)!r} is a link that navigator did not make", hint="remove the link yourself")
        change.remove(folder)
        change.remove(receipt_path(place, known))
        derive(place, change, gone=known)
        change.keep()
    return {"name": known, "level": place.level, "path": place.told(folder)}


def owned(name: str, place: Place) -> str:
    """The name of the installed skill that `name` means."""
    receipts = read_receipts(place)
    folded = {fold(known): known for known in receipts}
    if known := folded.get(fold(name)):
        return known
    folders = _folders(place)
    if unmanaged := next((folder for folder in folders if fold(folder) == fold(name)), None):
        path = str(place.skills / unmanaged)
        raise Refused(f"{path!r} was not installed by navigator", hint="remove the folder yourself")
    near = suggestions(name, [*receipts, *folders])
    hint = f"did you mean {', '.join(near)}?" if near else "navigator skill list shows what is installed"
    shown = clean(name, lines=False)
    raise SkillNotFound(f"no skill called {shown!r} is installed", hint=hint, suggestions=near)


def _folders(place: Place) -> list[str]:
    try:
        with os.scandir(place.skills) as entries:
            return [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []
