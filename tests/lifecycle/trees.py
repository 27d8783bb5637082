"""The contents of a project, to compare it before and after."""

from __future__ import annotations

import os
import stat
from pathlib import Path

Tree = dict[str, tuple[int, int, bytes]]


def tree(root: Path) -> Tree:
    """Every file, link and folder with its mode, time of change and bytes, except the locks between processes."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        if path.name != "lock":
            held = path.lstat()
            data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            found[path.relative_to(root).as_posix()] = held.st_mode, held.st_mtime_ns, data
    return found


def content(root: Path) -> dict[str, tuple[int, bytes]]:
    """The same without times, without folders, which a change may make and leave empty, and without the files for
    git, which, like the lock between processes, are written before a change."""
    held = {name: (mode, data) for name, (mode, _, data) in tree(root).items() if not stat.S_ISDIR(mode)}
    return {
        name: file for name, file in held.items() if not name.endswith(("skills/.gitignore", "skills/.gitattributes"))
    }
