"""How far the person accepts a skill: unknown, installed or trusted (SAF-1, X-43)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

Standing = Literal["unknown", "installed", "trusted"]
_SKILL = "skill:"
AGAIN = "again:"  # subject prefix of a call that may already have acted


class Need(NamedTuple):
    """A consent that a call needs: its subject, and the question to the person. `for_order` says that a yes is to a
    kind of access: it holds for the whole run, and no call uses it up. A consent for more than one execution to one of
    `unless` covers the call, too."""

    subject: str
    question: str
    for_order: bool = False
    unless: tuple[str, ...] = ()


def install_subject(name: str, origin: str, digest: str) -> str:
    """The subject of an install command: name, source and digest."""
    return f"installed:{name}@{origin}@{digest}"


def skill_subject(name: str, digest: str) -> str:
    """The subject of trust in a skill: its name and digest."""
    return f"{_SKILL}{name}@{digest}"


def standing_of(name: str, origin: str, digest: str, subjects: Collection[str]) -> Standing:
    """The standing of a skill that this release does not ship. `subjects` are the person's consents; `origin` is the
    source that a receipt claims, and counts only if an install command of this person recorded it."""
    if skill_subject(name, digest) in subjects:
        return "trusted"
    return "installed" if origin and install_subject(name, origin, digest) in subjects else "unknown"
