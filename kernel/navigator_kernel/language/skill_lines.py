"""Renders a list of skills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from navigator_kernel.language.wording import COLON, say
from navigator_kernel.text import Language, in_one_language, shorten

LISTED = 50  # most skills in a list
DESCRIBED = 100  # characters of each description


def listed(skills: Sequence[Mapping[str, Any]], language: Language) -> str | None:
    """A line for each of the first LISTED skills, installed ones first; None without skills."""
    own_first = sorted(skills, key=lambda skill: skill.get("status") == "shipped")
    lines = []
    for skill in own_first[:LISTED]:
        off = "" if skill.get("enabled", True) else say("lifecycle.off", language)
        description = in_one_language(str(skill.get("description", "")), language)
        lines.append(f"{skill['name']}{off}{COLON[language]}{shorten(description, DESCRIBED)}")
    more = len(skills) - len(lines)
    return "\n".join([*lines, *([say("lifecycle.more", language, count=more)] if more else [])]) or None
