"""Skills as a pydantic-ai toolset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai import RunContext, ToolReturn
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

if TYPE_CHECKING:
    from navigator_kernel.library.calls import SkillCalls


class KernelToolset(AbstractToolset[Any]):
    """Offers skills as tools. The result of a call that needs a yes has an `Approval` as its `metadata`, which no model
    sees."""

    def __init__(self, calls: SkillCalls) -> None:
        self._calls = calls
        names, values = core_schema.str_schema(), core_schema.any_schema()
        self._arguments = SchemaValidator(core_schema.dict_schema(names, values))

    @property
    def id(self) -> str:
        return f"navigator-{self._calls.workspace.name}"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {
            spec.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=spec.name, description=spec.description, parameters_json_schema=dict(spec.schema)
                ),
                max_retries=1,
                args_validator=self._arguments,
            )
            for spec in self._calls.offered()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> ToolReturn[str]:
        called = await self._calls.call(name, tool_args)
        return ToolReturn(called.text, metadata=called.approval)
