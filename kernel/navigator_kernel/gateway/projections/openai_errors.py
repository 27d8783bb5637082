"""Errors in OpenAI's form for the paths of its API: `{"error": {message, type, code, param}}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from navigator_kernel.gateway.problems import MEDIA_TYPE

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PREFIX = "/v1/"
BAD_REQUEST = 400
_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
_FIRST_OF_SERVER = 424  # from this status on, the request itself was valid
_INVALID = 422  # OpenAI's servers answer these with 400


def error_body(status: int, code: str, message: str) -> dict[str, Any]:
    """The body of an error; its `type` follows from the status of the response."""
    kind = _TYPES.get(status) or ("server_error" if status >= _FIRST_OF_SERVER else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "code": code, "param": None}}


class ErrorFacts(Struct, frozen=True):
    """`code` is a stable word for programs."""

    message: str
    type: str
    code: str
    param: str | None


class OpenAIError(Struct, frozen=True):
    """The body of an error below `/v1/`."""

    error: ErrorFacts


class OpenAIErrors:
    """ASGI middleware that turns problem documents of paths below `/v1/` into OpenAI's errors."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self.app(scope, receive, send)
            return
        start: Message | None = None

        async def converted(message: Message) -> None:
            """Converts a problem document, which its response sends in one piece."""
            nonlocal start
            if message["type"] == "http.response.start":
                media = dict(message["headers"]).get(b"content-type", b"")
                if media.startswith(MEDIA_TYPE.encode()):
                    start = message
                    return
            if start is not None and message["type"] == "http.response.body":
                problem = msgspec.json.decode(message["body"])
                status = BAD_REQUEST if problem["status"] == _INVALID else problem["status"]
                text = " - ".join(filter(None, (problem["detail"], problem.get("hint", ""))))
                body = msgspec.json.encode(error_body(status, problem["code"], text))
                own = {b"content-type": b"application/json", b"content-length": str(len(body)).encode()}
                headers = [*(header for header in start["headers"] if header[0] not in own), *own.items()]
                await send({**start, "status": status, "headers": headers})
                message, start = {**message, "body": body}, None
            await send(message)

        await self.app(scope, receive, converted)
