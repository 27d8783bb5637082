"""Gives every test a home of its own, and the same random examples on every machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["requirement_marks", "pytester"]

settings.load_profile("ci")  # hypothesis's own: no deadline, the same examples each time, no example database

GIT_CONFIG = """\
[user]
\tname = Test
\temail = test@example.invalid
[init]
\tdefaultBranch = main
[commit]
\tgpgSign = false
"""
XDG_FOLDERS = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
    "XDG_RUNTIME_DIR": ".run",
}


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty HOME with a git identity; nothing of the person who runs the tests shows through."""
    folder = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith(("NAVIGATOR_", "GIT_"))]:
        monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    for name, below in XDG_FOLDERS.items():
        monkeypatch.setenv(name, str(folder / below))
    monkeypatch.setenv("NAVIGATOR_ENCODER", "off")  # its arrays take 2 s and 83 MB in each new home
    monkeypatch.setattr("navigator_kernel.adapters.use_encoder.installed", lambda: False)
    (folder / XDG_FOLDERS["XDG_RUNTIME_DIR"]).mkdir(mode=0o700)
    (folder / ".gitconfig").write_text(GIT_CONFIG, encoding="utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / ".gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return folder
