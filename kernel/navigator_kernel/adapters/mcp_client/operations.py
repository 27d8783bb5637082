"""The operations of an MCP server that callers may use, and its failures by name (AGT-4, AGT-9)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    SubscribeRequest,
    SubscribeRequestParams,
)
from pydantic import ValidationError

from mcp import MCPError
from navigator_kernel.adapters.mcp_client.connection import every
from navigator_kernel.adapters.mcp_client.elicitation import arguments_of, input_needed
from navigator_kernel.errors import FetchFailed, PermissionDenied, ResourceNotFound
from navigator_kernel.text import clean, lazy_compile, shorten
from navigator_kernel.values.mcp import OfferedTool

if TYPE_CHECKING:
    from mcp import Client
    from navigator_kernel.adapters.mcp_client.connection import Connection
    from navigator_kernel.errors import KernelError

NAMED = 20  # available names that an error lists
# A link that pydantic adds to each problem, for programmers
_LINKS = lazy_compile(r"\n {0,8}For further information visit https://errors\.pydantic\.dev/\S*")
_DENIED = lazy_compile(
    r"permission|access denied|not allowed|forbidden|unauthori[sz]ed|\b(?:EACCES|EPERM|EROFS)\b|\b40[13]\b",
    re.IGNORECASE,
)
_SHAPES = {
    "resources": ("uri", "name", "description", "mime_type", "size"),
    "templates": ("uri_template", "name", "description", "mime_type"),
    "prompts": ("name", "description", "arguments"),
}


async def perform(
    held: Connection, client: Client, operation: str, params: Mapping[str, Any], approve: Any, progress: Any
) -> dict[str, Any]:
    """Performs one operation; before it calls a tool, `approve` raises if nobody agreed to the tool as it is now."""
    try:
        match operation:
            case "list":
                found = await _listed(client.list_resources, "resources")
                templates = await _listed(client.list_resource_templates, "resource_templates")
                shown = {"resources": _plain(found, "resources")}
                return shown | ({"templates": _plain(templates, "templates")} if templates else {})
            case "tools":
                return {"tools": [tool.to_dict() for tool in offered(held.name, await held.tools(client))]}
            case "prompts":
                return {"prompts": _plain(await _listed(client.list_prompts, "prompts"), "prompts")}
            case "read":
                read = await client.read_resource(params["uri"])
                return {"uri": params["uri"], "contents": [_dumped(item) for item in read.contents]}
            case "prompt":
                words = {name: str(value) for name, value in params.get("args", {}).items()}
                prompt = await client.get_prompt(params["prompt"], words)
                return {"prompt": params["prompt"], "messages": [_dumped(message) for message in prompt.messages]}
            case _:
                return await _called(held, client, params, approve, progress)
    except MCPError as error:
        raise await _explained(held, client, operation, params, error) from None
    except ValidationError as error:
        what = f"{error.error_count()} things are not as the protocol has them"
        raise FetchFailed(f"the MCP server {held.name!r} answered {operation!r}: {what}", hint=_first(error)) from None


def _first(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"


async def subscribe(held: Connection, client: Client, uri: str) -> None:
    """Asks the server to report when the resource changes, as servers of the protocol with a handshake do."""
    request = SubscribeRequest(params=SubscribeRequestParams(uri=uri))
    try:
        await client.session.send_request(request, EmptyResult)
    except MCPError as error:
        raise await _explained(held, client, "subscribe", {"uri": uri}, error) from None


def offered(server: str, tools: Sequence[Any]) -> list[OfferedTool]:
    """The tools as they are shown, approved and called."""
    return [
        OfferedTool(
            server=server,
            name=tool.name,
            description=tool.description or "",
            schema=dict(tool.input_schema),
            more={
                "title": tool.title,
                "output": tool.output_schema,
                "annotations": tool.annotations and _dumped(tool.annotations),
            },
        )
        for tool in tools
    ]


async def _called(
    held: Connection, client: Client, params: Mapping[str, Any], approve: Any, progress: Any
) -> dict[str, Any]:
    name, tools = params["tool"], offered(held.name, await held.tools(client))
    found = next((tool for tool in tools if tool.name == name), None)
    if found is None:
        raise _missing("tool", name, held.name, [tool.name for tool in tools])
    approve(name, tools)
    arguments = arguments_of(params.get("args", {}), found.schema)
    request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments))
    async with held.calling(params.get("answers", {}), params.get("said", ())) as call:
        # Not `client.call_tool`, which validates results against the server's schema
        answer = await client.session.send_request(request, CallToolResult, progress_callback=progress)
    if call.asked is not None:
        raise input_needed(held.name, *call.asked)
    content = [_dumped(item) for item in answer.content]
    if answer.is_error:
        content = [{**item, "text": _LINKS.sub("", item["text"])} if "text" in item else item for item in content]
    answered = {"tool": name, "content": content, "is_error": bool(answer.is_error)}
    if answer.structured_content is not None:
        answered["structured"] = answer.structured_content
    text = " ".join(str(item.get("text", "")) for item in content)
    if answer.is_error and _DENIED.search(text[:2_000]):
        raise PermissionDenied(_said(held.name, text), hint="the server itself refused it", **answered)
    return answered


async def _explained(
    held: Connection, client: Client, operation: str, params: Mapping[str, Any], error: MCPError
) -> KernelError:
    """AGT-9: the failure by its name; for a name that was not found, with the names that exist."""
    said = str(error)
    if held.state.gone.is_set() or (error.code == CONNECTION_CLOSED and said.lower() == "connection closed"):
        held.leave()
        return held.lost()
    if _DENIED.search(said):
        return PermissionDenied(_said(held.name, said), hint="the server itself refused it")
    if operation == "read":
        there = await _listed(client.list_resources, "resources")
        names = [str(item.uri) for item in there]
        if params["uri"] not in names:
            return _missing("resource", params["uri"], held.name, names, said)
    if operation == "prompt":
        prompts = [item.name for item in await _listed(client.list_prompts, "prompts")]
        if params["prompt"] not in prompts:
            return _missing("prompt", params["prompt"], held.name, prompts, said)
    return FetchFailed(
        f"the MCP server {held.name!r} refused {operation!r}: {clean(said)}", hint=f"navigator mcp test {held.name}"
    )


def _missing(kind: str, name: str, server: str, names: Sequence[str], said: str = "") -> ResourceNotFound:
    available = list(dict.fromkeys((*get_close_matches(name, names, 5, 0.5), *names)))[:NAMED]
    hint = f"nearest: {clean(available[0], lines=False)}" if available else "it has none"
    more = f" ({shorten(clean(said, lines=False), 200)})" if said else ""
    message = f"ResourceNotFound: {server!r} has no {kind} {clean(name, lines=False)!r}{more}"
    return ResourceNotFound(message, hint=hint, available=available)


async def _listed(listed: Callable[..., Any], kind: str) -> list[Any]:
    """All entries of one kind; empty if the server does not have this kind at all."""
    try:
        return await every(listed, kind)
    except MCPError as error:
        if error.code == METHOD_NOT_FOUND:
            return []
        raise


def _plain(items: Sequence[Any], shape: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in _dumped(item).items() if name in _SHAPES[shape]} for item in items]


def _dumped(item: Any) -> dict[str, Any]:
    held: dict[str, Any] = item.model_dump(mode="json", exclude_none=True)
    held.pop("meta", None)
    return held


def _said(server: str, text: str) -> str:
    return f"PermissionDenied: {server!r} says: {shorten(clean(text, lines=False), 500)}"
