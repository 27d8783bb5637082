"""An MCP server of the official SDK that serves two skills (SEP-2640) over stdin and stdout."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

FILES = {
    "skill://acme/greet/SKILL.md": "---\nname: greet\ndescription: Greets somebody by name\n---\nSay hello.\n",
    "skill://acme/greet/references/how%20to.md": "Be kind.\n",
    "skill://wave/SKILL.md": "---\nname: wave\ndescription: Waves at somebody\n---\nWave.\n",
}


class Page(types.PaginatedRequestParams):
    pass


async def skills(_ctx: Any, params: Page) -> dict[str, Any]:
    """One skill on each page."""
    at = int(params.cursor or 0)
    above = ("skill://acme/greet/", "skill://wave/")[at]
    rows = [
        {"uri": uri, "digest": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}", "size": len(text)}
        for uri, text in FILES.items()
        if uri.startswith(above)
    ]
    entry = {"uri": f"{above}SKILL.md", "frontmatter": {}, "resources": rows}
    return {"resultType": "complete", "skills": [entry], **({} if at else {"nextCursor": "1"})}


async def read(_ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    text = types.TextResourceContents(uri=params.uri, mime_type="text/markdown", text=FILES[str(params.uri)])
    return types.ReadResourceResult(contents=[text])


async def main() -> None:
    server: Server[Any] = Server("shelf", version="1", on_read_resource=read)
    server.extensions["io.modelcontextprotocol/skills"] = {}
    server.add_request_handler("skills/list", Page, skills)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


asyncio.run(main())
