"""Understands paths as models write them: in quotes, as `file://`, from the skill's own name on, in another case. For a
path that means no file, it lists the names that are near it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from navigator_kernel.adapters.files.project_files import holds_secrets
from navigator_kernel.adapters.files.tree import walk_inside
from navigator_kernel.errors import KernelError, NotFound, Refused
from navigator_kernel.text import escape_controls
from navigator_kernel.tools.obeyed import is_closed
from navigator_kernel.tools.places import LONGEST, Place, Places

NAMES = 8  # names in an answer
ENTRIES = 5_000  # entries of a folder in which a name is looked for
# The folders in which coding agents keep skills: the parts before a skill's name that lead nowhere else
_BEFORE = frozenset("/ ~ $HOME mnt home root skills public private user users examples plugins data".split())
_BEFORE |= frozenset(".claude .agents .codex .cursor .gemini .github .opencode .config agent claude".split())


def plain_path(written: str) -> str:
    """A path without quotes or space around it, and without `file://` before it."""
    path = written.strip()
    while len(path) > 1 and path[0] == path[-1] and path[0] in "\"'`":
        path = path[1:-1].strip()
    if path[:7].lower() == "file://":
        path = unquote(path[7:].removeprefix("localhost"))
    return path or written


def meant_place(places: Places, written: str) -> Place:
    """The place that a path means for reading and running. One that is not there as it is written may begin with the
    skill's name or folder, or differ in case from exactly one file; what is closed stays closed.

    Refused as by `Places.find`.
    """
    path = plain_path(written)
    try:
        place = places.find(path)
    except Refused as refused:
        if refused.data.get("reason") != "outside" or (inside := _of_skill(places, path)) is None:
            raise
        return inside
    if os.path.lexists(place.path):
        return place
    return _of_skill(places, path) or _in_other_case(places, path) or place


def _of_skill(places: Places, path: str) -> Place | None:
    """The file of the skill's folder that a path from the skill's name on means: `pdf/forms.md`,
    `/mnt/skills/public/pdf/forms.md`."""
    if not path or len(path) > LONGEST:
        return None
    parts, name = PurePosixPath(os.path.normpath(path)).parts, places.folder.name.casefold()
    for at, part in enumerate(parts):
        if part.casefold() == name:
            rest = str(places.folder.joinpath(*parts[at + 1 :]))
            if ".." in parts or (at and "skills" not in parts[:at]):
                return None
            found = places.find(rest)
            return found if os.path.lexists(found.path) else _alike(places, places.folder, parts[at + 1 :])
        if part.casefold() not in _BEFORE and not (at == 2 and parts[1].casefold() in {"home", "users"}):
            return None
    return None


def _in_other_case(places: Places, path: str) -> Place | None:
    for base in (places.workspace, places.folder, places.project):
        absolute = Path(os.path.normpath(path)) if Path(path).is_absolute() else None
        if absolute is not None and not absolute.is_relative_to(base):
            continue
        parts = (absolute.relative_to(base) if absolute else PurePosixPath(os.path.normpath(path))).parts
        if parts and ".." not in parts and (found := _alike(places, base, parts)) is not None:
            return found
    return None


def _alike(places: Places, base: Path, parts: tuple[str, ...]) -> Place | None:
    """The only place below `base` whose path has these parts in some case."""
    found = [base]
    for part in parts:
        found = [folder / name for folder in found for name in _names(folder) if name.casefold() == part.casefold()]
        if len(found) > NAMES:
            return None
    return places.find(str(found[0])) if len(found) == 1 and found[0] != base else None


def _names(folder: Path) -> list[str]:
    """The names in a folder; none in a link to one."""
    if folder.is_symlink():
        return []
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, ENTRIES)]
    except OSError:
        return []


def with_near(error: NotFound, place: Place) -> NotFound:
    """The error for a file that does not exist, with the names near it as its hint."""
    near = list(_near(place))
    if not near:
        return error
    folder = escape_controls(str(place.path.parent))
    names = ", ".join(map(escape_controls, near))
    return NotFound(error.message, hint=f"in {folder}: {names}", **error.data)


def _near(place: Place) -> Iterator[str]:
    """The open names in the file's folder that are most like its own, then others; then files of its name below."""
    parts = place.parts[:-1]
    try:
        entries = list(islice(walk_inside(place.root, parts, deep=False), ENTRIES))
        below = list(islice(walk_inside(place.root, parts), ENTRIES)) if place.zone != "project" else []
    except (KernelError, OSError):
        return
    names = {f"{one.path}/" if one.is_folder else one.path: None for one in entries if _is_open(place, parts, one.path)}
    wanted = place.path.name
    same = [one.path for one in below if one.path.rpartition("/")[2].casefold() == wanted.casefold()]
    plain = {name.rstrip("/").casefold(): name for name in names}
    like = [plain[one] for one in get_close_matches(wanted.casefold(), plain, NAMES, 0.5)]
    yield from islice(dict.fromkeys((*same, *like, *names)), NAMES)


def _is_open(place: Place, parts: tuple[str, ...], name: str) -> bool:
    if place.zone != "project":
        return True
    whole = (*parts, name)
    return not is_closed(whole) and not holds_secrets(whole)
