"""A home that nobody has used: if it contained anything, it would count as one of an earlier version."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def caches() -> Mapping[str, tuple[Path, ...]]:
    return {}


@pytest.fixture(autouse=True)
def by_words(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns the encoder off: it would be prepared in each home."""
    monkeypatch.setenv("NAVIGATOR_ENCODER", "off")
