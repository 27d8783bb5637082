"""How far the person accepts a skill: unknown, installed or trusted (SAF-1, X-43)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

Standing = Literal["unknown", "installed", "trusted"]
_SKILL = "skill:"
AGAIN = "again:"  # subject prefix of a call that may already have acted


def install_subject(name: str, origin: str, digest: str) -> str:
    """The subject of an install command: name, source and digest."""
    return f"installed:{name}@{origin}@{digest}"


def skill_subject(name: str, digest: str) -> str:
    """The subject of trust in a skill: its name and digest."""
    return f"{_SKILL}{name}@{digest}"


def is_skill_subject(subject: str) -> bool:
    return subject.startswith(_SKILL)


def standing_of(name: str, origin: str, digest: str, subjects: Collection[str]) -> Standing:
    """The standing of a skill that this release does not ship. `subjects` are the person's consents; `origin` is the
    source that a receipt claims, and counts only if an install command of this person recorded it."""
    if skill_subject(name, digest) in subjects:
        return "trusted"
    return "installed" if origin and install_subject(name, origin, digest) in subjects else "unknown"
