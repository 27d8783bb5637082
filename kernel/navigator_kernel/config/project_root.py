"""Finds the root of a project, and whether its files belong to the person; imports little to keep the hook fast."""

from __future__ import annotations

import json
import os

SERVERS_FILE, OWN_SERVERS_FILE = ".mcp.json", "mcp.json"  # the project's MCP servers, and the person's own
MARKS = ("navigator.toml", "mybox", ".claude", ".git")
# The folders of hosts that have `skills` below them, in the order of reading
HOSTS = (
    ".claude", ".agents", ".gemini", ".opencode", ".codex", ".cursor", ".github", ".goose", ".qwen", ".kimi-code",
    ".kimi", ".windsurf",
)  # fmt: skip
_READ = (*MARKS, SERVERS_FILE, *HOSTS[1:], "agents", "bin", "docs", "skills.lock.json")
_WRITABLE_BY_OTHERS = 0o022
_KIND, _LINK = 0o170000, 0o120000  # as in the module `stat`


def nearest(start: str) -> str:
    """The nearest folder from the real path `start` upwards that looks like a project, else `start` itself. The home
    folder and the file system's root do not count; a folder of another user does only with approval."""
    home, folder = os.path.realpath(os.path.expanduser("~")), start
    while folder not in {home, os.path.dirname(folder)}:
        if any(os.path.lexists(f"{folder}/{mark}") for mark in MARKS) and is_usable(folder):
            return folder
        folder = os.path.dirname(folder)
    return start


def is_project(root: str) -> bool:
    """Whether `root` looks like a project. The home folder and the file system's root need one of the kernel's own
    marks, because the others there belong to other programs."""
    apart = root in {os.path.realpath(os.path.expanduser("~")), os.path.dirname(root)}
    return any(os.path.lexists(f"{root}/{mark}") for mark in (MARKS[:2] if apart else MARKS))


def is_usable(root: str) -> bool:
    """Whether the project's files count as the person's: the person owns them or has approved this path."""
    if not foreign(root):
        return True
    try:
        with open(f"{state_home()}/trust.json", encoding="utf-8") as file:
            return project_subject(root) in json.load(file)["trusted"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def project_subject(root: str) -> str:
    """The subject of the person's approval of a project whose files belong to another user."""
    return f"project:{os.path.realpath(root)}"


def foreign(root: str) -> str:
    """The first path of the project at `root`, itself included, that another user owns; empty if all are the person's
    (the rule of git's `safe.directory`). Root's files count as the person's if nobody else can write them."""
    return next((path for path in (root, *(f"{root}/{name}" for name in _READ)) if not is_own(path)), "")


def state_home() -> str:
    """The person's state folder, by the XDG base directory specification."""
    named = os.environ.get("XDG_STATE_HOME", "")
    return f"{named if named.startswith('/') else os.path.expanduser('~/.local/state')}/navigator"


def is_own(path: str) -> bool:
    """Whether the person owns `path` and the target of its link, or it does not exist; for root under sudo, the caller
    of sudo counts as the person, too."""
    me = os.geteuid()
    for follow in (False, True):
        try:
            seen = os.stat(path, follow_symlinks=follow)
        except OSError:
            continue
        is_mine = seen.st_uid == me or (me == 0 and os.environ.get("SUDO_UID") == str(seen.st_uid))
        is_fixed = seen.st_mode & _KIND == _LINK or not seen.st_mode & _WRITABLE_BY_OTHERS
        if not is_mine and not (seen.st_uid == 0 and is_fixed):
            return False
    return True
