"""An MCP server at an address as a transport of the SDK: streamable HTTP, with the person's headers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

if TYPE_CHECKING:
    from navigator_kernel.values.mcp import McpServer

WRITE = 30.0  # seconds to connect and to send
READ = 300.0  # seconds between two pieces of a stream that stays open


@asynccontextmanager
async def address_of(server: McpServer) -> AsyncIterator[tuple[Any, Any]]:
    """The two streams that the SDK's client is given. The machine's proxies and certificates count."""
    timeout = httpx2.Timeout(WRITE, read=READ)
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout, follow_redirects=False) as http,
        streamable_http_client(server.url, http_client=http) as streams,
    ):
        yield streams
