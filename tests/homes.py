"""Makes a home for tests: empty but for a git identity and caches that are slow to make."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    Contents = dict[str, tuple[int, ...]]

GIT_CONFIG = """\
[user]
\tname = Test
\temail = test@example.invalid
[init]
\tdefaultBranch = main
[commit]
\tgpgSign = false
"""
GIT_CONFIG_NAME = ".gitconfig"
CACHE = "navigator/cache"
XDG_FOLDERS = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
    "XDG_RUNTIME_DIR": ".run",
}


def made_home(folder: Path, caches: Mapping[str, Sequence[Path]], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fills `folder` and makes it the HOME of this process, until `monkeypatch` undoes it."""
    return enter(fill(folder, caches), monkeypatch)


def fill(folder: Path, caches: Mapping[str, Sequence[Path]]) -> Path:
    """Puts the contents of every test home into an empty folder, and returns it."""
    (folder / XDG_FOLDERS["XDG_RUNTIME_DIR"]).mkdir(mode=0o700)
    cache = folder / XDG_FOLDERS["XDG_STATE_HOME"] / CACHE
    for part in (cache.parent, cache) if caches else ():
        part.mkdir(mode=0o700, parents=True)
    for name, paths in caches.items():
        (cache / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in paths:
            if path.suffix == ".vectors" or not name:  # the file grows or is rewritten, so homes must not share it
                copyfile(path, cache / name / path.name)
            else:
                (cache / name / path.name).hardlink_to(path)
    (folder / GIT_CONFIG_NAME).write_text(GIT_CONFIG, encoding="utf-8")
    return folder


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a filled folder the HOME of this process, and returns it."""
    for name in [name for name in os.environ if name.startswith(("NAVIGATOR_", "GIT_"))]:
        monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    for name, below in XDG_FOLDERS.items():
        monkeypatch.setenv(name, str(folder / below))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / GIT_CONFIG_NAME))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return folder


def contents(folder: Path) -> Contents:
    """Returns the inode, mode, size and modification time of a folder and everything in it, by path; nothing while a
    process still deletes files there."""
    paths = [folder, *(Path(at, name) for at, folders, files in os.walk(folder) for name in (*folders, *files))]
    try:
        stats = {str(path): path.lstat() for path in paths}
    except FileNotFoundError:
        return {}
    return {path: (stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}
