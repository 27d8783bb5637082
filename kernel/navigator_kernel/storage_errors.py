"""Says what the matter is when a file or a database cannot be read or written, and what helps.

SQLite hides the system's error number, and reports some causes under a wrong name: a file system without locks as a
busy database, a used-up quota as an I/O error. So the folder is tried out when SQLite has failed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.errors import Busy, Damaged, KernelError, StorageFailed

if TYPE_CHECKING:
    import sqlite3

LONGEST = 488  # bytes of the path of a database: SQLite's 512, with what the names of the files beside it add
REBUILDS = "navigator doctor --repair keeps the file, and makes a new one of what can be read"
_MOVE = "or move your state to a local disk, and set XDG_STATE_HOME to that folder"
_FULL = ("full", "free space on its disk, then try again")
_READ_ONLY = ("read_only", f"make it and its folder writable, {_MOVE}")
_NO_LOCKS = ("no_locks", f"its file system has no locks: use another one, {_MOVE}")
_TOO_LONG = ("too_long", f"use a shorter path, {_MOVE}")
_FAULT = ("fault", f"check the disk, {_MOVE}")
_KINDS: Mapping[int, tuple[str, str]] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: ("full", "your quota on its disk is used up; free space, then try again"),
    errno.EFBIG: ("full", "a limit of the size of files is reached; raise it with ulimit -f, then try again"),
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
    errno.EROFS: _READ_ONLY,
    errno.ENOLCK: _NO_LOCKS,
    errno.ENOTSUP: _NO_LOCKS,
    errno.ENOSYS: _NO_LOCKS,
    errno.ENAMETOOLONG: _TOO_LONG,
    errno.EMFILE: ("fault", "too many files are open; raise the limit with ulimit -n"),
    errno.EIO: _FAULT,
    errno.ELOOP: ("link", "remove the link"),
}
_OTHER = ("other", "check the disk and the rights")


def storage_failed(message: str, error: OSError) -> StorageFailed:
    """The error for `message`, with the system's reason, the kind of failure and a hint."""
    kind, hint = _KINDS.get(error.errno or 0, _OTHER)
    return StorageFailed(f"{message}: {error.strerror or error}", hint=hint, kind=kind, errno=error.errno)


def database_failed(file: Path, error: sqlite3.Error) -> KernelError:
    """Busy, Damaged or StorageFailed for what SQLite reports about `file`."""
    import sqlite3

    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # text that is not UTF-8 has no code
    main, what = code & 0xFF, f"{str(file)!r} cannot be used"
    if main in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}:
        return Damaged(f"{what}: {error}", hint=REBUILDS, path=str(file))
    if main == sqlite3.SQLITE_CANTOPEN and len(os.fsencode(os.path.realpath(file))) > LONGEST:
        return storage_failed(what, OSError(errno.ENAMETOOLONG, f"its path is over {LONGEST} bytes"))
    if main == sqlite3.SQLITE_FULL:
        return storage_failed(what, OSError(errno.ENOSPC, str(error)))
    cause = _tried(file)
    if cause is not None:
        return storage_failed(what, cause)
    if main in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}:
        return Busy(f"another process is using {file.name!r}", hint="wait for it, then try again")
    if main in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}:
        return storage_failed(what, OSError(errno.EACCES, str(error)))
    kind, hint = _FAULT if main in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN} else ("other", "report it")
    return StorageFailed(f"{what}: {error}", hint=hint, kind=kind, reason=getattr(error, "sqlite_errorname", ""))


def empty(file: Path) -> Damaged:
    """The error for a database without content: the kernel makes each one complete or not at all."""
    return Damaged(f"{str(file)!r} is empty", hint=REBUILDS, path=str(file))


def newer(file: Path, version: int, known: int) -> KernelError:
    """The error for a database whose tables have a version that this program does not know."""
    message = f"{str(file)!r} was made by a newer navigator: version {version}, and this one knows {known}"
    return KernelError(message, hint="update navigator", path=str(file))


def _tried(file: Path) -> OSError | None:
    """Why the folder of a database cannot be used now: writes and locks a file there; None if all of that works."""
    import fcntl

    paths = (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm"))
    for path in paths:
        if path.exists() and not os.access(path, os.R_OK | os.W_OK):
            return OSError(errno.EACCES, os.strerror(errno.EACCES))
    end = max((path.stat().st_size for path in paths if path.exists()), default=0)  # a limit of sizes shows only there
    trial = file.with_name(f".navigator-{os.urandom(8).hex()}.tmp")
    try:
        with trial.open("xb", buffering=0) as handle:
            try:
                fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.pwrite(handle.fileno(), bytes(64 * 1024), end)
                os.fsync(handle)
            finally:
                trial.unlink()
    except OSError as error:
        return error
    return None
