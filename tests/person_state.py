"""Where the person's state of a project lies, and what they trust, for tests that look into it or write to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from navigator_kernel.assembly.consents import open_consents
from navigator_kernel.assembly.places import project_state
from navigator_kernel.skills.digest import folder_digest
from navigator_kernel.values.standing import skill_subject

if TYPE_CHECKING:
    from pathlib import Path


def state_of(root: Path) -> Path:
    """The folder, claimed as the first write would."""
    state = project_state(root)
    state.claim()
    return state.folder


def accept(root: Path, *names: str) -> None:
    """What `navigator skill trust` records for the project's skills `names`, of which none has a command."""
    folders = {name: root / ".claude" / "skills" / name for name in names}
    subjects = [skill_subject(name, folder_digest(folder)) for name, folder in folders.items()]
    open_consents().trust(*subjects, note="a test")
