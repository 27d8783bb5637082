"""Caches fetched git objects by repository, so that nothing is fetched twice."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.writer import FolderWriter, read_bounded
from navigator_kernel.errors import KernelError
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from navigator_kernel.ports import Clock, Writer

CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n"  # no remote, so git cannot fetch by itself
PRIVATE = 0o700
_NOTE_LIMIT = 1024 * 1024  # bytes
_REF_LIMIT = 200  # refs remembered for one repository
_TIP_LIMIT = 16
_KEY = lazy_compile(r"[0-9a-f]{32}")
_COMMIT = lazy_compile(r"[0-9a-f]{40}")
# The only paths that git may find in our repositories: no hooks, no attributes, no alternates, no other settings.
_KNOWN = lazy_compile(
    r"\.git(/(HEAD|config|FETCH_HEAD|shallow|refs|refs/heads|refs/tags|objects|objects/pack|objects/info"
    r"|objects/[0-9a-f]{2}|objects/[0-9a-f]{2}/[0-9a-f]{38}|objects/pack/pack-[0-9a-f]{40}\.[a-z]{3,8}))?"
)
_LEFT_OVER = lazy_compile(r"(.*\.lock|(.*/)?(tmp_|\.tmp-|shallow_|\.navigator-)[^/]*)")  # files of a killed process


class Entry(Struct, kw_only=True):
    """One repository that this process has locked: git works in `folder`; `refs` maps each ref to `{commit, at}`."""

    folder: Path
    writer: Writer
    clock: Clock
    refs: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def made(self) -> bool:
        """Whether `folder` contains a repository."""
        return (self.folder / ".git" / "config").is_file()

    def settle(self) -> None:
        """Gives the repository our settings and no others."""
        path = self.folder / ".git" / "config"
        if path.read_bytes() != CONFIG:
            self.writer.write(path, CONFIG)

    def init(self) -> None:
        """Creates an empty repository as `git init` would, without another process (gitrepository-layout(5)). Its
        config is written last, as `made` checks for that."""
        git = self.folder / ".git"
        with self.writer.together():
            for name in ("objects", "refs"):
                self.writer.make_folder(git / name)
            self.writer.write(git / "HEAD", b"ref: refs/heads/main\n")
            self.writer.write(git / "config", CONFIG)

    def remember(self, ref: str, commit: str) -> None:
        self.refs[ref] = {"commit": commit, "at": self.clock.now()}

    def discard(self) -> None:
        """Removes the repository; `refs` is kept."""
        self.writer.remove(self.folder)

    def tips(self) -> tuple[str, ...]:
        """Commits that are stored with all their trees: the server need not send these again."""
        return tuple(self._shallow()[-_TIP_LIMIT:])

    def indexes(self) -> tuple[Path, ...]:
        return tuple(sorted((self.folder / ".git" / "objects" / "pack").glob("*.idx")))

    def objects(self) -> int:
        """The number of objects in its packs, from their indexes (gitformat-pack(5): the last word of the fan-out)."""
        counts = []
        for path in self.indexes():
            with path.open("rb") as index:
                counts.append(int.from_bytes(index.read(1032)[1028:]))
        return sum(counts)

    def sweep(self) -> None:
        """Removes the files that a killed process left, or the whole repository if anything in it is not ours."""
        try:
            sound = _plain(self.folder) and self.made and all(map(_COMMIT.fullmatch, self._shallow()))
            remains: list[Path] = []
            for path in _below(self.folder) if sound else ():
                name = path.relative_to(self.folder).as_posix()
                if _LEFT_OVER.fullmatch(name):
                    remains.append(path)
                elif not _KNOWN.fullmatch(name) or not _plain(path):
                    sound = False
                    break
        except OSError:
            sound = False
        if not sound:
            self.discard()
            return
        for path in remains:
            self.writer.remove(path)

    def _shallow(self) -> list[str]:
        with suppress(OSError):
            return (self.folder / ".git" / "shallow").read_text(encoding="ascii", errors="replace").splitlines()
        return []


class RepoCache:
    """Keeps a repository for each URL below `folder`, which only its owner may enter. A note lies beside each of them:
    `{url, used_at, refs: {ref: {commit, at}}}`. `writer` may write to `folder`."""

    def __init__(self, folder: Path, writer: Writer | None = None, clock: Clock | None = None) -> None:
        self._folder = folder
        self._writer = writer or FolderWriter([folder])
        self._clock = clock or SystemClock()

    def path(self, url: str) -> Path:
        """The folder of the repository of `url`."""
        return self._folder / hashlib.sha256(url.encode("utf-8", errors="surrogateescape")).hexdigest()[:32]

    @contextmanager
    def held(self, url: str, timeout: float = 60.0) -> Iterator[Entry]:
        """Locks the repository of `url` for this process; Busy after `timeout` seconds of waiting for another.

        KernelError if the cache folder cannot be created or made private.
        """
        self._writer.make_folder(self._folder)
        try:
            if stat.S_IMODE(self._folder.stat().st_mode) != PRIVATE:
                self._folder.chmod(PRIVATE)
        except OSError as error:
            message = f"cannot keep {str(self._folder)!r} private: {error.strerror}"
            raise KernelError(message, hint="check whose folder it is") from error
        path = self.path(url)
        lock = path.with_suffix(".lock")
        if lock.is_symlink():
            self._writer.remove(lock)
        with file_lock(lock, timeout):
            note = _note(path)
            refs = note["refs"] if note["url"] == url else {}
            entry = Entry(folder=path, writer=self._writer, clock=self._clock, refs=refs)
            entry.sweep()
            try:
                yield entry
            finally:
                if entry.made:
                    newest = sorted(entry.refs.items(), key=lambda pair: pair[1]["at"])[-_REF_LIMIT:]
                    body = {"url": url, "used_at": self._clock.now(), "refs": dict(newest)}
                    data = json.dumps(body, ensure_ascii=False, indent=1).encode("utf-8", errors="replace")
                    with suppress(KernelError):  # a note that cannot be written is not an error
                        self._writer.write(path.with_suffix(".json"), data, mode=0o600)

    def listed(self) -> tuple[Mapping[str, Any], ...]:
        """`{url, bytes, refs: {ref: {commit, at}}, used_at}` of each, sorted by URL; an unknown URL is empty."""
        rows = []
        for path in self._entries():
            size = 0
            with suppress(OSError):  # the folder may be removed while its size is measured
                for file in _below(path):
                    size += file.lstat().st_size
            rows.append({**_note(path), "bytes": size})
        return tuple(sorted(rows, key=lambda row: str(row["url"])))

    def clear(self, older_than_days: float | None = None) -> int:
        """Removes all repositories, or those that were not used for so many days, and returns how many."""
        old, now = self._entries(), datetime.fromisoformat(self._clock.now())
        if older_than_days is not None:
            age = timedelta(days=older_than_days)
            old = [path for path in old if now - datetime.fromisoformat(str(_note(path)["used_at"])) > age]
        for path in old:
            with file_lock(path.with_suffix(".lock")):
                self._writer.remove(path)
                self._writer.remove(path.with_suffix(".json"))
        return len(old)

    def _entries(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return [path for path in self._folder.iterdir() if _KEY.fullmatch(path.name) and not path.is_symlink()]


def _note(path: Path) -> dict[str, Any]:
    """The note beside the repository `path`, with defaults for its invalid parts."""
    note: Any = None
    with suppress(OSError, ValueError, RecursionError, KernelError):
        note = json.loads(read_bounded(path.with_suffix(".json"), _NOTE_LIMIT))
    note = note if isinstance(note, dict) else {}
    url, refs, used = note.get("url"), note.get("refs"), note.get("used_at")
    if not _is_time(used):
        changed = 0.0
        with suppress(OSError):
            changed = path.lstat().st_mtime
        used = datetime.fromtimestamp(changed, UTC).isoformat()
    return {
        "url": url if isinstance(url, str) else "",
        "used_at": used,
        "refs": {ref: dict(seen) for ref, seen in refs.items() if _is_seen(seen)} if isinstance(refs, dict) else {},
    }


def _is_seen(value: object) -> bool:
    if not isinstance(value, dict) or set(value) != {"commit", "at"}:
        return False
    return isinstance(value["commit"], str) and _COMMIT.fullmatch(value["commit"]) is not None and _is_time(value["at"])


def _is_time(value: object) -> bool:
    with suppress(ValueError):
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    return False


def _below(folder: Path) -> Iterator[Path]:
    """All paths below `folder`; links are not followed."""
    with os.scandir(folder) as found:
        entries = list(found)
    for entry in entries:
        yield Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path))


def _plain(path: Path) -> bool:
    """Whether `path` is a regular file or a folder of this person, and not a link."""
    seen = path.lstat()
    return seen.st_uid == os.geteuid() and (stat.S_ISREG(seen.st_mode) or stat.S_ISDIR(seen.st_mode))
