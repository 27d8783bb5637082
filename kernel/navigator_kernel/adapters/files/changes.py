"""Writes files of the project for a run and keeps each one's earlier content, so that the run can be undone."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from navigator_kernel.adapters.files.inside import read_inside
from navigator_kernel.adapters.files.writer import FolderWriter, read_bounded
from navigator_kernel.errors import Damaged, IntegrityMismatch, NotFound, Refused
from navigator_kernel.text import lazy_compile

LARGEST = 16 * 1024 * 1024  # bytes of a file that can be changed
USUAL_MODE = 0o644
_RUN = lazy_compile(r"[A-Za-z0-9][\w.-]{0,79}", re.ASCII)
_RECORD = lazy_compile(r"\d{4}\.json")

How = Literal["undone", "as before", "changed since"]


class FileChange(Struct, frozen=True, kw_only=True):
    """One change: the file's path in the project, its bytes before and after (`before` is None if it was new), and
    its mode before."""

    path: str
    before: bytes | None
    after: bytes
    mode: int


class ChangeStore:
    """The changes of the project at `root`, a folder for each run below `folder`, which `kept` may write to. The paths
    in `closed` are never changed, not even through a link."""

    def __init__(self, folder: Path, kept: FolderWriter, root: Path, closed: Collection[str] = ()) -> None:
        self._folder, self._kept, self._root = folder, kept, root
        self._closed = [root / name for name in closed]

    def make(self, run: str, path: str, before: bytes | None, after: bytes) -> None:
        """Keeps the file as it is, then replaces it. IntegrityMismatch if it is no longer `before`."""
        parts = path.split("/")
        if self._now(parts) != before:
            raise IntegrityMismatch(f"{path!r} was changed meanwhile", hint="read it again")
        place = self._of(run)
        number = len(self._records(place))
        made = FileChange(path=path, before=before, after=after, mode=self._mode(path))
        for name, data in (("before", before), ("after", after)):
            if data is not None:
                self._kept.write(place / f"{number:04d}.{name}", data, mode=0o600)
        body = {"path": path, "mode": made.mode, "new": before is None, "digest": _digest(after)}
        self._kept.write(place / f"{number:04d}.json", json.dumps(body, ensure_ascii=False).encode(), mode=0o600)
        self._write(made.path, after, made.mode)

    def runs(self) -> tuple[str, ...]:
        """The runs that changed something, newest first."""
        if not self._folder.is_dir():
            return ()
        return tuple(sorted((one.name for one in self._folder.iterdir() if one.is_dir()), reverse=True))

    def of(self, run: str) -> tuple[FileChange, ...]:
        """The changes of a run, in order. NotFound for a run that changed nothing, Damaged for a record that cannot be
        read."""
        place = self._of(run)
        records = self._records(place)
        if not records:
            raise NotFound(
                f"run {run!r} changed no file of this project", hint="navigator diff shows the newest run that did"
            )
        return tuple(self._read(place, name) for name in records)

    def is_undone(self, run: str) -> bool:
        """Whether every file that the run changed is as it was before. The errors of `of`."""
        first: dict[str, FileChange] = {}
        for made in self.of(run):
            first.setdefault(made.path, made)
        return all(self._now(path.split("/")) == made.before for path, made in first.items())

    def undo(self, run: str, *, force: bool = False) -> tuple[tuple[str, How], ...]:
        """Restores each file as it was before the run, and returns the result for each. A file that was changed since
        stays as it is, unless `force` is true; nothing is touched if a record cannot be read."""
        first: dict[str, FileChange] = {}
        last: dict[str, FileChange] = {}
        for made in self.of(run):
            first.setdefault(made.path, made)
            last[made.path] = made
        return tuple((path, self._put_back(first[path], last[path], force=force)) for path in first)

    def _put_back(self, first: FileChange, last: FileChange, *, force: bool) -> How:
        self._writer().sweep(self._root / first.path)  # removes half-written files of a killed process
        now = self._now(first.path.split("/"))
        if now == first.before:
            return "as before"
        if now != last.after and not force:
            return "changed since"
        if first.before is None:
            self._writer().remove(self._root / first.path)
        else:
            self._write(first.path, first.before, first.mode)
        return "undone"

    def _now(self, parts: Sequence[str]) -> bytes | None:
        with suppress(NotFound):
            return read_inside(self._root, parts, LARGEST)
        return None

    def _mode(self, path: str) -> int:
        try:
            return stat.S_IMODE(os.lstat(self._root / path).st_mode) & 0o777
        except FileNotFoundError:
            return USUAL_MODE

    def _write(self, path: str, data: bytes, mode: int) -> None:
        self._writer().write(self._root / path, data, mode=mode)

    def _writer(self) -> FolderWriter:
        return FolderWriter([self._root], self._closed, within=self._root)

    def _of(self, run: str) -> Path:
        if not _RUN.fullmatch(run):
            raise Refused(f"{run!r} is not the name of a run", hint="navigator diff shows the newest run that did")
        return self._folder / run

    def _records(self, place: Path) -> list[str]:
        return sorted(one for one in os.listdir(place) if _RECORD.fullmatch(one)) if place.is_dir() else []

    def _read(self, place: Path, name: str) -> FileChange:
        stem = name.removesuffix(".json")
        try:
            body: dict[str, Any] = json.loads(read_bounded(place / name, 64 * 1024))
            before = None if body["new"] else read_bounded(place / f"{stem}.before", LARGEST)
            after = read_bounded(place / f"{stem}.after", LARGEST)
            if _digest(after) != body["digest"]:
                raise ValueError("its digest is another")
            return FileChange(path=str(body["path"]), before=before, after=after, mode=int(body["mode"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Damaged(f"the copies in {str(place)!r} cannot be read: {error}", hint="use git to compare") from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
