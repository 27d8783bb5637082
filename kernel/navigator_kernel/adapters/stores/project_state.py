"""Finds the folder with the person's state of one project: outside the project, by the project's identity.

The key is made from the device, the inode and the path of the project's root. A random id, made on first use, is both
in that folder and in the project's `mybox/state/project-id`. If the two differ, another project has taken the place of
the first one, and the state of the first one is set aside (X-43).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.writer import PRIVATE, FolderWriter, make_private, read_bounded
from navigator_kernel.adapters.stores.person_home import make_home
from navigator_kernel.config.project_root import is_project
from navigator_kernel.digests import blake2b
from navigator_kernel.errors import KernelError

BOX = "mybox"
_ID_LIMIT = 4096  # bytes of either file
IGNORED = b"""\
# Made by navigator. These files belong to this machine, except for the workflows, which a team shares.
*
!/workflows/
!/workflows/**
"""


class ProjectState:
    """The state of the project at `root`, below the person's state folder `base`. Reading it writes nothing in the
    project; `claim` does, before the first write."""

    def __init__(self, base: Path, root: Path, clock: Callable[[], str]) -> None:
        self.root = Path(os.path.realpath(root))
        self._base, self._clock = base, clock
        self.folder = base / "projects" / _key(self.root)
        self._claimed = False
        if self.folder.is_dir() and self._recorded() != self._marked():
            self._set_aside()

    def claim(self) -> None:
        """Makes the folder (mode 0700) and both copies of the id, unless they exist."""
        if self._claimed:
            return

        make_home(self._base)
        make_private(self.folder.parent)
        with file_lock(self._base / "projects" / "claim.lock"):
            if not self.folder.is_dir():
                self._make()
        self._claimed = True

    def _make(self) -> None:
        made = os.urandom(16).hex()
        marked = made if self._mark(made) else ""
        seen = os.lstat(self.root)
        body = {"v": 1, "id": marked, "path": str(self.root), "device": seen.st_dev, "inode": seen.st_ino}
        fresh = self.folder.with_name(f"{self.folder.name}.{made}")
        make_private(fresh)
        data = json.dumps({**body, "created": self._clock()}, ensure_ascii=False)
        writer = FolderWriter([self.folder.parent])
        writer.write(fresh / "project.json", data.encode("utf-8", "surrogateescape"), mode=0o600)
        writer.move(fresh, self.folder)

    def _mark(self, made: str) -> bool:
        """Whether the project's own copy could be written; without it, the path and the inode must suffice. A folder
        that is not a project gets none."""
        if not is_project(str(self.root)):
            return False
        folder = self.root / BOX / "state"
        try:
            ProjectWriter([folder], self.root).write(folder / "project-id", f"{made}\n".encode())
        except KernelError:
            return False
        return True

    def _marked(self) -> str:
        with suppress(OSError, KernelError):
            data = read_bounded(self.root / BOX / "state" / "project-id", _ID_LIMIT)
            return data.decode("ascii", "replace").strip()
        return ""

    def _recorded(self) -> str:
        with suppress(OSError, KernelError, ValueError, KeyError, TypeError):
            return str(json.loads(read_bounded(self.folder / "project.json", _ID_LIMIT))["id"])
        return "?"

    def _set_aside(self) -> None:
        """Sets the folder aside, under the lock, since another process may be making it."""
        with file_lock(self._base / "projects" / "claim.lock"):
            if self.folder.is_dir() and self._recorded() != self._marked():
                aside = self.folder.with_name(f"{self.folder.name}.aside-{os.urandom(4).hex()}")
                FolderWriter([self.folder.parent]).move(self.folder, aside)


class ProjectWriter(FolderWriter):
    """Writes below one project. Before the first write below its `mybox`, makes a `.gitignore` there that ignores all
    but the workflows (X-42); an existing `.gitignore` stays as it is."""

    def __init__(self, roots: Sequence[Path], root: Path) -> None:
        super().__init__(roots, within=root)
        self._box: Path | None = Path(os.path.realpath(root)) / BOX

    def _checked(self, path: Path) -> Path:
        real, box = super()._checked(path), self._box
        if box is not None and real.is_relative_to(box):
            self._box = None
            if not os.path.lexists(box / ".gitignore"):
                FolderWriter([box]).create(box / ".gitignore", IGNORED, mode=0o644)
        return real


class PrivateWriter(FolderWriter):
    """Writes below one folder of the person's state; `prepare` makes it before the first write."""

    def __init__(self, folder: Path, prepare: Callable[[], None]) -> None:
        super().__init__([folder], mode=PRIVATE)
        self._prepare: Callable[[], None] | None = prepare

    def _checked(self, path: Path) -> Path:
        prepare, self._prepare = self._prepare, None
        if prepare is not None:
            prepare()
        return super()._checked(path)


def _key(root: Path) -> str:
    """32 hexadecimal digits for the project; a root that does not exist yet has no inode."""
    try:
        seen: Any = os.lstat(root)
        held = f"{seen.st_dev}:{seen.st_ino}"
    except OSError:
        held = "-"
    return blake2b(f"{held}:".encode() + os.fsencode(root), digest_size=16).hexdigest()
