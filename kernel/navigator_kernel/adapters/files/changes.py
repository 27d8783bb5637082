"""Writes files of the project for a run and keeps each one's earlier content, so that the run can be undone."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from navigator_kernel.adapters.files.tree import opened_inside, read_inside
from navigator_kernel.adapters.files.writer import FolderWriter, read_bounded
from navigator_kernel.errors import Damaged, IntegrityMismatch, KernelError, NotFound, Refused
from navigator_kernel.text import lazy_compile

LARGEST = 16 * 1024 * 1024  # bytes of a file that is changed in memory; a larger one is copied in pieces
_PIECE = 1024 * 1024  # bytes
USUAL_MODE = 0o644
_RUN = lazy_compile(r"[A-Za-z0-9][\w.-]{0,79}", re.ASCII)
_RECORD = lazy_compile(r"\d{4}\.json")

How = Literal["undone", "as before", "changed since"]


class FileChange(Struct, frozen=True, kw_only=True):
    """One change: the file's path in the project, its bytes before and after (`before` is None if it was new), its mode
    before, its size after, and the digests of both, "" for none. `source` is where a delivered file was, from the
    folder of all workspaces. Of a large file only the earlier content is kept, and none is in memory."""

    path: str
    before: bytes | None
    after: bytes
    mode: int
    size: int
    digests: tuple[str, str]
    is_large: bool = False
    source: str = ""


class Sized(NamedTuple):
    """A regular file at `parts` below `root`, with its size in bytes and its SHA-256."""

    root: Path
    parts: tuple[str, ...]
    size: int
    digest: str

    @property
    def name(self) -> str:
        return "/".join(self.parts)


class ChangeStore:
    """The changes of the project at `root`, a folder for each run below `folder`, for `writer`. The paths
    in `closed` are never changed, not even through a link. Runs of the same work, as `began` tells its first, are one:
    the name of each stands for all of them."""

    def __init__(
        self,
        folder: Path,
        writer: FolderWriter,
        root: Path,
        closed: Collection[str] = (),
        began: Callable[[str], str] = str,
    ) -> None:
        self._folder, self._kept_writer, self._root, self._began = folder, writer, root, began
        self._closed = [root / name for name in closed]

    def make(self, run: str, path: str, before: bytes | None, after: bytes, source: str = "") -> None:
        """Keeps the file as it is, then replaces it. IntegrityMismatch if it is no longer `before`. `source` is where
        a delivered file was, from the folder of all workspaces."""
        parts = path.split("/")
        now: bytes | None = None
        with suppress(NotFound):
            now = read_inside(self._root, parts, LARGEST)
        if now != before:
            raise IntegrityMismatch(f"{path!r} was changed meanwhile", hint="read it again")
        place = self._of(run)
        number = len(self._records(place))
        mode = self._mode(path)
        for name, data in (("before", before), ("after", after)):
            if data is not None:
                self._kept_writer.write(place / f"{number:04d}.{name}", data, mode=0o600)
        body: dict[str, Any] = {"path": path, "mode": mode, "new": before is None, "digest": _digest(after)}
        body |= {"source": source, "size": len(after)} if source else {}
        self._kept_writer.write(place / f"{number:04d}.json", json.dumps(body, ensure_ascii=False).encode(), mode=0o600)
        self._write(path, after, mode)

    def copy(self, run: str, path: str, before: str, source: Sized, named: str = "") -> None:
        """The same for a file of any size, which is copied in pieces; `before` is the digest of the file to replace, ""
        if there is none. IntegrityMismatch if that one or the source is another by now; then nothing is replaced."""
        parts = path.split("/")
        if self._sealed(parts) != before:
            raise IntegrityMismatch(f"{path!r} was changed meanwhile", hint="read it again")
        place = self._of(run)
        number, mode = len(self._records(place)), self._mode(path)
        if before:
            with opened_inside(self._root, parts, path) as handle:
                self._kept_writer.write_pieces(
                    place / f"{number:04d}.before", _checked(handle, before, path), mode=0o600
                )
        body: dict[str, Any] = {"path": path, "mode": mode, "new": not before, "digest": source.digest}
        body |= {"source": named, "large": True, "size": source.size, "before": before}
        self._kept_writer.write(place / f"{number:04d}.json", json.dumps(body, ensure_ascii=False).encode(), mode=0o600)
        with opened_inside(source.root, source.parts, source.name) as handle:
            pieces = _checked(handle, source.digest, source.name)
            self._writer().write_pieces(self._root / path, pieces, mode=mode)

    def runs(self) -> tuple[str, ...]:
        """The first run of each work that changed something; the last that did is the first."""
        if not self._folder.is_dir():
            return ()
        places = [(entry.stat().st_mtime_ns, entry.name) for entry in self._folder.iterdir() if entry.is_dir()]
        return tuple(name for _, name in sorted(places, reverse=True))

    def delivered(self, run: str = "") -> dict[str, tuple[str, str, int]]:
        """What was delivered last from each source, by any work or only that of `run`: the path in the project, the
        digest and the size. Records that cannot be read are left out: `of` names them."""
        files: dict[str, tuple[str, str, int]] = {}
        for place in [self._of(run)] if run else [self._folder / name for name in reversed(self.runs())]:
            for name in self._records(place):
                try:
                    body = json.loads(read_bounded(place / name, 64 * 1024))
                    if body.get("source"):
                        files[str(body["source"])] = (str(body["path"]), str(body["digest"]), int(body["size"]))
                except (OSError, ValueError, KeyError, TypeError, KernelError):
                    continue
        return files

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
        return all(self._sealed(path.split("/")) == made.digests[0] for path, made in first.items())

    def undo(self, run: str, *, force: bool = False) -> tuple[tuple[str, How], ...]:
        """Restores each file as it was before the run, and returns the result for each. A file that was changed since
        stays as it is, unless `force` is true; nothing is touched if a record cannot be read."""
        first: dict[str, FileChange] = {}
        last: dict[str, FileChange] = {}
        for made in self.of(run):
            first.setdefault(made.path, made)
            last[made.path] = made
        return tuple((path, self._put_back(run, first[path], last[path], force=force)) for path in first)

    def _put_back(self, run: str, first: FileChange, last: FileChange, *, force: bool) -> How:
        self._writer().sweep(self._root / first.path)  # removes half-written files of a killed process
        now = self._sealed(first.path.split("/"))
        if now == first.digests[0]:
            return "as before"
        if now != last.digests[1] and not force:
            return "changed since"
        if first.before is None:
            self._writer().remove(self._root / first.path)
        elif not first.is_large:
            self._write(first.path, first.before, first.mode)
        else:
            records = self._records(self._of(run))
            at = next(at for at, made in enumerate(self.of(run)) if made.path == first.path)
            content = (records[at].replace(".json", ".before"),)
            with opened_inside(self._of(run), content, first.path) as handle:
                pieces = _checked(handle, first.digests[0], first.path)
                self._writer().write_pieces(self._root / first.path, pieces, mode=first.mode)
        return "undone"

    def _sealed(self, parts: Sequence[str]) -> str:
        """The digest of the file; "" if there is none."""
        with suppress(NotFound):
            return sealed(self._root, parts).digest
        return ""

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
        return self._folder / self._began(run)

    def _records(self, place: Path) -> list[str]:
        return sorted(name for name in os.listdir(place) if _RECORD.fullmatch(name)) if place.is_dir() else []

    def _read(self, place: Path, name: str) -> FileChange:
        stem = name.removesuffix(".json")
        try:
            body: dict[str, Any] = json.loads(read_bounded(place / name, 64 * 1024))
            facts: dict[str, Any] = {
                "path": str(body["path"]),
                "mode": int(body["mode"]),
                "source": str(body.get("source", "")),
            }
            if body.get("large"):
                digests, before = (str(body["before"]), str(body["digest"])), None if body["new"] else b""
                size = int(body["size"])
                return FileChange(**facts, before=before, after=b"", size=size, digests=digests, is_large=True)
            before = None if body["new"] else read_bounded(place / f"{stem}.before", LARGEST)
            after = read_bounded(place / f"{stem}.after", LARGEST)
            if _digest(after) != body["digest"]:
                raise ValueError("its digest is another")
            digests = ("" if before is None else _digest(before), body["digest"])
            return FileChange(**facts, before=before, after=after, size=len(after), digests=digests)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Damaged(f"the copies in {str(place)!r} cannot be read: {error}", hint="use git to compare") from error


def sealed(root: Path, parts: Sequence[str]) -> Sized:
    """The regular file at `parts` with its size and digest, read in pieces. NotFound if there is none, Refused for a
    link, a folder or a special file."""
    digest, size, name = hashlib.sha256(), 0, "/".join(parts)
    with opened_inside(root, parts, name) as handle:
        while piece := os.read(handle, _PIECE):
            digest.update(piece)
            size += len(piece)
    return Sized(root, tuple(parts), size, digest.hexdigest())


def opened_bytes(file: Sized) -> bytes:
    """The content of a file of at most LARGEST bytes; IntegrityMismatch if it has another digest by now."""
    with opened_inside(file.root, file.parts, file.name) as handle:
        return b"".join(_checked(handle, file.digest, file.name))


def _checked(handle: int, digest: str, name: str) -> Iterator[bytes]:
    """The pieces of an open file; IntegrityMismatch at its end if it has another digest."""
    sha256 = hashlib.sha256()
    while piece := os.read(handle, _PIECE):
        sha256.update(piece)
        yield piece
    if sha256.hexdigest() != digest:
        raise IntegrityMismatch(f"{name!r} was changed meanwhile", hint="ask for it again")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
