"""Sends server-sent events; a client that stops reading costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, cast

from navigator_kernel.gateway.access import ENDED, LAST_EVENT
from navigator_kernel.values.http.endpoint import HttpProblem
from navigator_kernel.values.http.sse import EventStream, frame

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
)


def token_ended() -> bytes:
    """The last event of a page's stream whose token has ended."""
    return frame({"code": "token", "detail": ENDED}, event="TokenEnded")


class EventStreamResponse:
    """Sends the `pieces` until they end or the client goes away; then `pieces` is closed. `last_event` returns the
    event to send after them if the client's token has ended."""

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        headers: tuple[tuple[bytes, bytes], ...] = (),
        last_event: Callable[[], bytes] = token_ended,
    ) -> None:
        self._pieces, self._headers, self._last_event = pieces, (*HEADERS, *headers), last_event

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the head and then the pieces; the first one follows at once if it is ready, with no other request in
        between."""
        scope[LAST_EVENT] = self._last_event
        await send({"type": "http.response.start", "status": 200, "headers": list(self._headers)})
        task = cast("asyncio.Task[Any]", asyncio.current_task())

        async def cancel_when_gone() -> None:
            with suppress(HttpProblem):  # the request's body exceeds the limit
                while (await receive())["type"] != "http.disconnect":
                    pass
            task.cancel()

        gone = asyncio.ensure_future(cancel_when_gone())
        try:
            async with aclosing(self._pieces) as pieces:  # type: ignore[type-var]  # an asynchronous generator
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except asyncio.CancelledError:
            if not gone.done() or task.uncancel() > 0:
                raise  # the server cancelled it
        finally:
            gone.cancel()


def response_of(answer: EventStream) -> EventStreamResponse:
    headers = tuple((name.lower().encode(), value.encode()) for name, value in answer.headers.items())
    return EventStreamResponse(answer.pieces, headers, lambda: answer.last)


async def disconnected(receive: Receive) -> None:
    with suppress(asyncio.CancelledError):
        while (await receive())["type"] != "http.disconnect":
            pass
