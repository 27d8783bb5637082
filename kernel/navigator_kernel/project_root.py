"""Where a project begins; imported by what has no time for more."""

from __future__ import annotations

import os

SERVERS_FILE, OWN_SERVERS_FILE = ".mcp.json", "mcp.json"  # the project's MCP servers, and the person's own
MARKS = ("navigator.toml", "mybox", ".claude", ".git")


def nearest(start: str) -> str:
    """The nearest folder from the real path `start` upwards that looks like a project, else `start` itself. The home
    folder and the file system's root are nobody's project."""
    home, folder = os.path.realpath(os.path.expanduser("~")), start
    while folder not in {home, os.path.dirname(folder)}:
        if any(os.path.exists(f"{folder}/{mark}") for mark in MARKS):
            return folder
        folder = os.path.dirname(folder)
    return start
