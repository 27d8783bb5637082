"""Skills as LangChain tools."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from langchain_core.tools import StructuredTool

from navigator_kernel.values.approval import Approval  # LangGraph evaluates the return types of the functions below

if TYPE_CHECKING:
    from navigator_kernel.library.calls import SkillCalls
    from navigator_kernel.values.chat import ToolSpec


def langchain_tools(calls: SkillCalls) -> list[StructuredTool]:
    """The skills' tools for LangChain. A call that needs approval has an `Approval` as its `artifact`, which no model
    sees."""
    return [_tool(calls, spec) for spec in calls.offered()]


def _tool(calls: SkillCalls, spec: ToolSpec) -> StructuredTool:
    async def call(**arguments: Any) -> tuple[str, Approval | None]:
        result = await calls.call(spec.name, arguments)
        return result.text, result.approval

    return StructuredTool.from_function(
        func=lambda **arguments: asyncio.run(call(**arguments)),
        coroutine=call,
        name=spec.name,
        description=spec.description,
        args_schema=dict(spec.schema),
        response_format="content_and_artifact",
    )
