"""Digests of skills on disk, to which consents, receipts and checks are bound."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from navigator_kernel.adapters.files.writer import seal_file
from navigator_kernel.errors import IntegrityMismatch, NotFound, Refused
from navigator_kernel.values.receipt import InstalledFile


def folder_digest(folder: Path) -> str:
    """`sha256:<hex>` over every file's path, mode and content; Refused for links and special files."""
    return tree_digest(folder_files(folder))


def shipped_digest(folder: Path) -> str:
    """`folder_digest` without `__pycache__`: installers compile the files of a wheel, and a run never reads that
    bytecode (its processes keep theirs elsewhere)."""
    return tree_digest(file for file in folder_files(folder) if "__pycache__" not in file.path.split("/"))


def file_digest(path: Path) -> str:
    """`sha256:<hex>` of one regular file's content."""
    return f"sha256:{seal_file(path).sha256}"


def tree_digest(files: Iterable[InstalledFile]) -> str:
    """The digest of a folder with exactly these files, in any order."""
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.path):
        line = f"{file.path}\0{file.mode:04o}\0{file.sha256}\n"
        digest.update(line.encode("utf-8", errors="surrogateescape"))
    return f"sha256:{digest.hexdigest()}"


def folder_files(folder: Path) -> tuple[InstalledFile, ...]:
    """Every file below `folder`, by path; Refused for links and special files, NotFound without a folder,
    IntegrityMismatch if another process changes it meanwhile."""
    if folder.is_symlink():
        raise Refused(f"{str(folder)!r} is a link", hint="use the folder that it points to")
    if not folder.is_dir():
        raise NotFound(f"there is no folder {str(folder)!r}", hint="check the path")
    try:
        return tuple(sorted(_files(folder, ""), key=lambda file: file.path))
    except FileNotFoundError as error:
        raise IntegrityMismatch(f"{str(folder)!r} changed while it was read", hint="try again") from error


def _files(folder: Path, prefix: str) -> Iterator[InstalledFile]:
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        path = f"{prefix}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path), f"{path}/")
        else:
            seal = seal_file(Path(entry.path))
            yield InstalledFile(path=path, sha256=seal.sha256, mode=seal.mode, size=seal.size)
