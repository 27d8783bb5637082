"""One HTTP connection, closed when its client is silent or too slow, or when there are too many."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_TIME = 10.0  # seconds from the connection, or the first byte of a later request, to the end of its headers
BODY_TIME = 30.0  # seconds from the end of the headers to the end of the body
CONNECTIONS = 100  # open at the same time

Part = Literal["", "header", "body"]
_TIMES: dict[Part, float] = {"header": HEADER_TIME, "body": BODY_TIME}


class Connection(H11Protocol):
    """Adds time limits to uvicorn's connection, which waits for an incomplete request without end."""

    limit = CONNECTIONS

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self._part: Part = ""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        super().connection_made(transport)
        if len(self.connections) > self.limit:
            transport.abort()
        else:
            self._wait_for("header")

    def data_received(self, data: bytes) -> None:
        if self._part == "":
            self._wait_for("header")
        super().data_received(data)
        if self.cycle is not None and self.cycle.response_complete and self.conn.their_state is h11.SEND_BODY:
            self.transport.close()  # answered before all of the body arrived; the rest is long and is not read
        # What has not arrived of the request; after a response, the next one begins with the next byte
        if self.cycle is None or self.cycle.response_complete:
            self._wait_for("header")
        else:
            self._wait_for("body" if self.cycle.more_body else "")

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_for("")
        super().connection_lost(exc)

    def _wait_for(self, part: Part) -> None:
        """Starts the timer of a part at its beginning; single bytes do not prolong it."""
        if part == self._part:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._part = part
        self._timer = self.loop.call_later(_TIMES[part], self.transport.abort) if part else None
