"""Reads and writes files where the authority table allows it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from navigator_kernel.errors import KernelError, Refused
from navigator_kernel.storage_errors import storage_failed

FOLDER_MODE, PRIVATE = 0o755, 0o700
HALF_WRITTEN = ".navigator-*.tmp"
MANY, SYNCING = 64, 3  # paths from which several threads sync, and the number of additional threads
_CHUNK = 1024 * 1024

Stamp = tuple[int, int, int]  # mtime in ns, size, inode


class FolderWriter:
    """Implements `ports.Writer` over `roots`: folders, or single files that need not exist yet.

    A path is checked both as given and with its parent resolved; the paths in `read_only` stay untouched, and a path
    that is given as below `within` must really be there: a project cannot redirect its own folders elsewhere with a
    link. New folders get `mode`. Refused for a path that fails the checks, KernelError for an error of the system.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        read_only: Sequence[Path] = (),
        within: Path | None = None,
        mode: int = FOLDER_MODE,
    ) -> None:
        self._mode = mode
        self._within = "" if within is None else _absolute(within)
        self._roots = tuple(_absolute(root) for root in roots)
        self._read_only = tuple(_absolute(path) for path in read_only)
        self._real: dict[str, tuple[str, ...]] = {}
        self._unsynced: dict[str, None] | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        """Must not be nested; after an error it does not wait for the disk."""
        self._unsynced = {}
        try:
            yield
            _sync_all([*reversed(self._unsynced)])  # `_sync_all` begins at the end of the list
        finally:
            self._unsynced = None

    def write(self, path: Path, data: bytes, *, mode: int = 0o644) -> None:
        """Replaces the file as a whole or not at all, durable on return; creates the folders above it."""
        self.write_pieces(path, (data,), mode=mode)

    def write_pieces(self, path: Path, pieces: Iterable[bytes], *, mode: int = 0o644) -> None:
        """The same for a content in pieces, which need not fit into memory; an error of `pieces` is passed on."""
        path = self._checked(path)
        with _named("write", path):
            # Writes the whole file or nothing; an error of `pieces` leaves it as it was. `path` is absolute and has
            # no link among its folders; missing folders are made. OSError if one of them has become a link
            with _folder(path.parent, self._mode) as folder:
                temporary = f".navigator-{path.name[:80]}-{os.urandom(8).hex()}.tmp"
                try:
                    create_file(temporary, pieces, mode, os.fsync if self._unsynced is None else _begin_sync, folder)
                    os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
                except BaseException:
                    with suppress(FileNotFoundError):
                        os.unlink(temporary, dir_fd=folder)
                    raise
            if self._unsynced is not None:
                self._unsynced[str(path)] = None
            self._sync(path.parent)

    def write_new(self, folder: Path, files: Mapping[str, tuple[bytes, int]]) -> None:
        """Writes all files first, then syncs them: syncing one by one would wait for the disk once for each file."""
        folder = self._checked(folder)
        for name in files:
            if name != os.path.normpath(name) or name.split("/")[0] in {"", ".", ".."} or "\x00" in name:
                raise Refused(f"{name!r} is not a plain path", hint="write it without '..'")
        inner = sorted({name[:at] for name in files for at, mark in enumerate(name) if mark == "/"})
        with _named("write", folder):
            folder.mkdir(self._mode, parents=True)  # the folder is new and ours: no link in it leads elsewhere
            for name in inner:
                Path(folder, name).mkdir(self._mode)
            for name, (data, mode) in files.items():
                create_file(f"{folder}/{name}", (data,), mode, _begin_sync)
            for name in (*files, *inner):
                self._sync(f"{folder}/{name}")
            self._sync(folder)
            self._sync(folder.parent)

    def sweep(self, path: Path) -> int:
        """Removes half-written files of `path`; only for a file that no other process may be writing."""
        import glob

        path = self._checked(path)
        with _named("tidy", path):
            remains = list(path.parent.glob(f".navigator-{glob.escape(path.name[:80])}-*.tmp"))
            for half in remains:
                half.unlink(missing_ok=True)
        return len(remains)

    def append(self, path: Path, data: bytes) -> None:
        """Writes one record in one system call; creates the folders above the file."""
        with self.appending(path) as add:
            add(data)

    @contextmanager
    def appending(self, path: Path) -> Iterator[Callable[[bytes], None]]:
        """Writes each record in one system call. The file and its folder are for the person alone. Nothing is written
        to a file that takes the path's place meanwhile."""
        path = self._checked(path)

        def add(data: bytes) -> None:
            with _named("append to", path):
                if os.write(handle, data) != len(data):
                    raise OSError(errno.ENOSPC, "only a part was written")

        with _named("append to", path):
            path.parent.mkdir(PRIVATE, parents=True, exist_ok=True)
            if path.parent.stat().st_mode & 0o077:
                with suppress(PermissionError):
                    path.parent.chmod(PRIVATE)  # earlier versions made it for everybody
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            handle = os.open(path, flags, 0o600)
        try:
            yield add
        finally:
            os.close(handle)

    def overwrite(self, path: Path, data: bytes) -> None:
        """Replaces the beginning of a short file in one system call, without waiting for the disk: a killed process
        leaves either the old bytes or the new ones."""
        path = self._checked(path)
        with _named("write", path):
            path.parent.mkdir(self._mode, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            handle = os.open(path, flags, 0o600)
            try:
                if os.pwrite(handle, data, 0) != len(data):
                    raise OSError(errno.ENOSPC, "only a part was written")
            finally:
                os.close(handle)

    def create(self, path: Path, data: bytes, *, mode: int) -> bool:
        """Whether the file was created, complete and durable; False if something exists there already, which stays."""
        path = self._checked(path)
        with _named("make", path):
            path.parent.mkdir(self._mode, parents=True, exist_ok=True)
            fresh = path.with_name(f".navigator-{path.name[:80]}-{os.urandom(8).hex()}.tmp")
            try:
                create_file(fresh, (data,), mode, os.fsync)
                os.link(fresh, path, follow_symlinks=False)
            except FileExistsError:
                return False
            finally:
                fresh.unlink(missing_ok=True)
            self._sync(path.parent)
        return True

    def make_folder(self, path: Path) -> None:
        path = self._checked(path)
        if path.is_symlink():
            raise Refused(f"{str(path)!r} is a link", hint="replace the link with a folder")
        with _named("make", path):
            path.mkdir(self._mode, parents=True, exist_ok=True)

    def move(self, source: Path, target: Path) -> None:
        """Renames; Refused if the target exists."""
        source, target = self._checked(source), self._checked(target)
        if os.path.lexists(target):
            raise Refused(f"{str(target)!r} already exists", hint="move it away first")
        with _named("move", source):
            source.rename(target)
            self._sync(target.parent)
            self._sync(source.parent)

    def link(self, path: Path, text: str) -> None:
        """Creates the link in one system call that replaces nothing; creates the folders above it."""
        real, ahead = self._checked(path), os.path.normpath(Path(_absolute(path)).parent / text)
        leaves = self._is_within(_absolute(path)) and not self._is_within(ahead)
        outside = leaves or str(self._checked(Path(ahead))) != _placed(str(real.parent / text))
        if not text or Path(text).is_absolute() or outside:
            raise Refused(f"the link {str(path)!r} would point elsewhere", hint="remove the links on its way")
        with _named("link", path):
            real.parent.mkdir(self._mode, parents=True, exist_ok=True)
            try:
                real.symlink_to(text)
            except FileExistsError as error:
                raise Refused(f"{str(path)!r} already exists", hint="move it away first") from error
            self._sync(real.parent)

    def remove(self, path: Path, *, durable: bool = True) -> None:
        """Removes a file, a link itself, or a folder with its contents; does nothing if it is already gone."""
        path = self._checked(path)
        with _named("remove", path), suppress(FileNotFoundError):
            if stat.S_ISDIR(path.lstat().st_mode):
                from navigator_kernel.adapters.files.tree import remove_tree  # few commands remove anything

                if problems := remove_tree(path):
                    message = f"cannot remove all of {str(path)!r}: {problems[0]}"
                    raise KernelError(message, hint="check who owns what is in it")
            else:
                path.unlink()
            if durable:
                self._sync(path.parent)

    def remove_empty(self, folder: Path) -> None:
        """Removes the folder if nothing is in it; does nothing if something is, or if it is already gone."""
        folder = self._checked(folder)
        with suppress(OSError):
            folder.rmdir()
            self._sync(folder.parent)

    def _sync(self, path: str | Path) -> None:
        if self._unsynced is None:
            _sync(path)
        else:
            self._unsynced[str(path)] = None

    def _checked(self, path: Path) -> Path:
        """`path` with its parent folder resolved; Refused if it may not be written."""
        if ".." in path.parts or "\x00" in str(path):
            raise Refused(f"{str(path)!r} is not a plain path", hint="write it without '..'")
        text = _absolute(path)
        root = next((root for root in self._roots if _lies_in(text, root)), None)
        if root is None:
            hint = f"written to: {', '.join(self._roots) or 'nothing'}"
            raise Refused(f"{text!r} is outside the folders that may be written", hint=hint)
        real = _placed(text)
        if not any(_lies_in(real, place) for place in self._really(root)):
            raise Refused(f"{text!r} leads outside through a link", hint=f"remove the link below {root!r}")
        if self._is_within(text) and not _lies_in(real, self._really(self._within)[1]):
            raise Refused(f"{text!r} leads out of the project", hint=f"remove the link below {self._within!r}")
        if any(_overlaps(text, closed) or _overlaps(real, _placed(closed)) for closed in self._read_only):
            raise Refused(f"{text!r} is read-only", hint="write elsewhere")
        return Path(real)

    def _really(self, folder: str) -> tuple[str, ...]:
        """The real places of `folder` and of its target at the first call: if it is moved later, writing there is
        refused."""
        if folder not in self._real:
            self._real[folder] = (_placed(folder), os.path.realpath(folder))
        return self._real[folder]

    def _is_within(self, path: str) -> bool:
        return self._within != "" and _lies_in(path, self._within)


def make_private(folder: Path) -> None:
    """Creates `folder` with mode 0700; if it exists and other users have rights to it, takes these away. KernelError
    for an error of the system."""
    missing: list[Path] = []
    at = folder
    with _named("make", folder):
        while not at.exists():
            missing.append(at)
            at = at.parent
        for path in reversed(missing):
            with suppress(FileExistsError):
                path.mkdir(PRIVATE)
        if not missing and stat.S_IMODE(folder.stat().st_mode) & 0o077:
            folder.chmod(PRIVATE)


def stamp(path: Path) -> Stamp | None:
    """The mtime, size and inode, which show whether a file has changed; None without a file."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size, seen.st_ino


def read_bounded(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes; links and special files are Refused.

    FileNotFoundError if there is none.
    """
    with _opened(path) as handle:
        data = b""
        while len(data) <= limit and (piece := os.read(handle, limit + 1 - len(data))):
            data += piece
    if len(data) > limit:
        raise Refused(f"{str(path)!r} is over {limit} bytes", hint="use a smaller file", reason="too-large")
    return data


class FileSnapshot(NamedTuple):
    """The state of a regular file: its size, its SHA-256 in hex, and its mode as 0o644 or 0o755 with its extra bits:
    setuid, setgid, sticky, or writable by everybody."""

    size: int
    mode: int
    sha256: str


def seal_file(path: Path) -> FileSnapshot:
    """The snapshot of a regular file of any size; links and special files are Refused."""
    from hashlib import sha256

    total, digest = 0, sha256()
    with _opened(path) as handle:
        bits = os.fstat(handle).st_mode
        mode = (0o755 if bits & 0o100 else 0o644) | (bits & 0o7002)  # a umask can remove rights, but cannot add these
        while piece := os.read(handle, _CHUNK):
            total += len(piece)
            digest.update(piece)
    return FileSnapshot(total, mode, digest.hexdigest())


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Refused(f"{str(path)!r} is a link", hint="use the file that it points to", reason="link") from error
        raise KernelError(f"cannot read {str(path)!r}: {error.strerror}", hint="check the path") from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Refused(f"{str(path)!r} is not a regular file", hint="use a plain file", reason="special")
        yield handle
    finally:
        os.close(handle)


def _begin_sync(handle: int) -> None:
    """Starts writing to the disk without waiting, if the system supports that: one wait then serves many files."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


def _sync(path: str | Path) -> None:
    """Waits until a file or a folder is on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_all(paths: list[str]) -> None:
    """Syncs many paths in several threads: the system then needs fewer waits. KernelError if one fails."""
    failed: list[KernelError] = []

    def work() -> None:
        with suppress(IndexError):  # another thread has taken the last path
            while not failed:
                path = paths.pop()
                try:
                    with _named("write", Path(path)), suppress(FileNotFoundError):  # removed; its folder is synced too
                        _sync(path)
                except KernelError as error:
                    failed.append(error)

    others = [Thread(target=work) for _ in range(SYNCING if len(paths) >= MANY else 0)]
    for other in others:
        other.start()
    work()
    for other in others:
        other.join()
    if failed:
        raise failed[0]


@contextmanager
def _named(verb: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_failed(f"cannot {verb} {str(path)!r}", error, path) from error


# Paths as strings: a command checks hundreds of paths, and Path objects take ten times as long


def _absolute(path: Path) -> str:
    """Lexical only: links are resolved afterwards."""
    return os.path.normpath(path.absolute())


def _placed(path: str) -> str:
    """`path` with its parent resolved and its last part unchanged, link or not."""
    parent, _, name = path.rpartition("/")
    return f"{os.path.realpath(parent or '/').rstrip('/')}/{name}"


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _overlaps(path: str, kept: str) -> bool:
    return _lies_in(path, kept) or _lies_in(kept, path)


# Replaces a file through open folder handles, so that a folder that meanwhile becomes a link is not followed.

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def create_file(
    path: str | Path, pieces: Iterable[bytes], mode: int, sync: Callable[[int], None], folder: int | None = None
) -> None:
    """Creates a file; FileExistsError if it exists. With `folder`, an open folder's handle, `path` is a name in it."""
    handle = os.open(path, _NEW, mode, dir_fd=folder)
    try:
        os.fchmod(handle, mode)
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(handle, rest) :]
        sync(handle)
    finally:
        os.close(handle)


@contextmanager
def _folder(path: Path, mode: int) -> Iterator[int]:
    handle = os.open(path.anchor, _FOLDER)
    try:
        for part in path.parts[1:]:
            try:
                inner = os.open(part, _FOLDER, dir_fd=handle)
            except FileNotFoundError:
                with suppress(FileExistsError):
                    os.mkdir(part, mode, dir_fd=handle)
                inner = os.open(part, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)
