"""The MCP server over streamable HTTP, with a token and a check of the origin."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse

from navigator_kernel.adapters.http_connection import Connection
from navigator_kernel.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.lowlevel import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/mcp"
LONGEST = 1024 * 1024  # bytes of a request


class _Token:
    """Refuses every request without the token, and reveals nothing else."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            said = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            if not hmac.compare_digest(said, self.expected):
                refusal = PlainTextResponse("a token is needed", 401, {"WWW-Authenticate": "Bearer"})
                await refusal(scope, receive, send)
                return
        await self.app(scope, receive, send)


def serve(server: Server[Any], host: str, port: int, token: str, ready: Callable[[str], None]) -> None:
    """Serves at `http://host:port/mcp` until it is stopped; `ready` is called with that address. KernelError if it
    cannot listen there. A request with another address as Host or Origin is refused (421, 403)."""
    config = uvicorn.Config(
        "", host=host, port=port, http=Connection, ws="none", log_level="error", access_log=False, server_header=False
    )
    try:
        listener = config.bind_socket()
    except (OSError, SystemExit) as error:  # uvicorn calls sys.exit if it cannot listen
        raise KernelError(f"cannot listen at {host}:{port}", hint="another --port") from error
    with listener:
        place = f"{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        config.app = _application(server, host, place, token)
        listener.listen()  # clients that connect before the server is up wait
        ready(f"http://{place}{PATH}")
        uvicorn.Server(config).run(sockets=[listener])


def _application(server: Server[Any], host: str, place: str, token: str) -> ASGIApp:
    """Creates the application. `place` is the host and port that clients must name; they leave out the port 80."""
    places = [place, place.removesuffix(":80")] if place.endswith(":80") else [place]
    security = TransportSecuritySettings(
        allowed_hosts=places, allowed_origins=[f"http://{allowed}" for allowed in places]
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=security, host=host, max_request_body_size=LONGEST
    )
    app.user_middleware.insert(0, Middleware(_Token, token=token))
    return app
