"""Walks, measures, reads, fingerprints and removes folders with untrusted content.

Through descriptors, without recursion, with limits, and without following a link.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from msgspec import Struct, field

from navigator_kernel.errors import NotFound, Refused
from navigator_kernel.text import escape_controls

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
    listing, end, count = Listing(files={}), time.monotonic() + seconds, 0
    for level, batch in _folders(folder, depth, listing, most=entries + 1):
        for name, seen in batch:
            count += 1
            if count > entries or time.monotonic() > end:
                listing.cut = True
                return listing
            if stat.S_ISREG(seen.st_mode):
                path = f"{level}{name}".encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
                listing.files[path] = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
    return listing


def disk_used(folder: Path, limit: int) -> int:
    """Returns the bytes on disk of everything in `folder`, counted until they exceed `limit`; a folder that is too deep
    or cannot be opened counts as more. Gives the owner access to every folder, so that a mode hides nothing."""
    used, listing = 0, Listing(files={})
    for _, batch in _folders(folder, DEEPEST, listing, most=limit // ENTRY + 1, closed=True):
        used += sum(max(seen.st_blocks * 512, ENTRY) for _, seen in batch)
        if used > limit:
            return used
    return limit + 1 if listing.cut else used


def entries_below(folder: Path, listing: Listing, most: int) -> Iterator[tuple[str, list[tuple[str, os.stat_result]]]]:
    """Yields each folder with a final slash and its entries, up to `most` in each, also of folders that their maker
    closed; `found.cut` is set if that is not all."""
    return _folders(folder, DEEPEST, listing, most=most, closed=True)


def _folders(
    folder: Path, depth: int, listing: Listing, *, most: int, closed: bool = False
) -> Iterator[tuple[str, list[tuple[str, os.stat_result]]]]:
    """Yields the path and up to `most` entries of each folder, top first; with `closed`, also of folders that their
    maker closed. At most `depth` descriptors are open; `found.cut` is set if a folder is deeper, larger, or
    unreadable."""
    stack: list[_Level] = []
    try:
        top = _opened(str(folder), None, closed=closed)
        if top is None:
            return
        entries = _entries(top, listing, most)
        stack.append(_Level(top, "", _names(entries)))
        yield "", entries
        while stack:
            level = stack[-1]
            if not level.left:
                os.close(stack.pop().fd)
                continue
            name = level.left.pop()
            fd = _opened(name, level.fd, closed=closed) if len(stack) < depth else None
            if fd is None:
                listing.cut = listing.cut or _is_there(name, level.fd)
                continue
            entries, path = _entries(fd, listing, most), f"{level.path}{name}/"
            stack.append(_Level(fd, path, _names(entries)))
            yield path, entries
    finally:
        for level in stack:
            os.close(level.fd)


def _names(entries: list[tuple[str, os.stat_result]]) -> list[str]:
    return [name for name, seen in entries if stat.S_ISDIR(seen.st_mode)]


def _entries(fd: int, listing: Listing, most: int) -> list[tuple[str, os.stat_result]]:
    batch: list[tuple[str, os.stat_result]] = []
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                if len(batch) >= most:
                    listing.cut = True
                    break
                with suppress(OSError):  # the entry was removed meanwhile
                    batch.append((entry.name, entry.stat(follow_symlinks=False)))
    except OSError:
        listing.cut = True
    return batch


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


# A digest of everything in a folder, and of single files, within limits of time and size.

# More than fit a workspace, whose 512 MiB count each entry as 4 KiB
FINGERPRINTED, BOUND_BYTES, BOUND_SECONDS = 140_000, 1024**3, 60.0
PIECE = 1024 * 1024  # bytes that are read at a time


class Fingerprint(Struct):
    """Adds up the bytes that it reads, over several folders and files. Refused over a limit, and for a file that cannot
    be read: what is not bound to a consent must not run."""

    _left: int = BOUND_BYTES
    _end: float = field(default_factory=lambda: time.monotonic() + BOUND_SECONDS)

    def of_folder(self, folder: Path) -> str:
        """The SHA-256 of the path and kind of each entry, of a file its mode and content, of a link its target."""
        from hashlib import sha256  # loads OpenSSL, which short commands do without

        listing, lines = Listing(files={}), list[bytes]()
        for level, batch in entries_below(folder, listing, FINGERPRINTED + 1):
            lines += [self._line(folder, f"{level}{name}", seen) for name, seen in batch]
            if len(lines) > FINGERPRINTED:
                raise _too_large(f"it has over {FINGERPRINTED:,} entries")
        if listing.cut:
            raise _too_large("a folder in it is too large, too deep, or cannot be read")
        return sha256(b"\0\0".join(sorted(lines))).hexdigest()

    def of_files(self, paths: Iterable[Path]) -> list[list[str]]:
        """The path and the SHA-256 of each file; empty for one that is not there."""
        return [[str(path), self.of_file(path.parent, (path.name,)) if path.is_file() else ""] for path in paths]

    def of_file(self, root: Path, parts: Iterable[str]) -> str:
        """The SHA-256 of the regular file at `parts` below `root`."""
        from hashlib import sha256

        digest = sha256()
        try:
            handle = open_inside(root, tuple(parts), _refuse_other)
        except OSError as error:
            raise _too_large(f"a file in it cannot be read: {error.strerror}") from error
        try:
            while piece := os.read(handle, PIECE):
                digest.update(piece)
                self._left -= len(piece)
                if self._left < 0 or time.monotonic() > self._end:
                    raise _too_large(f"over {BOUND_BYTES // 1024**2} MiB, or {BOUND_SECONDS:.0f} s to read")
        finally:
            os.close(handle)
        return digest.hexdigest()

    def _line(self, folder: Path, path: str, seen: os.stat_result) -> bytes:
        content, mode = b"", stat.S_IFMT(seen.st_mode) if stat.S_ISDIR(seen.st_mode) else seen.st_mode
        if stat.S_ISLNK(seen.st_mode):
            content = os.fsencode((folder / path).readlink())
        elif stat.S_ISREG(seen.st_mode):
            content = self.of_file(folder, path.split("/")).encode()
        return b"\0".join([os.fsencode(path), f"{mode:o}".encode(), content])


def _refuse_other(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise _too_large("a file in it was replaced")


def _too_large(why: str) -> Refused:
    hint = "finish without it; the next message begins with an empty workspace"
    return Refused(f"a yes cannot be bound to all files of the workspace: {why}", hint=hint, reason="too-large")


# Opens files below a folder one path component at a time, so that no link leads out of it.

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
_PASSED_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FolderEntry(NamedTuple):
    """One entry below a folder: its path from there, whether it is a folder, and its size in bytes."""

    path: str
    is_folder: bool
    size: int


def read_inside(root: Path, parts: Sequence[str], limit: int) -> bytes:
    """At most `limit` bytes of the regular file at `parts` below `root`. NotFound if there is none, Refused for
    a link, a folder or a special file."""
    with opened_inside(root, parts, "/".join(parts)) as handle:
        data = bytearray()
        while len(data) < limit and (piece := os.read(handle, limit - len(data))):
            data += piece
    return bytes(data)


def walk_inside(root: Path, parts: Sequence[str], *, deep: bool = True) -> Iterator[FolderEntry]:
    """The folders and regular files below the folder at `parts`, in order of their names; links and special files are
    left out. NotFound if `parts` is not a folder."""
    try:
        with _closing(open_folder(root, parts)) as folder:
            handle = os.open(".", _FOLDER, dir_fd=folder)
    except OSError as error:
        raise _problem(error, "/".join(parts) or ".") from error
    try:
        for place, folders, files, at in os.fwalk(".", dir_fd=handle, follow_symlinks=False):
            folders[:] = sorted(
                name for name in folders if not stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
            )
            if not deep:
                yield from (FolderEntry(_joined(place, name), is_folder=True, size=0) for name in folders)
            for name in sorted(files):
                seen = os.stat(name, dir_fd=at, follow_symlinks=False)
                if stat.S_ISREG(seen.st_mode):
                    yield FolderEntry(_joined(place, name), is_folder=False, size=seen.st_size)
            if not deep:
                return
    finally:
        os.close(handle)


@contextmanager
def opened_inside(root: Path, parts: Sequence[str], written: str) -> Iterator[int]:
    """Opens the regular file at `parts` for reading; `written` names it in errors."""
    try:
        handle = open_inside(root, parts, lambda mode: _refuse_special(mode, written))
    except OSError as error:
        raise _problem(error, written) from error
    with _closing(handle):
        yield handle


def open_inside(root: str | Path, parts: Sequence[str], check: Callable[[int], None]) -> int:
    """The handle of the file at `parts`, for the caller to close. `check` gets its mode before it is opened, because
    opening a pipe wakes the process at its other end, and again afterwards. OSError if the path has a link in it."""
    name = parts[-1] if parts else "."
    with _closing(open_folder(root, parts[:-1])) as folder:
        check(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        handle = os.open(name, _FILE, dir_fd=folder)
    try:
        check(os.fstat(handle).st_mode)
    except BaseException:
        os.close(handle)
        raise
    return handle


def open_folder(root: str | Path, parts: Sequence[str]) -> int:
    """A handle of the folder at `parts`, for the caller to close; it is not open for reading. OSError if the path has a
    link in it."""
    handle = os.open(root, _PASSED_FOLDER)
    try:
        for part in parts:
            inner = os.open(part, _PASSED_FOLDER, dir_fd=handle)
            os.close(handle)
            handle = inner
    except BaseException:
        os.close(handle)
        raise
    return handle


@contextmanager
def _closing(handle: int) -> Iterator[int]:
    try:
        yield handle
    finally:
        os.close(handle)


def _joined(place: str, name: str) -> str:
    return os.path.normpath(f"{place}/{name}")


def _refuse_special(mode: int, written: str) -> None:
    if stat.S_ISLNK(mode):
        raise Refused(f"{escape_controls(written)!r} is a link", hint="name the target of the link", reason="link")
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise Refused(f"{escape_controls(written)!r} is {what}", hint="name a file", reason="special")


def _problem(error: OSError, written: str) -> NotFound | Refused:
    if error.errno in _ABSENT:
        return NotFound(f"there is no {escape_controls(written)!r}", hint="list the folder to see its files")
    if error.errno == errno.ELOOP:
        return Refused(f"{escape_controls(written)!r} leads through a link", hint="name the file itself", reason="link")
    return Refused(
        f"{escape_controls(written)!r} cannot be read: {error.strerror}", hint="name another file", reason="unreadable"
    )
