"""A list of skills as a fragment of a system prompt (CTX-1..9)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from msgspec import Struct, field

from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
from navigator_kernel.skills.catalog.listing import Root
from navigator_kernel.text import Language, clean

if TYPE_CHECKING:
    from pathlib import Path

    from navigator_kernel.values.resource import SkillDef

EMPTY = {"en": "no skill available yet", "zh": "暂无可用 skill"}  # RTE-23


class SkillsContext(Struct):
    """The skills for a system prompt (CTX-1..3), loaded once for a session (CTX-5)."""

    skills: dict[str, SkillDef] = field(default_factory=dict)

    def register(self, skill: SkillDef) -> None:
        """Adds a skill or replaces the one with its name."""
        self.skills[skill.name] = skill

    def load_from_directory(self, folder: Path) -> None:
        """Adds every usable skill below `folder` (see `catalogue.diagnostics` for the others)."""
        for skill in ResourceCatalogue(roots=(Root(path=folder, level="project"),)).list_resources():
            self.register(skill)

    def get_skills_prompt(self, language: Language = "en") -> str:
        """One line for each enabled skill in tool-use form: `{name, description, input_schema}` (CTX-7)."""
        lines = []
        for skill in (skill for _, skill in sorted(self.skills.items()) if skill.enabled):
            properties = {spec.name: {"type": "string", "description": spec.prompt} for spec in skill.required_params}
            needed = [spec.name for spec in skill.required_params if spec.required and spec.default is None]
            schema = {"type": "object", "properties": properties, "required": needed}
            tool = {"name": skill.name, "description": clean(skill.description, lines=False), "input_schema": schema}
            lines.append(json.dumps(tool, ensure_ascii=False))
        return "\n".join(lines) or EMPTY[language]
