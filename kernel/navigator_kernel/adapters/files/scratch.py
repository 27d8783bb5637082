"""Gives each process its own folder for its home, temporary files and bytecode, and removes it at the end."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from navigator_kernel.adapters.files.tree import remove_tree

PRIVATE = 0o700
PARTS = HOME, TEMPORARY, BYTECODE = "home", "tmp", "bytecode"
HOSTS, LOCAL = "hosts", "127.0.0.1 localhost\n::1 localhost\n"  # the only host names of a process without network
SHARED = "/tmp", "/var/tmp"  # noqa: S108 - a folder in them is made with mode 0700; an existing path is an error


def new_scratch() -> Path:
    """A path that nobody can guess, in the first temporary folder that this user may write to; `make_scratch` makes it.

    `TMPDIR` comes first, then `/tmp` and `/var/tmp`, the order of Python's `tempfile`.
    """
    named = os.environ.get("TMPDIR")
    places = (named, *SHARED) if named else SHARED
    base = next((place for place in places if os.access(place, os.W_OK | os.X_OK)), places[0])
    return Path(os.path.realpath(base)) / f"navigator-{secrets.token_hex(16)}"


def make_scratch(folder: Path) -> None:
    """Makes the folder with its parts; FileExistsError if anything is there already."""
    folder.mkdir(PRIVATE)
    for name in PARTS:
        (folder / name).mkdir(PRIVATE)
    (folder / HOSTS).write_text(LOCAL)


def remove_scratch(folder: Path) -> None:
    """Removes the folder. What cannot be removed stays; the system clears its temporary folder."""
    if folder.is_dir():
        remove_tree(folder)


async def remove_scratch_aside(folder: Path) -> None:
    """Runs `remove_scratch` in a thread, or here if the interpreter is ending and starts no thread."""
    import asyncio

    try:
        removal = asyncio.get_running_loop().run_in_executor(None, remove_scratch, folder)
    except RuntimeError:
        remove_scratch(folder)
    else:
        await asyncio.shield(removal)


def scratch_environment(folder: Path) -> dict[str, str]:
    """The variables that point a program to its own folder."""
    return {
        "HOME": str(folder / HOME),
        "TMPDIR": str(folder / TEMPORARY),
        "PYTHONPYCACHEPREFIX": str(folder / BYTECODE),
    }
