"""Resolves a model's path to a file, and decides whether the skill may read or write it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from navigator_kernel.adapters.files.project_files import refuse_named
from navigator_kernel.errors import Refused
from navigator_kernel.text import escape_controls, lazy_compile
from navigator_kernel.tools.obeyed import is_closed

Zone = Literal["workspace", "skill", "named", "earlier", "project"]
LONGEST = 4096  # characters of a path, the system's limit
ROOT_NAMES = ("SKILL_ROOT", "CLAUDE_SKILL_DIR", "CLAUDE_PLUGIN_ROOT")  # variables that tell a skill its folder
_ROOT = lazy_compile(
    r"\$(?:(?:SKILL_ROOT|CLAUDE_SKILL_DIR|CLAUDE_PLUGIN_ROOT)\b|\{(?:SKILL_ROOT|CLAUDE_SKILL_DIR|CLAUDE_PLUGIN_ROOT)\})"
)


class Place(NamedTuple):
    """A file or folder at `parts` below `root`, which is a real path."""

    zone: Zone
    root: Path
    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        return self.root.joinpath(*self.parts)


class Places(Struct, frozen=True, kw_only=True):
    """The folders that the tools of one skill work in, all real paths: its `workspace`, its own `folder`, the files
    that the person `named`, those that `earlier` turns wrote below `box`, and the `project`."""

    workspace: Path
    folder: Path
    named: tuple[Path, ...]
    project: Path
    earlier: tuple[Path, ...] = ()
    box: Path = Path()

    def find(self, written: str, *, new: bool = False) -> Place:
        """The place that `written` means: a relative path is looked for in the workspace, in the skill's folder, in the
        project, among the named files, and, unless `new`, among the files of earlier turns; with `new` a path that is
        found nowhere belongs to the workspace.

        Refused for a path outside all of these, for secrets, and for the kernel's own files (X-18).
        """
        if not written or len(written) > LONGEST or "\x00" in written:
            raise Refused("the path is empty or too long", hint="give the path of one file", reason="path")
        written = rooted(written, self.folder)
        if Path(written).is_absolute():
            return self._placed(Path(os.path.normpath(written)), written)
        plain = os.path.normpath(written)
        for base in (self.workspace, self.folder, self.project):
            if os.path.lexists(base / plain) and not (base == self.project and plain == "."):
                return self._placed(base / plain, written)
        if (named := self._called(plain)) is not None:
            return self._placed(named, written)
        if not new and (before := self._before(plain)) is not None:
            return self._placed(before, written)
        return self._placed((self.workspace if new else self.folder) / plain, written)

    def own(self, written: str) -> Path | None:
        """The file of the skill's folder that `written` means, or None."""
        try:
            place = self.find(written)
        except Refused:
            return None
        return place.path if place.zone == "skill" and place.path.is_file() else None

    def _called(self, name: str) -> Path | None:
        return next((path for path in self.named if path.name == name), None)

    def _before(self, plain: str) -> Path | None:
        """The newest file of an earlier turn with this path or name."""
        parts = Path(plain).parts
        return next((path for path in self.earlier if path.parts[-len(parts) :] == parts), None)

    def _placed(self, path: Path, written: str) -> Place:
        path = Path(os.path.normpath(path))
        if path in self.named:
            return Place("named", path.parent, (path.name,))
        zones: tuple[tuple[Zone, Path], ...] = (("workspace", self.workspace), ("skill", self.folder))
        for zone, root in zones:
            if path.is_relative_to(root):
                return Place(zone, root, path.relative_to(root).parts)
        if path in self.earlier and path.is_relative_to(self.box):
            return Place("earlier", self.box, path.relative_to(self.box).parts)
        if not path.is_relative_to(self.project):
            hint = f"use files below {self.workspace}, {self.folder} or the person's project"
            raise Refused(
                f"{escape_controls(written)!r} is outside the files that this skill may use",
                hint=hint,
                reason="outside",
            )
        parts = path.relative_to(self.project).parts
        refuse_closed(parts, written)
        return Place("project", self.project, parts)


def rooted(text: str, folder: Path) -> str:
    """Replaces the variables that skills use for their own folder in `text` by `folder`."""
    return _ROOT.sub(lambda _hit: str(folder), text)


def refuse_closed(parts: Sequence[str], written: str) -> None:
    """Raises Refused for files with secrets and for files that belong to the kernel, to git or to a coding agent."""
    refuse_named(parts, escape_controls(written))
    if is_closed(parts):
        hint = "use the workspace, or another file of the project"
        raise Refused(f"{escape_controls(written)!r} is not open to tools", hint=hint, reason="closed")
