"""Walks, measures and removes folders with untrusted content: through descriptors, without recursion, with limits."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from msgspec import Struct

ENTRIES, SECONDS, DEPTH = 20_000, 5.0, 64  # limits of one listing: entries, seconds, levels of folders
DEEPEST = 512  # levels of nested folders that are measured; a deeper tree counts as too large
ENTRY = 4096  # least bytes counted for an entry, so that a limit in bytes also limits the entries that are read
MANY, REMOVING = 64, 12  # entries from which several threads remove a folder, and the number of threads
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Stamp = tuple[int, int, int]  # mtime in ns, size, inode


class Listing(Struct):
    """The regular files below a folder, by their path in it; `cut` if a limit ended the listing or a folder could not
    be read."""

    files: dict[str, Stamp]
    cut: bool = False


class _Level(NamedTuple):
    """A folder on the way down: its descriptor, its path with a final slash, and its folders that are still to be
    read."""

    fd: int
    path: str
    left: list[str]


def listed(folder: Path, *, entries: int = ENTRIES, seconds: float = SECONDS, depth: int = DEPTH) -> Listing:
    """Lists the files below `folder`, without links; changes to the tree meanwhile are not errors."""
    found, end, count = Listing(files={}), time.monotonic() + seconds, 0
    for level, held in _folders(folder, depth, found, most=entries + 1):
        for name, seen in held:
            count += 1
            if count > entries or time.monotonic() > end:
                found.cut = True
                return found
            if stat.S_ISREG(seen.st_mode):
                path = f"{level}{name}".encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
                found.files[path] = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
    return found


def disk_used(folder: Path, limit: int) -> int:
    """Returns the bytes on disk of everything in `folder`, counted until they exceed `limit`; a folder that is too deep
    or cannot be opened counts as more. Gives the owner access to every folder, so that a mode hides nothing."""
    used, found = 0, Listing(files={})
    for _, held in _folders(folder, DEEPEST, found, most=limit // ENTRY + 1, closed=True):
        used += sum(max(seen.st_blocks * 512, ENTRY) for _, seen in held)
        if used > limit:
            return used
    return limit + 1 if found.cut else used


def entries_below(folder: Path, found: Listing, most: int) -> Iterator[tuple[str, list[tuple[str, os.stat_result]]]]:
    """Yields each folder with a final slash and its entries, up to `most` in each, also of folders that their maker
    closed; `found.cut` is set if that is not all."""
    return _folders(folder, DEEPEST, found, most=most, closed=True)


def _folders(
    folder: Path, depth: int, found: Listing, *, most: int, closed: bool = False
) -> Iterator[tuple[str, list[tuple[str, os.stat_result]]]]:
    """Yields the path and up to `most` entries of each folder, top first; with `closed`, also of folders that their
    maker closed. At most `depth` descriptors are open; `found.cut` is set if a folder is deeper, larger, or
    unreadable."""
    stack: list[_Level] = []
    try:
        top = _opened(str(folder), None, closed=closed)
        if top is None:
            return
        held = _entries(top, found, most)
        stack.append(_Level(top, "", _names(held)))
        yield "", held
        while stack:
            level = stack[-1]
            if not level.left:
                os.close(stack.pop().fd)
                continue
            name = level.left.pop()
            fd = _opened(name, level.fd, closed=closed) if len(stack) < depth else None
            if fd is None:
                found.cut = found.cut or _is_there(name, level.fd)
                continue
            held, path = _entries(fd, found, most), f"{level.path}{name}/"
            stack.append(_Level(fd, path, _names(held)))
            yield path, held
    finally:
        for level in stack:
            os.close(level.fd)


def _names(held: list[tuple[str, os.stat_result]]) -> list[str]:
    return [name for name, seen in held if stat.S_ISDIR(seen.st_mode)]


def _entries(fd: int, found: Listing, most: int) -> list[tuple[str, os.stat_result]]:
    held: list[tuple[str, os.stat_result]] = []
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                if len(held) >= most:
                    found.cut = True
                    break
                with suppress(OSError):  # the entry was removed meanwhile
                    held.append((entry.name, entry.stat(follow_symlinks=False)))
    except OSError:
        found.cut = True
    return held


def _opened(name: str, at: int | None, *, closed: bool) -> int | None:
    if closed:
        _let_in(name, at)
    try:
        return os.open(name, _FOLDER, dir_fd=at)
    except OSError:
        return None


def _is_there(name: str, at: int) -> bool:
    """Whether a folder that could not be opened still exists; one that was removed meanwhile hides nothing."""
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def remove_tree(folder: Path) -> list[str]:
    """Removes `folder` and everything in it, at any depth and with any modes. Returns the problems, if any.

    A folder inside another is moved to the top first, so that no path and no stack of descriptors grows with the depth.
    """
    problems: list[str] = []
    top = _opened(str(folder), None, closed=True)
    if top is None:
        return [f"{str(folder)!r} cannot be opened"]
    try:
        fresh = map(f".gone-{os.urandom(4).hex()}{{:08x}}".format, count())
        while (names := _all(top)) and not problems:
            _remove_all(names, top, fresh, problems)
    finally:
        os.close(top)
    if not problems:
        try:
            folder.rmdir()
        except OSError as error:
            problems.append(str(error))
    return problems


def _remove_all(names: Sequence[str], top: int, fresh: Iterator[str], problems: list[str]) -> None:
    """Removes many entries with several threads: removing a file that was just made durable waits for the disk."""
    if len(names) < MANY:
        for name in names:
            _remove(name, top, fresh, problems)
        return

    def work(part: Sequence[str]) -> None:
        for name in part:
            _remove(name, top, fresh, problems)

    threads = [Thread(target=work, args=(names[at::REMOVING],)) for at in range(REMOVING)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _remove(name: str, top: int, fresh: Iterator[str], problems: list[str]) -> None:
    """Removes one entry of the top: a folder is emptied, and the folders in it move to the top under `fresh` names."""
    try:
        seen = os.stat(name, dir_fd=top, follow_symlinks=False)
        if not stat.S_ISDIR(seen.st_mode):
            os.unlink(name, dir_fd=top)
            return
        _let_in(name, top)
        fd = os.open(name, _FOLDER, dir_fd=top)
        try:
            for inner in _all(fd):
                if stat.S_ISDIR(os.stat(inner, dir_fd=fd, follow_symlinks=False).st_mode):
                    _let_in(inner, fd)
                    os.rename(inner, next(fresh), src_dir_fd=fd, dst_dir_fd=top)
                else:
                    os.unlink(inner, dir_fd=fd)
        finally:
            os.close(fd)
        os.rmdir(name, dir_fd=top)
    except FileNotFoundError:
        return
    except OSError as error:
        problems.append(f"{name!r}: {error.strerror}")


def _all(fd: int) -> list[str]:
    """The names in a folder, sorted: the calls are the same each time, so that a test can break off at any of them."""
    with os.scandir(fd) as entries:
        return sorted(entry.name for entry in entries)


def _let_in(name: str, at: int | None) -> None:
    """Lets the owner read, write and enter a folder; for anyone else a later call fails. Uses a descriptor, so that a
    link that replaces the folder meanwhile is not followed."""
    with suppress(OSError):
        fd = os.open(name, _FOLDER | os.O_PATH, dir_fd=at)
        try:
            if os.fstat(fd).st_mode & 0o700 != 0o700:
                Path(f"/proc/self/fd/{fd}").chmod(0o700)
        finally:
            os.close(fd)
