"""Server-sent events (WHATWG HTML, 9.2), whose lines end in LF."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

EVENT_STREAM = "text/event-stream"
PING = b": ping\n\n"


def frame(data: Any, *, event: str = "", name: str = "") -> bytes:
    """One event: `data` as JSON, with its type and id if they are given."""
    head = (f"id: {name}\n" if name else "") + (f"event: {event}\n" if event else "")
    return head.encode() + b"data: " + msgspec.json.encode(data, enc_hook=str) + b"\n\n"


class EventStream(Struct, frozen=True, kw_only=True):
    """The answer of an endpoint of a plugin: the `pieces` are sent until they end or the client goes away; then
    `pieces` is closed. `last` is sent after them if the client's token has ended."""

    pieces: AsyncIterator[bytes]
    headers: Mapping[str, str] = {}
    last: bytes = b""
