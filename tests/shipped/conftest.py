"""An empty project as the current folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from shipped.place import Place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    root = tmp_path / "project"
    (root / "mybox").mkdir(parents=True)
    monkeypatch.chdir(root)
    return Place(root=root)
