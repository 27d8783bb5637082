"""A transaction over installed skills: all of it or nothing, even if the process is killed (X-38).

New folders are prepared in a scratch folder. Then the intent is written, with the old and new content of every file,
and from that moment the change counts: a process that finds an intent that nobody is working on finishes it.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct, field

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.writer import HALF_WRITTEN, read_bounded
from navigator_kernel.adapters.stores.project_state import look
from navigator_kernel.errors import Damaged, Refused
from navigator_kernel.skills.catalog.aliases import sidecar_path
from navigator_kernel.skills.catalog.place import InstallScope, refuse_escape
from navigator_kernel.skills.formats.names import NAME
from navigator_kernel.skills.install.links import held_link, link_path, link_text
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer

VERSION = 2
INTENT = "intent"  # no receipt can have this name
_SIZE_LIMIT = 256 * 1024 * 1024  # bytes of a file whose old content is kept for a rollback
_SCRATCH = lazy_compile(r"change-[0-9a-f]{16}")
_STAMP = lazy_compile(r"\w[\w.-]{0,119}")


class _Intent(Struct):
    """`folders` maps a skill to the name under which its old folder is kept, empty for none; `put` are the skills that
    get a new one. `files` maps a slot to its old and its new content, None for no file."""

    scratch: Path
    folders: dict[str, str] = field(default_factory=dict)
    put: set[str] = field(default_factory=set)
    files: dict[str, tuple[bytes | None, bytes | None]] = field(default_factory=dict)


class InstallTransaction:
    """A context under the place's lock: `folder`, `drop` and `write` collect changes, `commit` makes them. Leaving it
    without a commit leaves everything as it was."""

    def __init__(self, place: InstallScope, writer: Writer) -> None:
        self._place, self._writer = place, writer
        self._intent = _Intent(scratch=place.inner / f"change-{secrets.token_hex(8)}")
        self._data: dict[str, bytes | None] = {}

    def __enter__(self) -> Self:
        _finish(self._place, self._writer)
        _tidy(self._place, self._writer)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not os.path.lexists(self._place.inner / INTENT):
            self._writer.remove(self._intent.scratch)

    @property
    def is_empty(self) -> bool:
        """Whether a commit would change nothing."""
        return not self._intent.folders and all(
            _current(self._place, slot) == data for slot, data in self._data.items()
        )

    def folder(self, name: str, *, keep: str = "") -> Path:
        """The path for the new folder of skill `name`; the old folder is kept as `keep` below `backups`."""
        self._intent.folders[name] = keep
        self._intent.put.add(name)
        return self._intent.scratch / "new" / name

    def drop(self, name: str, *, keep: str = "") -> None:
        """Removes the folder of skill `name`."""
        self._intent.folders[name] = keep

    def write(self, slot: str, data: bytes | None) -> None:
        """Sets the new content of a slot's file, None to remove it: `lock`, `database`, `receipt/<name>`,
        `aliases/<name>`, `locks/<stamp>`, or `link/<name>`, a link whose content is its target."""
        self._data[slot] = data

    def commit(self) -> bool:
        """Commits; returns whether anything changed. After an error nothing has, or the next command completes it."""
        if self.is_empty:
            return False
        self._prepare()
        try:
            with self._writer.together():
                _apply(self._intent, self._place, self._writer, strict=True)
            self._writer.remove(self._place.inner / INTENT)
        except BaseException:
            with self._writer.together():
                _take_back(self._intent, self._place, self._writer)
            self._writer.remove(self._place.inner / INTENT)
            raise
        return True

    def _prepare(self) -> None:
        """Writes the intent; it is durable before the first move."""
        scratch = self._intent.scratch
        self._writer.make_folder(scratch)
        for slot, data in self._data.items():
            if (before := _current(self._place, slot)) != data:
                self._intent.files[slot] = before, data
        folders = {name: [name in self._intent.put, keep] for name, keep in self._intent.folders.items()}
        files = {slot: [_told(before), _told(data)] for slot, (before, data) in self._intent.files.items()}
        body = {"v": VERSION, "scratch": scratch.name, "seal": _seal(scratch), "folders": folders, "files": files}
        self._writer.write(self._place.inner / INTENT, json.dumps(body).encode())


def settle(place: InstallScope, writer: Writer) -> bool:
    """Finishes a change that another process began and did not finish; returns whether there was one.

    Waits for a change that is under way. Busy if that takes too long, Damaged if the intent cannot be read.
    """
    if not os.path.lexists(place.inner / INTENT):
        return False
    refuse_escape(place)
    with file_lock(place.guard):
        return _finish(place, writer)


def _finish(place: InstallScope, writer: Writer) -> bool:
    intent = _read(place)
    if intent is None:
        return False
    with writer.together():
        _apply(intent, place, writer, strict=False)
    writer.remove(place.inner / INTENT)
    writer.remove(intent.scratch)
    return True


def sweep(place: InstallScope, writer: Writer) -> int:
    """Removes the remains of interrupted changes, under the lock, and returns how many there were."""
    left = os.path.lexists(place.inner / INTENT)
    writer.remove(place.inner / INTENT)
    return int(left) + _tidy(place, writer)


def _tidy(place: InstallScope, writer: Writer) -> int:
    """Removes scratch folders and half-written files of killed processes, and returns how many there were."""
    left = [path for path in place.inner.glob("change-*") if _SCRATCH.fullmatch(path.name)]
    left += [path for folder in (place.inner, place.locks) for path in folder.glob(HALF_WRITTEN)]
    for path in left:
        writer.remove(path)
    files = [place.lock, place.database]
    return len(left) + sum(map(writer.sweep, files))


def _apply(intent: _Intent, place: InstallScope, writer: Writer, *, strict: bool) -> None:
    """Applies the intent; steps that are already done are skipped."""
    for name in intent.folders:
        new, old, target = _folders(intent, name, place)
        if name in intent.put and not os.path.lexists(new):
            continue  # done
        if os.path.lexists(target) and not os.path.lexists(old):
            writer.make_folder(old.parent)
            writer.move(target, old)
        if name in intent.put:
            writer.move(new, target)
    for slot, (_, data) in intent.files.items():
        _set(place, slot, data, writer, strict=strict)
    for name, keep in intent.folders.items():
        _, old, _ = _folders(intent, name, place)
        if keep and os.path.lexists(old):
            writer.make_folder(place.backups)
            writer.move(old, place.backups / keep)


def _take_back(intent: _Intent, place: InstallScope, writer: Writer) -> None:
    for name, keep in intent.folders.items():
        new, old, target = _folders(intent, name, place)
        if keep and os.path.lexists(place.backups / keep) and not os.path.lexists(old):
            writer.move(place.backups / keep, old)
        if name in intent.put and not os.path.lexists(new) and os.path.lexists(target):
            writer.move(target, new)
        if os.path.lexists(old) and not os.path.lexists(target):
            writer.move(old, target)
    for slot, (before, _) in intent.files.items():
        _set(place, slot, before, writer, strict=False)


def _folders(intent: _Intent, name: str, place: InstallScope) -> tuple[Path, Path, Path]:
    """The paths of the new folder, of the old folder's backup, and of the skill."""
    return intent.scratch / "new" / name, intent.scratch / "old" / name, place.skills / name


