"""Reads the files that a message points to, and none outside the project (PRE-8, PRE-9)."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from navigator_kernel.errors import NotFound, Refused

FILE_LIMIT = 256 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """Implements `ports.FileReader` for one project; a relative path starts at `base`."""

    root: Path
    base: Path

    def read(self, written: str) -> tuple[Path, str]:
        """The real path and its text. NotFound, or Refused with the reason."""
        try:
            path = (self.base / written).resolve(strict=True)
        except (OSError, ValueError, RuntimeError) as error:
            raise NotFound(f"no file is called {written!r}", hint="paths start at the current folder") from error
        if not path.is_relative_to(self.root.resolve()):
            raise Refused(f"{written!r} is outside the project", hint="copy the file into the project")
        return path, _text(path, written)


def _text(path: Path, written: str) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(f"{written!r} cannot be read: {error.strerror}", hint="check its permissions") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Refused(f"{written!r} is no regular file", hint="name a text file")
    with os.fdopen(handle, "rb") as file:
        data = file.read(FILE_LIMIT + 1)
    if len(data) > FILE_LIMIT:
        raise Refused(f"{written!r} is over {FILE_LIMIT // 1024} KiB", hint="name a smaller part of it")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{written!r} is not UTF-8 text", hint="convert it first") from error
