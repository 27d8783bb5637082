"""Folders of resources, and their files. Every turn lists them, so this uses no Path and one `stat` per file."""

from __future__ import annotations

import os
import stat
import time
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

if TYPE_CHECKING:
    from pathlib import Path

    from navigator_kernel.values.resource import Level, ResourceType


class Root(NamedTuple):
    """A folder of resources. Skills are folders with a SKILL.md or, with `markdown`, single `.md` files; other
    resources are files. `plugin` is the name of the plugin of Claude Code that brings them, `words` its name and
    keywords."""

    path: Path
    level: Level
    type: ResourceType = "skill"
    markdown: bool = True
    plugin: str = ""
    words: tuple[str, ...] = ()


Stamp = tuple[int, int, int, int]  # mtime in ns, size, inode, ctime in ns; programs cannot set the ctime back

INNER = ".navigator"  # the folder of records beside the skills
TICK = 20_000_000  # ns, longer than a tick of a file system's clock
SIDECAR = ".aliases.json"  # suffix of a skill's file of aliases

_MANIFESTS = ("SKILL.md", "skill.md")
_NO_GROUPS = frozenset({"node_modules", "__pycache__"})
_NO_RESOURCES = frozenset({"readme.md", "skill.md"})


class Listing(Struct):
    """The resource files right below `folder`: with `markdown` `<name>.md`, with `folders` `<name>/SKILL.md` (X-3), and
    with `groups` those in a folder that has no manifest itself, `<group>/<name>/SKILL.md`."""

    folder: Path
    folders: bool
    markdown: bool = True
    groups: bool = False
    _stamp: int = -1
    _entries: tuple[str, ...] = ()
    _chosen: dict[str, str] = field(default_factory=dict)
    _groups: dict[str, Listing] = field(default_factory=dict)

    def files(self) -> list[tuple[str, Stamp]]:
        """Returns path and stamp of each file, by name."""
        top = f"{self.folder}{os.sep}"
        files: list[tuple[str, Stamp]] = []
        for name in self._names():
            if name.endswith(".md"):
                stamp = None if name.lower() in _NO_RESOURCES else _stamp(top + name)
                if stamp:
                    files.append((top + name, stamp))
            elif self.folders and (manifest := self._manifest(top + name)):
                files.append(manifest)
                self._groups.pop(name, None)
            elif group := self._group(name):
                files += group.files()
        return files

    def names(self) -> list[str]:
        """The names of the resources, from one `stat` of the folder, and one or more for each subfolder without a known
        manifest."""
        top = f"{self.folder}{os.sep}"
        known = self._names()
        markdown = [name[:-3] for name in known if name.endswith(".md") and name.lower() not in _NO_RESOURCES]
        folders = [name for name in known if not name.endswith(".md")]
        own = [name for name in folders if top + name in self._chosen or self._manifest(top + name)]
        groups = (self._group(name) for name in folders if top + name not in self._chosen)
        return markdown + own + [name for group in groups if group for name in group.names()]

    def is_as_it_was(self) -> bool:
        """Whether the folder's entries, and those of its groups, are the same as at the last check."""
        try:
            is_same = os.stat(self.folder).st_mtime_ns == self._stamp
        except OSError:
            return self._stamp == -1
        return is_same and all(group.is_as_it_was() for group in self._groups.values())

    def _group(self, name: str) -> Listing | None:
        """The listing of the group `name`; None if this folder has no groups."""
        if not self.groups or not self.folders or name in _NO_GROUPS:
            return None
        return self._groups.setdefault(name, Listing(self.folder / name, folders=True, markdown=False))

    def _names(self) -> tuple[str, ...]:
        try:
            stamp = os.stat(self.folder).st_mtime_ns
            if stamp != self._stamp:
                with os.scandir(self.folder) as entries:
                    visible = [entry for entry in entries if not entry.name.startswith(".")]
                    files = [entry.name for entry in visible if entry.name.endswith(".md")]
                    rest = (entry for entry in visible if self.folders and not entry.name.endswith(".md"))
                    folders = [entry.name for entry in rest if entry.is_dir()]
                names = [*(files if self.markdown else ()), *folders]
                self._entries = tuple(sorted(names))
                self._stamp = _settled(stamp)
        except OSError:
            self._stamp, self._entries = -1, ()
        return self._entries

    def _manifest(self, path: str) -> tuple[str, Stamp] | None:
        """The manifest in either of two spellings; the one found last time is tried first."""
        known = self._chosen.get(path)
        for name in (known, *_MANIFESTS) if known else _MANIFESTS:
            if name and (stamp := _stamp(f"{path}{os.sep}{name}")):
                self._chosen[path] = name
                return f"{path}{os.sep}{name}", stamp
        return None


class Sidecars(Struct):
    """The sidecar files in `folder`, beside a level's receipts."""

    folder: Path
    _stamp: int = -1
    _names: tuple[str, ...] = ()

    def files(self) -> tuple[tuple[str, Stamp], ...]:
        """Returns path and stamp of each file."""
        try:
            changed = os.stat(self.folder).st_mtime_ns
            if changed != self._stamp:
                self._names = tuple(sorted(name for name in os.listdir(self.folder) if name.endswith(SIDECAR)))
                self._stamp = _settled(changed)
        except OSError:
            self._stamp, self._names = -1, ()
        paths = (f"{self.folder}{os.sep}{name}" for name in self._names)
        return tuple((path, stamp) for path in paths if (stamp := _stamp(path)))


def _settled(stamp: int) -> int:
    """-1 for a folder that changed just now: another change in the same tick of the file system's clock has the same
    time, so the folder is read again the next time."""
    return stamp if time.time_ns() - stamp > TICK else -1


def _stamp(path: str) -> Stamp | None:
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return (seen.st_mtime_ns, seen.st_size, seen.st_ino, seen.st_ctime_ns) if stat.S_ISREG(seen.st_mode) else None
