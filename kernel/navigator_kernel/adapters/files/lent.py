"""Makes files of other folders reachable under a name in a folder while a program runs there.

A folder and a file of the person become a link: what the sandbox may not write stays unwritten. A file of an earlier
turn becomes a copy, as the program may write it again. A name that is taken is left as it is. Afterwards the links go,
and the copies that nobody changed; until then nothing else may follow a link in the folder. No step goes through one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct, field

MOST, COPIED = 2_000, 32 * 1024 * 1024  # names in one folder, and bytes of all copies
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def lent(folder: Path, links: Mapping[str, Path], copies: Mapping[str, Path]) -> Iterator[None]:
    """Gives `folder` the names of `links` and `copies`, relative paths, until the end. A name that cannot be made is
    missing, as it would be without this."""
    if not (links or copies):
        yield
        return
    lending = _Lending(os.open(folder, _FOLDER))
    try:
        wanted = [*((path, target, False) for path, target in links.items())]
        wanted += [(path, target, True) for path, target in copies.items() if path not in links]
        for path, target, is_copy in sorted(wanted, key=lambda one: -one[0].count("/")):
            lending.make(tuple(path.split("/")), target, is_copy=is_copy)
        yield
    finally:
        lending.take_back()
        os.close(lending.root)


class _Lending(Struct):
    """What was made below the open folder `root`: links with their targets, copies with their stamps, and folders."""

    root: int
    links: dict[tuple[str, ...], str] = field(default_factory=dict)
    copies: dict[tuple[str, ...], tuple[int, int, int]] = field(default_factory=dict)
    folders: list[tuple[str, ...]] = field(default_factory=list)
    left: int = COPIED

    def make(self, parts: tuple[str, ...], target: Path, *, is_copy: bool) -> None:
        if len(self.links) + len(self.copies) >= MOST or not all(part not in {"", ".", ".."} for part in parts):
            return
        with suppress(OSError), self._within(parts[:-1], new=True) as at:
            try:
                self._make(parts, target, at, is_copy=is_copy)
            except FileExistsError:
                self._merge(parts, target, at)

    def _make(self, parts: tuple[str, ...], target: Path, at: int, *, is_copy: bool) -> None:
        if not is_copy or target.stat().st_size > self.left:
            os.symlink(target, parts[-1], dir_fd=at)
            self.links[parts] = str(target)
            return
        source = os.open(target, _READ)
        try:
            seen = os.fstat(source)
            if not stat.S_ISREG(seen.st_mode):
                return
            handle = os.open(parts[-1], _NEW, 0o644, dir_fd=at)
            try:
                while (copied := os.sendfile(handle, source, None, min(self.left, 1 << 20))) > 0:
                    self.left -= copied
                os.fchmod(handle, seen.st_mode & 0o755)
                self.copies[parts] = _stamp(os.fstat(handle))
            finally:
                os.close(handle)
        finally:
            os.close(source)

    def _merge(self, parts: tuple[str, ...], target: Path, at: int) -> None:
        """A folder that is there gets the names of the target's entries; a link that a killed kernel left is ours."""
        mode = os.stat(parts[-1], dir_fd=at, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode) and os.readlink(parts[-1], dir_fd=at) == str(target):
            self.links[parts] = str(target)
        elif stat.S_ISDIR(mode) and target.is_dir() and not target.is_symlink():
            for entry in sorted(target.iterdir()):
                self.make((*parts, entry.name), entry, is_copy=False)

    def take_back(self) -> None:
        """Removes what is still as it was made."""
        for parts, target in self.links.items():
            with suppress(OSError), self._within(parts[:-1]) as at:
                if os.readlink(parts[-1], dir_fd=at) == target:
                    os.unlink(parts[-1], dir_fd=at)
        for parts, stamp in self.copies.items():
            with suppress(OSError), self._within(parts[:-1]) as at:
                if _stamp(os.stat(parts[-1], dir_fd=at, follow_symlinks=False)) == stamp:
                    os.unlink(parts[-1], dir_fd=at)
        for parts in reversed(self.folders):
            with suppress(OSError), self._within(parts[:-1]) as at:
                os.rmdir(parts[-1], dir_fd=at)

    @contextmanager
    def _within(self, parts: Sequence[str], *, new: bool = False) -> Iterator[int]:
        """The open folder at `parts`; with `new` it is made if it is missing. OSError if a link is on the way."""
        handle = os.dup(self.root)
        try:
            for count, part in enumerate(parts, 1):
                with suppress(FileExistsError):
                    if new:
                        os.mkdir(part, dir_fd=handle)
                        self.folders.append(tuple(parts[:count]))
                inner = os.open(part, _FOLDER, dir_fd=handle)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)


def _stamp(seen: os.stat_result) -> tuple[int, int, int]:
    return seen.st_mtime_ns, seen.st_size, seen.st_ino
