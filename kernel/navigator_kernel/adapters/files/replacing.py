"""Replaces a file through open folder handles, so that a folder that meanwhile becomes a link is not followed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def replace_file(path: Path, pieces: Iterable[bytes], mode: int, folder_mode: int, sync: Callable[[int], None]) -> None:
    """Writes the whole file or nothing; an error of `pieces` leaves it as it was. `path` is absolute and has no link
    among its folders; missing folders are made. OSError if one of them has become a link."""
    with _folder(path.parent, folder_mode) as folder:
        held = f".navigator-{path.name[:80]}-{os.urandom(8).hex()}.tmp"
        try:
            _create(held, pieces, mode, sync, folder)
            os.replace(held, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(held, dir_fd=folder)
            raise


def create_file(path: str | Path, data: bytes, mode: int, sync: Callable[[int], None]) -> None:
    """Creates a file; FileExistsError if it exists."""
    _create(path, (data,), mode, sync, None)


def _create(
    path: str | Path, pieces: Iterable[bytes], mode: int, sync: Callable[[int], None], folder: int | None
) -> None:
    """With `folder`, an open folder's handle, `path` is a name in it."""
    handle = os.open(path, _NEW, mode, dir_fd=folder)
    try:
        os.fchmod(handle, mode)
        for piece in pieces:
            left = memoryview(piece)
            while left:
                left = left[os.write(handle, left) :]
        sync(handle)
    finally:
        os.close(handle)


@contextmanager
def _folder(path: Path, mode: int) -> Iterator[int]:
    handle = os.open(path.anchor, _FOLDER)
    try:
        for part in path.parts[1:]:
            inner = _inner(part, handle, mode)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _inner(part: str, handle: int, mode: int) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=handle)
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(part, mode, dir_fd=handle)
        return os.open(part, _FOLDER, dir_fd=handle)
