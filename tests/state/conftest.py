"""A home that nobody has used: that it holds something makes it one of an earlier version."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def pattern_sets() -> tuple[()]:
    return ()
