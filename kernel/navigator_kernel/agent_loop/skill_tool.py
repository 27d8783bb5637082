"""The tool `skill(name)`, which returns the text of another skill that routing missed (RTE-32)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.errors import KernelError
from navigator_kernel.language.wording import say
from navigator_kernel.values.chat import ToolCall, ToolSpec
from navigator_kernel.values.work import AgentTask, ToolAnswer

if TYPE_CHECKING:
    from navigator_kernel.ports import Catalogue

NAME = "skill"
MOST = 32_000  # characters of a skill's text
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
            near = ", ".join(self.catalogue.suggest(wanted)) or "-"
            return ToolAnswer(text=say("tool.no_skill", work.language, name=wanted, near=near), failed=True)
        try:
            executor = self.catalogue.create_executor(found.namespace)
        except KernelError as error:
            return ToolAnswer(text=error.message, failed=True)
        if executor.standing == "unknown":
            return ToolAnswer(text=say("tool.unknown_skill", work.language, name=found.name), failed=True)
        if found.kind == "A" or not found.implicit or executor.is_changed:
            return ToolAnswer(text=say("tool.not_text", work.language, name=found.name), failed=True)
        return ToolAnswer(text=found.sop[:MOST] or found.system_prompt[:MOST])
