"""The values that the library returns, besides replies and events."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from navigator_kernel.values.resource import Level, SkillDef
from navigator_kernel.values.route import Kind, NeedClarification, Tier, Unknown

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.routed import Routed
    from navigator_kernel.skills.install.install import InstallResult


class Skill(Struct, frozen=True, kw_only=True):
    """A skill of the catalogue. `runs` says whether it has a command of its own; other skills are text for a model."""

    name: str
    description: str
    level: Level
    path: Path
    runs: bool
    enabled: bool


class Route(Struct, frozen=True, kw_only=True):
    """How a message would be routed. `kind` is "skills" for a skill, whose name is `skill`; "direct" if none is needed,
    "clarify" if `question` comes first, with `options` to choose from. `candidates` are the nearest skills with the
    confidence in each, best first, and `steps` are those that the message spells out. `tier` and `reason` say how the
    route was found."""

    kind: Kind
    skill: str
    confidence: float
    tier: Tier
    reason: str
    question: str
    options: tuple[str, ...]
    candidates: Mapping[str, float]
    steps: tuple[str, ...]


class Installed(Struct, frozen=True, kw_only=True):
    """`new` are the skills that were added or changed, `there` those that needed no change, `left_out` those of `all`
    that could not be installed, each with the reason."""

    new: tuple[str, ...]
    there: tuple[str, ...]
    left_out: Mapping[str, str]


def skill_of(held: SkillDef) -> Skill:
    return Skill(
        name=held.name,
        description=held.description,
        level=held.level,
        path=held.path,
        runs=held.kind == "A",
        enabled=held.enabled,
    )


def route_of(found: Routed, k: int) -> Route:
    decision, retrieval = found.decision, found.intent.retrieval
    asks = decision.result if isinstance(decision.result, NeedClarification) else None
    unknown = decision.result if isinstance(decision.result, Unknown) else None
    options = unknown.suggestions if unknown else decision.options
    return Route(
        kind=decision.kind,
        skill=(decision.entity or "") if decision.kind == "skills" else "",
        confidence=decision.confidence,
        tier=decision.tier,
        reason=decision.reason,
        question=asks.question if asks else "",
        options=options,
        candidates={one.name: one.confidence for one in retrieval.candidates[:k]} if retrieval else {},
        steps=tuple(step.text for step in found.steps),
    )


def installed_of(result: InstallResult) -> Installed:
    """Converts the result of the lifecycle."""
    new = tuple(one.name for one in result.skills if one.changed)
    there = tuple(one.name for one in result.skills if not one.changed)
    return Installed(new=new, there=there, left_out={one["name"]: one["why"] for one in result.left_out})
