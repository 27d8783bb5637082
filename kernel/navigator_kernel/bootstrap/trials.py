"""A router with other settings or with a draft of a skill, which leaves the project's own index unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.bootstrap.parts import RouterParts, open_encoder, open_lessons
from navigator_kernel.routing.cascade import CascadeRouter
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.meaning import SemanticRanker

if TYPE_CHECKING:
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


def open_trial(
    root: Path, settings: Settings, parts: RouterParts, folder: Path, skills: Sequence[SkillDef] = ()
) -> RouterParts:
    """The parts for `settings`, with `skills` instead of those with the same names; `folder` is for the index."""
    catalogue = cast("Catalogue", Replaced(parts.catalogue, skills))
    encoder = (parts.meaning.index.encoder or open_encoder(root, settings)) if settings.encoder != "off" else None
    index = RoutingIndex(folder, FolderWriter([folder]), encoder)
    meaning = SemanticRanker(index, boldness=settings.boldness, lessons=open_lessons(root).known)
    own = parts.router
    router = replace(own, catalogue=catalogue, meaning=meaning) if isinstance(own, CascadeRouter) else own
    return replace(parts, catalogue=catalogue, router=router, meaning=meaning)
