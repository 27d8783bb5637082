"""The data that all packets of a turn share (CTX-6)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from navigator_kernel.text import Language
from navigator_kernel.values.packet import Format


class Memory(Struct, frozen=True, kw_only=True):
    """A memory and its origin (X-30)."""

    text: str
    source: str


class TurnContext(Struct, frozen=True, kw_only=True):
    """Created for every turn, so that nothing of the previous turn is in it (RTE-26).

    `run` is the run that the orders belong to, `step` the first step's number, `attempt` the number of the attempt,
    `timeout` is in seconds, `servers` are the configured MCP servers, `memories` the memories for the message, `grants`
    the consents of the person for the whole session, `has_model` whether a model can answer, `now` the time in ISO
    8601.
    """

    run: str
    timeout: float
    language: Language
    format: Format
    servers: Sequence[str] = ()
    memories: tuple[Memory, ...] = ()
    grants: tuple[str, ...] = ()
    has_model: bool = False
    step: int = 0
    attempt: int = 1
    now: str = ""
