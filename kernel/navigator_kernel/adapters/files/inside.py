"""Opens files below a folder one path component at a time, so that no link leads out of it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from navigator_kernel.errors import NotFound, Refused
from navigator_kernel.text import escape_controls

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
    handle = _stepped_into(root, parts)
    try:
        for place, folders, files, at in os.fwalk(".", dir_fd=handle, follow_symlinks=False):
            folders[:] = sorted(name for name in folders if not stat.S_ISLNK(_mode(name, at)))
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


def _stepped_into(root: Path, parts: Sequence[str]) -> int:
    written = "/".join(parts) or "."
    try:
        with _closing(open_folder(root, parts)) as handle:
            return os.open(".", _LISTED, dir_fd=handle)
    except OSError as error:
        raise _problem(error, written) from error


def open_folder(root: str | Path, parts: Sequence[str]) -> int:
    """A handle of the folder at `parts`, for the caller to close; it is not open for reading. OSError if the path has a
    link in it."""
    handle = os.open(root, _FOLDER)
    try:
        for part in parts:
            inner = os.open(part, _FOLDER, dir_fd=handle)
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


def _mode(name: str, at: int) -> int:
    return os.stat(name, dir_fd=at, follow_symlinks=False).st_mode


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
