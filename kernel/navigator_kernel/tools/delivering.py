"""The tool `deliver`: copies files of any type from the workspace to the person's project."""

from __future__ import annotations

import mimetypes
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from navigator_kernel.adapters.files.changes import Sized, sealed
from navigator_kernel.adapters.files.tree import read_inside, walk_inside
from navigator_kernel.errors import NotFound, Refused, UsageProblem
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, escape_controls
from navigator_kernel.tools.places import Place, Places, is_obeyed, is_program, refuse_closed

LARGEST = 200 * 1024 * 1024  # bytes of one file
MOST, ALL = 200, 500 * 1024 * 1024  # files of one call, and their bytes
SPARE = 64 * 1024 * 1024  # bytes that stay free on the disk
TEXT = 24_000  # characters of a text that a question shows; a longer one is named with its size, as a picture is
HEAD = 4096  # bytes that tell the type of a file
# Other names that models use for the two arguments
_NAMES = {
    "from": ("source", "src", "file_path", "path", "file", "files", "paths", "file_paths", "filepaths", "sources"),
    "to": ("destination", "dest", "dst", "target", "target_path", "project_path", "destination_path"),
}
# First bytes of files, by type; the files of office programs are archives, and are known by their names
_TYPES: Mapping[bytes, str] = {
    b"\x7fELF": "program", b"MZ": "program", b"\xcf\xfa\xed\xfe": "program", b"\xca\xfe\xba\xbe": "program",
    b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"%PDF": "application/pdf",
    b"SQLite format 3": "application/vnd.sqlite3", b"\x1f\x8b": "application/gzip",
}  # fmt: skip
_ARCHIVE, _BYTES = b"PK\x03\x04", "application/octet-stream"


class Delivery(NamedTuple):
    """One file to copy: the source in the workspace with its digest, the place in the project, and the file that is
    there now, or None."""

    source: Sized
    place: Place
    now: Sized | None
    kind: str

    @property
    def path(self) -> str:
        return "/".join(self.place.parts)

    @property
    def is_same(self) -> bool:
        return self.now is not None and self.now.digest == self.source.digest

    @property
    def is_alone(self) -> bool:
        """Whether other programs run or obey the file, so that the person is asked about it alone."""
        head = read_inside(self.source.root, self.source.parts, HEAD)
        return self.kind == "program" or is_obeyed(self.place.parts) or is_program(self.place.path, head)


