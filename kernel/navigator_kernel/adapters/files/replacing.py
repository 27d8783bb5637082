"""Replaces a file along a path of open folders, so that a folder that becomes a link meanwhile leads nowhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def replace_file(path: Path, data: bytes, mode: int, folder_mode: int, sync: Callable[[int], None]) -> None:
    """The whole file or nothing of it. `path` is absolute, its folders hold no link; those that are missing are made.
    OSError where one of them is a link by now."""
    with _folder(path.parent, folder_mode) as folder:
        held = f".navigator-{path.name[:80]}-{os.urandom(8).hex()}.tmp"
        try:
            create_file(held, data, mode, sync, folder)
            os.replace(held, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(held, dir_fd=folder)
            raise


def create_file(
    path: str | Path, data: bytes, mode: int, sync: Callable[[int], None], folder: int | None = None
) -> None:
    """FileExistsError where something is there. With `folder`, the handle of one, `path` is a name in it."""
    handle = os.open(path, _NEW, mode, dir_fd=folder)
    try:
        os.fchmod(handle, mode)
        left = memoryview(data)
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
