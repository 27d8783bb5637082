"""Gives each process its own folder for its home, temporary files and bytecode, and removes it at the end.

Navigator holds a lock on the folder until then. The system releases the lock of a killed process, so that a later
command knows that nobody uses the folder any more.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct, field

from navigator_kernel.adapters.files.tree import remove_tree
from navigator_kernel.text import lazy_compile

PRIVATE = 0o700
PARTS = HOME, TEMPORARY, BYTECODE = "home", "tmp", "bytecode"
HOSTS, LOCAL = "hosts", "127.0.0.1 localhost\n::1 localhost\n"  # the only host names of a process without network
SHARED = "/tmp", "/var/tmp"  # noqa: S108 - a folder in them is made with mode 0700; an existing path is an error
_NAME = lazy_compile(r"\.?navigator-(run-)?[0-9a-f]{32}")
_UNLOCKED = 7 * 86_400.0  # seconds after which a folder of an earlier version, which took no lock, is taken as left
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def new_scratch() -> Path:
    """A path that nobody can guess, in the first temporary folder that this user may write to; `make_scratch` makes it.

    `TMPDIR` comes first, then `/tmp` and `/var/tmp`, the order of Python's `tempfile`.
    """
    named = os.environ.get("TMPDIR")
    places = (named, *SHARED) if named else SHARED
    base = next((place for place in places if os.access(place, os.W_OK | os.X_OK)), places[0])
    return Path(os.path.realpath(base)) / f"navigator-run-{os.urandom(16).hex()}"


def make_scratch(folder: Path) -> int:
    """Makes the folder with its parts, and returns the open folder, locked, for `remove_scratch`; OSError if anything
    is there already. It gets its name after it is locked: `left_scratch` never sees it without an owner."""
    if os.path.lexists(folder):
        raise FileExistsError(f"{str(folder)!r} exists already")
    new = folder.with_name(f".{folder.name}")
    new.mkdir(PRIVATE)
    for name in PARTS:
        (new / name).mkdir(PRIVATE)
    (new / HOSTS).write_text(LOCAL)
    handle = os.open(new, _FOLDER)
    with suppress(OSError):  # a file system without locks: then nobody can take the lock to remove the folder either
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    new.rename(folder)
    return handle


def remove_scratch(folder: Path, handle: int) -> None:
    """Removes the folder, then closes `handle`. What cannot be removed now is removed by a later command."""
    if folder.is_dir():
        remove_tree(folder)
    os.close(handle)


def left_scratch() -> Iterator[Path]:
    """The folders of this user that killed processes left: those whose lock nobody holds."""
    for base in dict.fromkeys(map(os.path.realpath, filter(None, (os.environ.get("TMPDIR"), *SHARED)))):
        with suppress(OSError), os.scandir(base) as entries:
            for entry in entries:
                if _NAME.fullmatch(entry.name) and _is_left(entry):
                    yield Path(entry.path)


def _is_left(entry: os.DirEntry[str]) -> bool:
    try:
        seen = entry.stat(follow_symlinks=False)
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
            return False
        if not entry.name.startswith("navigator-run-") and abs(time.time() - seen.st_ctime) < _UNLOCKED:
            return False
        handle = os.open(entry.path, _FOLDER)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(handle)


async def remove_scratch_aside(folder: Path, handle: int) -> None:
    """Runs `remove_scratch` in a thread, or here if the interpreter is ending and starts no thread."""
    import asyncio

    try:
        removal = asyncio.get_running_loop().run_in_executor(None, remove_scratch, folder, handle)
    except RuntimeError:
        remove_scratch(folder, handle)
    else:
        await asyncio.shield(removal)


def scratch_environment(folder: Path) -> dict[str, str]:
    """The variables that point a program to its own folder."""
    return {
        "HOME": str(folder / HOME),
        "TMPDIR": str(folder / TEMPORARY),
        "PYTHONPYCACHEPREFIX": str(folder / BYTECODE),
    }


# Files of other folders, reachable under a name in the folder of a program while it runs there. A folder and a file of
# the person become a link: what the sandbox may not write stays unwritten. A file of an earlier turn becomes a copy, as
# the program may write it again. A name that is taken is left as it is. Afterwards the links go, and the copies that
# nobody changed; until then nothing else may follow a link in the folder. No step goes through one.

MOST, COPIED = 2_000, 32 * 1024 * 1024  # names in one folder, and bytes of all copies
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def lent(folder: Path, links: Mapping[str, Path], copies: Mapping[str, Path]) -> Iterator[None]:
    """Gives `folder` the names of `links` and `copies`, relative paths, until the end. A name that cannot be made is
    missing, as it would be without this."""
    if not (links or copies):
        yield
        return
    lending = _Lending(os.open(folder, _FOLDER))
    try:
        names = [*((path, target, False) for path, target in links.items())]
        names += [(path, target, True) for path, target in copies.items() if path not in links]
        for path, target, is_copy in sorted(names, key=lambda name: -name[0].count("/")):
            lending.make(tuple(path.split("/")), target, is_copy=is_copy)
        yield
    finally:
        lending.take_back()
        os.close(lending.root)


class _Lending(Struct):
    """What was made below the open folder `root`: links with their targets, copies with their stamps, and folders."""

    root: int
    links: dict[tuple[str, ...], str] = field(default_factory=dict)
    copies: dict[tuple[str, ...], tuple[int, int, int]] = field(default_factory=dict)
    folders: list[tuple[str, ...]] = field(default_factory=list)
    left: int = COPIED

    def make(self, parts: tuple[str, ...], target: Path, *, is_copy: bool) -> None:
        if len(self.links) + len(self.copies) >= MOST or not all(part not in {"", ".", ".."} for part in parts):
            return
        with suppress(OSError), self._within(parts[:-1], new=True) as at:
            try:
                self._make(parts, target, at, is_copy=is_copy)
            except FileExistsError:
                # A folder gets the names of the target's entries; a link that a killed kernel left is ours
                mode = os.stat(parts[-1], dir_fd=at, follow_symlinks=False).st_mode
                if stat.S_ISLNK(mode) and os.readlink(parts[-1], dir_fd=at) == str(target):
                    self.links[parts] = str(target)
                elif stat.S_ISDIR(mode) and target.is_dir() and not target.is_symlink():
                    for entry in sorted(target.iterdir()):
                        self.make((*parts, entry.name), entry, is_copy=False)

    def _make(self, parts: tuple[str, ...], target: Path, at: int, *, is_copy: bool) -> None:
        if not is_copy or target.stat().st_size > self.left:
            os.symlink(target, parts[-1], dir_fd=at)
            self.links[parts] = str(target)
            return
        source = os.open(target, _READ)
        try:
            seen = os.fstat(source)
            if not stat.S_ISREG(seen.st_mode):
                return
            handle = os.open(parts[-1], _NEW, 0o644, dir_fd=at)
            try:
                while (copied := os.sendfile(handle, source, None, min(self.left, 1 << 20))) > 0:
                    self.left -= copied
                os.fchmod(handle, seen.st_mode & 0o755)
                self.copies[parts] = _stamp(os.fstat(handle))
            finally:
                os.close(handle)
        finally:
            os.close(source)

    def take_back(self) -> None:
        """Removes what is still as it was made."""
        for parts, target in self.links.items():
            with suppress(OSError), self._within(parts[:-1]) as at:
                if os.readlink(parts[-1], dir_fd=at) == target:
                    os.unlink(parts[-1], dir_fd=at)
        for parts, stamp in self.copies.items():
            with suppress(OSError), self._within(parts[:-1]) as at:
                if _stamp(os.stat(parts[-1], dir_fd=at, follow_symlinks=False)) == stamp:
                    os.unlink(parts[-1], dir_fd=at)
        for parts in reversed(self.folders):
            with suppress(OSError), self._within(parts[:-1]) as at:
                os.rmdir(parts[-1], dir_fd=at)

    @contextmanager
    def _within(self, parts: Sequence[str], *, new: bool = False) -> Iterator[int]:
        """The open folder at `parts`; with `new` it is made if it is missing. OSError if a link is on the way."""
        handle = os.dup(self.root)
        try:
            for count, part in enumerate(parts, 1):
                with suppress(FileExistsError):
                    if new:
                        os.mkdir(part, dir_fd=handle)
                        self.folders.append(tuple(parts[:count]))
                inner = os.open(part, _FOLDER, dir_fd=handle)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)


def _stamp(seen: os.stat_result) -> tuple[int, int, int]:
    return seen.st_mtime_ns, seen.st_size, seen.st_ino