def renamed(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments under the names of this tool, one path as a list of one."""
    given = dict(arguments)
    for name, others in _NAMES.items():
        for other in others:
            if name not in given and other in given:
                given[name] = given.pop(other)
    if isinstance(given.get("from"), str):
        given["from"] = [given["from"]]
    return given


def planned(places: Places, arguments: Mapping[str, Any]) -> tuple[Delivery, ...]:
    """What is to be copied, in the order of the arguments; reads every file once, for its digest.

    Refused for a source outside the workspace, for a place that is closed, and for more than fits."""
    written = str(arguments.get("to") or "")
    sources = [one for path in arguments["from"] for one in _sources(places, path)]
    if not sources:
        raise UsageProblem("there is nothing to deliver", hint="name files of the workspace; list shows them")
    if len(sources) > MOST:
        raise UsageProblem(f"these are {len(sources)} files", hint=f"deliver at most {MOST} at a time, or an archive")
    parts = _target(places.project, written)
    folder = places.project.joinpath(*parts)
    is_folder = len(sources) > 1 or sources[0][1].count("/") > 0 or written.endswith("/") or not parts
    found: list[Delivery] = []
    for (root, below), name in sources:
        inner = tuple(name.split("/")) if is_folder or folder.is_dir() else ()
        target = (*parts, *inner)
        refuse_closed(target, "/".join(target))
        found.append(_delivery(root, below, Place("project", places.project, target)))
    if len({one.place.parts for one in found}) < len(found):
        raise UsageProblem("two files would get the same name", hint="deliver them one by one, with other names")
    _refuse_too_large(found, places.project)
    return tuple(found)


def question(found: Sequence[Delivery], language: Language) -> str:
    """A line for each file: where it goes, what it is, and what it replaces."""
    lines = []
    for one in found:
        facts = {"path": escape_controls(one.path), "size": f"{one.source.size:,}", "kind": one.kind}
        if one.now is None:
            lines.append(say("deliver.new", language, **facts))
        else:
            lines.append(say("deliver.replaces", language, **facts, before=f"{one.now.size:,}"))
    return "\n".join(lines)


def is_text(kind: str) -> bool:
    return kind.startswith("text") or kind in {"application/json", "application/xml", "application/toml"}


def place_in_project(project: Path, path: str, name: str) -> Place:
    """The place of the file `name` at an absolute path in the project, or in the folder there. Refused for a path
    outside, and for one that is closed."""
    parts = _target(project, path)
    if path.endswith("/") or not parts or project.joinpath(*parts).is_dir():
        parts = (*parts, name.rpartition("/")[2])
    refuse_closed(parts, "/".join(parts))
    return Place("project", project, parts)


def _sources(places: Places, written: str) -> Iterator[tuple[tuple[Path, tuple[str, ...]], str]]:
    """The files that a path means, each with the name under which it is delivered; of a folder, all in it."""
    place = places.find(written)
    if place.zone not in {"workspace", "earlier"}:
        hint = "write makes files of the project; deliver copies those of the workspace"
        raise Refused(f"{escape_controls(written)!r} is not in the workspace", hint=hint, reason="outside")
    if not place.path.is_dir() or place.path.is_symlink():
        yield (place.root, place.parts), place.parts[-1] if place.parts else ""
        return
    base = f"{place.parts[-1]}/" if place.parts else ""
    for one in walk_inside(place.root, place.parts):
        yield (place.root, (*place.parts, *one.path.split("/"))), f"{base}{one.path}"


def _target(project: Path, written: str) -> tuple[str, ...]:
    """The parts of the path in the project; a relative path begins at its top."""
    if "\x00" in written or len(written) > 4096:
        raise Refused("the path is too long", hint="give a path in the project", reason="path")
    path = Path(os.path.normpath(project / written))
    if not path.is_relative_to(project):
        hint = f"deliver copies to {project}, for example to 'reports/'"
        raise Refused(f"{escape_controls(written)!r} is outside the project", hint=hint, reason="outside")
    return path.relative_to(project).parts


def _delivery(root: Path, parts: tuple[str, ...], place: Place) -> Delivery:
    size = root.joinpath(*parts).lstat().st_size if os.path.lexists(root.joinpath(*parts)) else 0
    if size > LARGEST:
        hint = "pack it smaller, or tell the person where it is"
        raise Refused(f"{'/'.join(parts)!r} is over {LARGEST // 1024**2} MiB", hint=hint, reason="too-large")
    source = sealed(root, parts)
    try:
        now: Sized | None = sealed(place.root, place.parts)
    except NotFound:
        now = None
    return Delivery(source, place, now, kind_of(place.parts[-1], read_inside(root, parts, HEAD)))


def kind_of(name: str, head: bytes) -> str:
    """The type of a file by its first bytes, else by its name."""
    by_name = mimetypes.guess_type(name, strict=False)[0] or ""
    for start, kind in _TYPES.items():
        if head.startswith(start):
            return kind
    if head.startswith(_ARCHIVE):
        return by_name if by_name.startswith("application/") else "application/zip"
    try:
        head[: len(head) - 3 if len(head) == HEAD else None].decode("utf-8")
    except UnicodeDecodeError:
        return by_name if by_name and not is_text(by_name) and by_name not in _TYPES.values() else _BYTES
    return _BYTES if b"\x00" in head else by_name if is_text(by_name) else "text/plain"


def _refuse_too_large(found: Sequence[Delivery], project: Path) -> None:
    """Raises Refused if the disk does not hold the copies, with the earlier content of what they replace."""
    wanted = sum(one.source.size for one in found)
    if wanted > ALL:
        hint = "deliver fewer, or pack them into an archive"
        raise Refused(f"these files have over {ALL // 1024**2} MiB together", hint=hint, reason="too-large")
    free = shutil.disk_usage(project).free
    wanted += sum(one.now.size for one in found if one.now) + SPARE
    if wanted > free:
        message = f"the disk has {free // 1024**2} MiB left, and the files need {wanted // 1024**2} MiB"
        raise Refused(message, hint="the person has to make room", reason="full")
