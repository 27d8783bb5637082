"""Packages with a plugin, installed for one test: a module and its metadata in a folder on the path."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

NUMBERS = itertools.count()
HEAD = "from navigator_kernel.hookspecs import hookimpl\n"

Install = Callable[..., str]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package whose module is `code`, and returns the name of its entry point."""

    def put(code: str, *, name: str = "", value: str = "") -> str:
        module = f"nav_test_plugin_{next(NUMBERS)}"
        folder = tmp_path / "site" / module
        info = folder / f"{module}-1.0.dist-info"
        info.mkdir(parents=True)
        (folder / f"{module}.py").write_text(HEAD + code, encoding="utf-8")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[navigator]\n{name or module} = {value or module}\n")
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, module, raising=False)
        return name or module

    return put


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder
