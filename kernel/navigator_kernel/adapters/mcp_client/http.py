"""Streamable HTTP as a transport of the SDK, with the person's headers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

if TYPE_CHECKING:
    from navigator_kernel.adapters.mcp_client.stdio import ServerState
    from navigator_kernel.values.mcp import McpServer

WRITE = 30.0  # seconds to connect and to send
READ = 300.0  # seconds between two chunks of an open stream


REFUSED = (401, 403)


@asynccontextmanager
async def address_of(server: McpServer, state: ServerState) -> AsyncIterator[tuple[Any, Any]]:
    """The two streams for the SDK's client. The proxies and certificates of the machine apply."""

    async def heard(response: httpx2.Response) -> None:
        if response.status_code >= 400 and response.request.method == "POST":
            state.why = f"it answered {response.status_code} {response.reason_phrase}".strip()
            state.refused = response.status_code in REFUSED

    timeout = httpx2.Timeout(WRITE, read=READ)
    hooks = {"response": [heard]}
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout, event_hooks=hooks) as http,
        streamable_http_client(server.url, http_client=http) as streams,
    ):
        yield streams
