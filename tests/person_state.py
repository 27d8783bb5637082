"""Where the person's state of a project lies, for tests that look into it or write to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from navigator_kernel.assembly.places import project_state

if TYPE_CHECKING:
    from pathlib import Path


def state_of(root: Path) -> Path:
    """The folder, claimed as the first write would."""
    state = project_state(root)
    state.claim()
    return state.folder
