"""The server-sent events of one run, as pages get them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from navigator_kernel.events import Event, RunStarted
from navigator_kernel.gateway.streams.page_events import Shown, shown, whole
from navigator_kernel.values.http.sse import frame

if TYPE_CHECKING:
    from navigator_kernel.text import Language

PIECE = 64 * 1024  # bytes sent at once: a reader that stops holds this much in memory


class Frames:
    """The frames of one run. `session` is the client's name of its session; `which` is `page` or `all`. A frame is made
    once, and kept for the next reader."""

    def __init__(self, session: str, which: str) -> None:
        self._session, self._which = session, which
        self._language: Language = "en"
        self._made: dict[int, bytes] = {}

    def pieces(self, events: Sequence[Event], after: int = -1) -> Iterator[bytes]:
        """The frames of the events after the position `after`, joined. The events of a run must be passed in order,
        from the first one, which has the language."""
        held, size = [], 0
        for event in events:
            made = self._frame(event)
            if event.seq <= after or not made:
                continue
            held.append(made)
            size += len(made)
            if size >= PIECE:
                yield b"".join(held)
                held, size = [], 0
        if held:
            yield b"".join(held)

    def _frame(self, event: Event) -> bytes:
        held = self._made.get(event.seq)
        if held is None:
            if isinstance(event.body, RunStarted) and event.body.language == "zh":
                self._language = "zh"
            sent = as_sent(event, self._session, self._language, self._which)
            held = frame(sent.data, event=sent.event, name=f"{event.run}:{event.seq}") if sent is not None else b""
            self._made[event.seq] = held
        return held


def as_sent(event: Event, session: str, language: Language, which: str) -> Shown | None:
    """The event as pages get it; None if they do not."""
    return whole(event, session) if which == "all" else shown(event, session, language)
