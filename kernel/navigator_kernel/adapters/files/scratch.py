"""Gives each process its own folder for its home, temporary files and bytecode, and removes it at the end.

Navigator holds a lock on the folder until then. The system releases the lock of a killed process, so that a later
command knows that nobody uses the folder any more.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

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
