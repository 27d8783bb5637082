"""Reads a local folder as a tree of entries, like a commit."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.adapters.sources.git import TreeEntry
from navigator_kernel.errors import FetchFailed, Refused

ENTRY_LIMIT = 50_000
_LEFT_OUT = frozenset({".git", ".navigator", "__pycache__", "node_modules"})


class FolderSource:
    """Has the interface of `adapters.git.GitSource`, for a folder; it has no commit. An id is the path itself."""

    commit = ""
    tree = ""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.entries: tuple[TreeEntry, ...] = ()

    def __enter__(self) -> Self:
        if not self._folder.is_dir():
            raise FetchFailed(f"there is no folder {str(self._folder)!r}", hint="check the path")
        self.entries = tuple(sorted(_walk(self._folder), key=lambda entry: entry.path))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Does nothing, because nothing is open."""

    def contents(self, oids: Iterable[str], *, each: int, total: int) -> Mapping[str, bytes]:
        """The files by id. Refused over `each` or `total` bytes, FetchFailed if a file cannot be read."""
        found: dict[str, bytes] = {}
        for oid in dict.fromkeys(oids):
            found[oid] = self._read(oid, each)
            total -= len(found[oid])
            if total < 0:
                raise Refused("the files are too large together", hint="name fewer skills", reason="too-large")
        return found

    def fingerprint(self, entry: TreeEntry) -> str:
        """A digest that is equal for equal contents; empty for a folder."""
        return hashlib.sha256(self._read(entry.oid, 2**31)).hexdigest() if entry.kind == "blob" else ""

    def _read(self, oid: str, limit: int) -> bytes:
        path = self._folder / oid
        try:
            if path.is_symlink():
                return os.fsencode(path.readlink())
            return read_bounded(path, limit)
        except OSError as error:
            raise FetchFailed(f"cannot read {str(path)!r}: {error.strerror}", hint="try again") from error


def _walk(top: Path) -> Iterator[TreeEntry]:
    """Yields the entries; links are not followed, and special files get the mode 000000, which nothing accepts."""
    count = 0
    for place, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        count += len(folders) + len(files)
        if count > ENTRY_LIMIT:
            raise Refused(f"{str(top)!r} has over {ENTRY_LIMIT} files", hint="name the folder of the skill")
        for name in [*folders, *files]:
            path = Path(place, name)
            yield _entry(path.lstat().st_mode, path.relative_to(top).as_posix())


def _entry(mode: int, path: str) -> TreeEntry:
    if stat.S_ISDIR(mode):
        return TreeEntry(path=path, mode="040000", kind="tree", oid=path)
    if stat.S_ISLNK(mode):
        return TreeEntry(path=path, mode="120000", kind="blob", oid=path)
    if stat.S_ISREG(mode):
        return TreeEntry(path=path, mode="100755" if mode & 0o100 else "100644", kind="blob", oid=path)
    return TreeEntry(path=path, mode="000000", kind="blob", oid=path)
