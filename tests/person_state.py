"""The person's state of a project and what they trust, for tests that read or write them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from navigator_kernel.bootstrap.places import open_consents, project_state
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.errors import KernelError
from navigator_kernel.skills.catalog.executor import SkillExecutor
from navigator_kernel.values.standing import skill_subject

if TYPE_CHECKING:
    from pathlib import Path


def state_of(root: Path) -> Path:
    """The state folder, claimed as the first write would claim it."""
    state = project_state(root)
    state.claim()
    return state.folder


def accept(root: Path, *names: str) -> None:
    """Records what `navigator skill trust` records for the project's skills `names`, or for all readable ones."""
    catalogue, subjects = Project(root, agents=False).catalogue, []
    for skill in catalogue.list_resources(enabled_only=False):
        if skill.type == "skill" and skill.level == "project" and (not names or skill.name in names):
            with suppress(KernelError):
                executor = SkillExecutor(skill=skill, agreed=catalogue.agreed, shipped=False)
                subjects.append(skill_subject(skill.name, executor.digest))
    open_consents().trust(*subjects, note="a test")
