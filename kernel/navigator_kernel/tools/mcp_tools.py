"""Approved tools of MCP servers as tools of a skill, named `server__tool` (JIT-5, JIT-12)."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from navigator_kernel.errors import KernelError
from navigator_kernel.text import clean
from navigator_kernel.values.chat import ToolSpec
from navigator_kernel.values.mcp import OfferedTool
from navigator_kernel.values.tool import Result

LARGEST = 32 * 1024  # characters of a schema for a model
Call: TypeAlias = "Callable[[str, str, Mapping[str, Any]], Coroutine[Any, Any, Mapping[str, Any]]]"


class McpTool(Struct, frozen=True):
    """Implements `model_ports.Tool`. Each call needs consent: what a server says of its own tool grants nothing, and
    only lets one yes cover a session (see `tools.desk`). `outward` says that its server may reach the network,
    `by_server` that it is a server's tool."""

    offered: OfferedTool
    call: Call
    outward: bool = True
    by_server: bool = True

    @property
    def identity(self) -> str:
        """The subject of consent: the server and its whole description of the tool."""
        return self.offered.subject

    @property
    def name(self) -> str:
        return self.offered.full_name

    @property
    def spec(self) -> ToolSpec:
        held = self.offered
        return ToolSpec(name=self.name, description=clean(held.description), schema=_cleaned(dict(held.schema)))

    @property
    def effects(self) -> tuple[str, ...]:
        return () if self.only_reads else ("mcp",)

    @property
    def confirm(self) -> str:
        return f"Call {self.name}?"

    @property
    def only_reads(self) -> bool:
        """Whether the tool only reads, according to its server."""
        said = self.offered.more.get("annotations")
        return isinstance(said, Mapping) and said.get("read_only_hint") is True

    async def run(self, arguments: Mapping[str, Any]) -> Result:
        """Calls the tool; if the server fails or asks something, the result says so."""
        try:
            told = await self.call(self.offered.server, self.offered.name, arguments)
        except KernelError as error:
            return Result(error=f"{error.message}{f' ({error.hint})' if error.hint else ''}")
        texts = [item["text"] for item in told.get("content", ()) if isinstance(item.get("text"), str)]
        if told.get("is_error"):
            return Result(error="\n".join(texts) or "the tool says that it failed")
        return Result("\n".join(texts) if texts else told.get("structured", list(told.get("content", ()))))


def mcp_tools(
    kept: Sequence[OfferedTool],
    may: Callable[[OfferedTool], bool],
    call: Call,
    outward: Callable[[str], bool] = lambda _server: True,
) -> tuple[McpTool, ...]:
    """The tools of `kept` that `may` allows and whose schema a model can be shown; `outward` says whether a server may
    reach the network."""
    return tuple(McpTool(tool, call, outward(tool.server)) for tool in kept if may(tool) and _shown(tool.schema))


def _shown(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is an object within the size limit and without outside references."""
    text = json.dumps(schema)
    return schema.get("type") == "object" and len(text) <= LARGEST and not any(map(_leads_away, _references(schema)))


def _leads_away(reference: str) -> bool:
    return not reference.startswith("#")


def _references(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for held in value.values() for found in _references(held)]
    return [found for held in value for found in _references(held)] if isinstance(value, list) else []


def _cleaned(value: Any) -> Any:
    """The value with all texts cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(name), lines=False): _cleaned(held) for name, held in value.items()}
    return [_cleaned(held) for held in value] if isinstance(value, list) else value
