"""What a project holds, to compare it before and after."""

from __future__ import annotations

import os
import stat
from pathlib import Path

Tree = dict[str, tuple[int, int, bytes]]


def tree(root: Path) -> Tree:
    """Every file, link and folder: mode, time of change, bytes. The locks between processes are left out."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        if path.name != "lock":
            held = path.lstat()
            data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            found[path.relative_to(root).as_posix()] = held.st_mode, held.st_mtime_ns, data
    return found


def content(root: Path) -> dict[str, tuple[int, bytes]]:
    """The same without times, without folders, which a change may make and leave empty, and without the list of what
    git ignores, which like the lock between processes is made before a change is."""
    held = {name: (mode, data) for name, (mode, _, data) in tree(root).items() if not stat.S_ISDIR(mode)}
    return {name: file for name, file in held.items() if not name.endswith("skills/.gitignore")}
