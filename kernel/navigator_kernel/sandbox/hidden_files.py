"""Finds files of secrets by name; a process with access to the project must not read them.

The names are those that `@` refuses, `.git/config` if it contains a password, and the person's state folder. The search
is bounded: folders that it does not reach are hidden as a whole.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from navigator_kernel.adapters.files.project_files import holds_secrets
from navigator_kernel.config.settings import user_state
from navigator_kernel.errors import Refused
from navigator_kernel.text import lazy_compile

ENTRIES = 200_000  # entries of folders that are examined
HIDDEN = 500  # paths that a sandbox hides
_CONFIG_LIMIT = 64 * 1024  # bytes; a longer config is hidden
_CREDENTIAL = lazy_compile(
    r"https?://[^/@\s]+@|://[^/@\s:]+:[^/@\s]+@|extraheader|(?:password|token)\s*=|helper\s*=\s*!"
)


def secret_paths(root: Path, skipped: Iterable[Path]) -> tuple[Path, ...]:
    """Secret files and folders below `root`, without `skipped` and links. Refused if there are over 500."""
    found: list[Path] = []
    for path in _search(root, frozenset(map(str, skipped))):
        found.append(path)
        if len(found) > HIDDEN:
            message = f"{str(root)!r} holds over {HIDDEN} files of secrets, or more files than are looked at"
            raise Refused(message, hint="name the files to read instead", reason="secrets")
    return tuple(found)


def _search(root: Path, skipped: frozenset[str]) -> Iterator[Path]:
    """Searches breadth first, so that the folders left at the bound are deep."""
    folders, left, state = deque([str(root)]), ENTRIES, os.path.realpath(user_state())
    while folders:
        folder = folders.popleft()
        if left <= 0:
            yield Path(folder)
            continue
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_symlink() or entry.path in skipped:
                        continue
                    if entry.path == state or _is_secret(entry):
                        yield Path(entry.path)
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.name == "config" and _has_credential(entry):
                        yield Path(entry.path)
        except OSError:
            yield Path(folder)  # a folder that cannot be searched is hidden


def _is_secret(entry: os.DirEntry[str]) -> bool:
    """Whether the name is that of a secret. A `.git` folder or file is not: `git log` reads it, and only its settings
    may contain a password."""
    if entry.name.casefold() == ".git":
        return False
    inside = ("file",) if entry.is_dir(follow_symlinks=False) else ()  # file name patterns do not apply to folders
    return holds_secrets((entry.name, *inside))


def _has_credential(entry: os.DirEntry[str]) -> bool:
    """Whether the `config` of a git repository contains a password or names a program that provides one."""
    if not os.path.lexists(Path(entry.path).with_name("HEAD")):
        return False
    try:
        with Path(entry.path).open("rb") as file:
            data = file.read(_CONFIG_LIMIT + 1)
    except OSError:
        return True
    return len(data) > _CONFIG_LIMIT or _CREDENTIAL.search(data.decode("latin-1").lower()) is not None
