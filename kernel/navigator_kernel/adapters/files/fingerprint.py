"""A digest of everything in a folder, and of single files, within limits of time and size."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct, field

from navigator_kernel.adapters.files.inside import open_inside
from navigator_kernel.adapters.files.tree import Listing, entries_below
from navigator_kernel.errors import Refused

ENTRIES, BYTES, SECONDS = 140_000, 1024**3, 60.0  # more than fit a workspace, whose 512 MiB count each entry as 4 KiB
PIECE = 1024 * 1024  # bytes that are read at a time


class Fingerprint(Struct):
    """Adds up the bytes that it reads, over several folders and files. Refused over a limit, and for a file that cannot
    be read: what is not bound to a consent must not run."""

    _left: int = BYTES
    _end: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    def of_folder(self, folder: Path) -> str:
        """The SHA-256 of the path and kind of each entry, of a file its mode and content, of a link its target."""
        found, lines = Listing(files={}), list[bytes]()
        for level, held in entries_below(folder, found, ENTRIES + 1):
            lines += [self._line(folder, f"{level}{name}", seen) for name, seen in held]
            if len(lines) > ENTRIES:
                raise _too_large(f"it has over {ENTRIES:,} entries")
        if found.cut:
            raise _too_large("a folder in it is too large, too deep, or cannot be read")
        return hashlib.sha256(b"\0\0".join(sorted(lines))).hexdigest()

    def of_files(self, paths: Iterable[Path]) -> list[list[str]]:
        """The path and the SHA-256 of each file; empty for one that is not there."""
        return [[str(path), self.of_file(path.parent, (path.name,)) if path.is_file() else ""] for path in paths]

    def of_file(self, root: Path, parts: Iterable[str]) -> str:
        """The SHA-256 of the regular file at `parts` below `root`."""
        digest = hashlib.sha256()
        try:
            handle = open_inside(root, tuple(parts), _refuse_other)
        except OSError as error:
            raise _too_large(f"a file in it cannot be read: {error.strerror}") from error
        try:
            while piece := os.read(handle, PIECE):
                digest.update(piece)
                self._left -= len(piece)
                if self._left < 0 or time.monotonic() > self._end:
                    raise _too_large(f"over {BYTES // 1024**2} MiB, or {SECONDS:.0f} s to read")
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
