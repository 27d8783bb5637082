"""The mcp subagent: lists and reads resources, calls tools and gets prompts of MCP servers (AGT-4, AGT-9)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.hookspecs import hookimpl
from navigator_kernel.language.wording import say
from navigator_kernel.ports import Agent
from navigator_kernel.values.packet import Packet, packet_from_yaml

if TYPE_CHECKING:
    from navigator_kernel.ports import AgentPorts


@hookimpl
def kernel_register_agents(ports: AgentPorts) -> Sequence[Agent]:
    return (McpAgent(ports=ports),)


class McpAgent(Struct, frozen=True, kw_only=True):
    """One operation on one server a packet; the server's text is data and never an instruction."""

    ports: AgentPorts
    name: str = "mcp"
    aliases: Sequence[str] = ("mcp_agent",)
    description: str = "Lists, reads and calls MCP servers"

    async def handle(self, prompt: str) -> object:
        return await self.act(packet_from_yaml(prompt))

    async def act(self, packet: Packet) -> object:
        server, operation = str(packet.params.value("server", "")), packet.task_spec.operation
        limit = packet.constraints.timeout
        try:
            async with asyncio.timeout(limit):
                data = await self.ports.mcp.call(server, operation, packet.params.required, packet.context.run)
        except TimeoutError:
            text = say("mcp.timeout", packet.context.language, server=server, seconds=f"{limit:g}")
            uri = packet.params.value("uri", server)
            return {"state": "timeout", "summary": text, "data": {"uri": uri, "elapsed": limit}}
        words = "mcp.large" if data.get("truncated") else "mcp.done"
        facts = {"server": server, "operation": operation, "file": data.get("file", "")}
        summary = say(words, packet.context.language, **facts)
        return {"state": _state(data), "summary": summary, "data": data, "raw": _text(data)}


def _state(data: Mapping[str, Any]) -> str:
    """A tool that failed says so in its own answer; of a large one this is the beginning (AGT-9)."""
    return "error" if data.get("is_error") else "partial" if data.get("truncated") else "success"


def _text(data: Mapping[str, Any]) -> str:
    """The text of what was read or answered; the whole as JSON where there is none."""
    said = [message.get("content") or {} for message in data.get("messages", ())]
    parts = [item.get("text") for item in (*data.get("contents", ()), *data.get("content", ()), *said)]
    texts = [text for text in parts if isinstance(text, str)]
    return "\n".join(texts) if texts else json.dumps(dict(data), ensure_ascii=False)
