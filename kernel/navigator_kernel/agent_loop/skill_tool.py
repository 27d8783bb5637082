"""The tool `skill(name)`, which returns the text of another skill that routing missed (RTE-32). Without a skill, the
work goes on as that of the loaded one: with its tools, its folder and its rights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.errors import KernelError
from navigator_kernel.language.wording import say
from navigator_kernel.text import clean, shorten
from navigator_kernel.values.chat import ToolCall, ToolSpec
from navigator_kernel.values.work import AgentTask, ToolAnswer

if TYPE_CHECKING:
    from navigator_kernel.ports import Catalogue
    from navigator_kernel.values.resource import SkillDef

NAME = "skill"
MOST = 32_000  # characters of a skill's text
NAMES = 8  # names of skills in an answer
LINE, LINES = 240, 3_600  # characters of a skill's description in one line, and of all of them: 1,000 tokens
_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "description": "the skill's name"}},
    "required": ["name"],
    "additionalProperties": False,
}


class SkillTool(Struct, frozen=True):
    """Implements `ports.Tools` with one tool, which changes nothing."""

    catalogue: Catalogue

    def admit(self, _work: AgentTask) -> None:
        """Allows the call; texts of trusted skills need no more consent."""

    def offered(self, work: AgentTask) -> tuple[ToolSpec, ...]:
        return (ToolSpec(name=NAME, description=say("tool.skill", work.language), schema=_SCHEMA),)

    async def call(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> ToolAnswer:
        if call.name != NAME:
            return ToolAnswer(text=say("tool.unknown", work.language, tool=call.name, offered=NAME), failed=True)
        wanted = str(arguments.get("name", ""))
        found = self.catalogue.find(wanted)
        if found is None:
            # The nearest names, those of likely skills, and others
            likely = (line.partition(":")[0] for line in work.likely)
            others = (skill.name for skill in self.catalogue.list_resources() if can_load(skill, self.catalogue))
            names = dict.fromkeys((*self.catalogue.suggest(wanted), *likely, *others))
            near = ", ".join(islice(names, NAMES)) or "-"
            return ToolAnswer(text=say("tool.no_skill", work.language, name=wanted, near=near), failed=True)
        try:
            executor = self.catalogue.create_executor(found.namespace)
        except KernelError as error:
            return ToolAnswer(text=error.message, failed=True)
        if executor.standing == "unknown":
            note = say("skill.unloaded", work.language, skill=found.name)
            return ToolAnswer(text=say("tool.unknown_skill", work.language, name=found.name), failed=True, note=note)
        if found.kind == "A" or not found.implicit or executor.is_changed:
            return ToolAnswer(text=say("tool.not_text", work.language, name=found.name), failed=True)
        text = found.sop[:MOST] or found.system_prompt[:MOST]
        return ToolAnswer(text=text, skill=f"{found.namespace}@{executor.digest}")


def can_load(skill: SkillDef, catalogue: Catalogue) -> bool:
    """Whether the tool returns the text of a skill: it has one, and the person accepts the skill."""
    return skill.type == "skill" and skill.kind != "A" and skill.implicit and catalogue.standing(skill) != "unknown"


def likely_skills(names: Iterable[str], catalogue: Catalogue) -> tuple[str, ...]:
    """A line about each of the skills that can be loaded, with its name and what it is for, in the given order."""
    lines: list[str] = []
    for name in names:
        skill = catalogue.find(name)
        if skill is not None and can_load(skill, catalogue):
            line = shorten(clean(f"{skill.name}: {skill.description}", lines=False), LINE)
            if line not in lines and sum(map(len, (*lines, line))) <= LINES:
                lines.append(line)
    return tuple(lines)
