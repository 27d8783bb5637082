"""A router with other settings or with a draft of a skill, which leaves the project's own index unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.routing.cascade import CascadeRouter
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.meaning import SemanticRanker

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.config.settings import Settings
    from navigator_kernel.ports import Catalogue
    from navigator_kernel.values.resource import SkillDef


class Replaced:
    """A catalogue in which each of `skills` replaces the one with its name."""

    def __init__(self, held: Catalogue, skills: Sequence[SkillDef]) -> None:
        self._held, self._skills = held, {skill.name: skill for skill in skills}

    def list_resources(self, *, enabled_only: bool = True) -> Sequence[SkillDef]:
        found = self._held.list_resources(enabled_only=enabled_only)
        return tuple(self._skills.get(one.name, one) for one in found)

    def find(self, name: str, type: Any = "skill") -> SkillDef | None:
        found = self._held.find(name, type)
        return found if found is None else self._skills.get(found.name, found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._held, name)


def open_trial(project: Project, settings: Settings, folder: Path, skills: Sequence[SkillDef] = ()) -> Project:
    """The project with `settings`, and `skills` instead of those with the same names; `folder` is for the index."""
    trial = project.with_settings(settings)
    catalogue = cast("Any", Replaced(project.catalogue, skills))
    index = RoutingIndex(folder, FolderWriter([folder]), trial.encoder)
    meaning = SemanticRanker(index, boldness=settings.boldness, lessons=trial.lessons.known)
    trial.catalogue, trial.meaning = catalogue, meaning
    own = project.router
    trial.router = replace(own, catalogue=catalogue, meaning=meaning) if isinstance(own, CascadeRouter) else own
    return trial