def _set(place: InstallScope, slot: str, data: bytes | None, writer: Writer, *, strict: bool) -> None:
    """Writes or removes a link. A foreign file in its place is kept, and Refused if `strict`."""
    path = slot_path(place, slot)
    if not _is_link(slot):
        if held_bytes(path) != data:
            writer.remove(path) if data is None else writer.write(path, data)
        return
    try:
        if _current(place, slot) != data:
            writer.remove(path) if data is None else writer.link(path, link_text(place, path.name))
    except Refused:
        if strict:
            raise


def _current(place: InstallScope, slot: str) -> bytes | None:
    """The content of a slot, None for no file; Refused if a foreign file is in place of a link."""
    path = slot_path(place, slot)
    if not _is_link(slot):
        return held_bytes(path)
    held = held_link(place, path.name)
    return None if held is None else held.encode()


def _is_link(slot: str) -> bool:
    return slot.startswith("link/")


def held_bytes(path: Path) -> bytes | None:
    try:
        return read_bounded(path, _SIZE_LIMIT)
    except FileNotFoundError:
        return None


def slot_path(place: InstallScope, slot: str) -> Path:
    """The file of a slot; Refused for other names, so that an intent cannot name anything else."""
    kind, _, name = slot.partition("/")
    single = {"lock": place.lock, "database": place.database}
    named: Mapping[str, Callable[[], Path]] = {
        "receipt": lambda: place.inner / f"{name}.json",
        "aliases": lambda: sidecar_path(place.inner, name),
        "locks": lambda: place.locks / f"{name}.json",
        "link": lambda: link_path(place, name),
    }
    path = single.get(slot)
    if kind in named and (_STAMP if kind == "locks" else NAME).fullmatch(name):
        path = named[kind]()
    if path is None:
        raise Refused(f"a change cannot write {slot!r}", hint="navigator skill repair")
    return path


def _read(place: InstallScope) -> _Intent | None:
    """The intent on disk, or None if it was written elsewhere: a repository must not supply one."""
    try:
        raw = json.loads(read_bounded(place.inner / INTENT, _SIZE_LIMIT))
        if not _is_sealed_here(raw, place):
            return None
        return _parsed(raw, place)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Refused) as error:
        hint = "navigator doctor --repair starts afresh from the folders"
        raise Damaged(f"an unfinished change of {str(place.skills)!r} cannot be read", hint=hint) from error


def _is_sealed_here(raw: Mapping[str, Any], place: InstallScope) -> bool:
    if raw["v"] != VERSION or not _SCRATCH.fullmatch(raw["scratch"]):
        raise ValueError("another version wrote it")
    scratch = place.inner / raw["scratch"]
    seen = look(str(scratch))
    return seen.inode != 0 and raw["seal"] in {_seal(scratch), f"{seen.device}:{seen.inode}"}  # of earlier versions


def _parsed(raw: Mapping[str, Any], place: InstallScope) -> _Intent:
    intent = _Intent(scratch=place.inner / raw["scratch"])
    for name, (put, keep) in raw["folders"].items():
        if not NAME.fullmatch(name) or (keep and not _STAMP.fullmatch(keep)):
            raise ValueError(f"{name!r} is not a name")
        intent.folders[name] = keep
        intent.put |= {name} if put else set()
    for slot, (before, data) in raw["files"].items():
        slot_path(place, slot)
        intent.files[slot] = _bytes(before), _bytes(data)
    return intent


def _told(data: bytes | None) -> str | None:
    """`data` as JSON text, without loss for any bytes."""
    return None if data is None else data.decode("utf-8", errors="surrogateescape")


def _bytes(told: str | None) -> bytes | None:
    return None if told is None else told.encode("utf-8", errors="surrogateescape")


def _seal(scratch: Path) -> str:
    """A value that ties an intent to this folder, also after its disk is mounted again with another device number; a
    copy or checkout has another one. Empty without the folder."""
    held = look(str(scratch))
    return f"{held.inode}:{held.born or held.device}" if held.inode else ""
