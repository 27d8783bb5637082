"""The events that a page shows: the names and the order of the seed document (EVT-1, EVT-2, EVT-6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import asdict

from navigator_kernel.events import (
    Event,
    RunCancelled,
    RunCompleted,
    RunContent,
    RunError,
    RunStarted,
    SkillActivated,
    ToolCallCompleted,
    ToolCallStarted,
    UICommand,
)
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language
from navigator_kernel.values.http.sse import frame

SHOWN = (
    RunStarted,
    SkillActivated,
    ToolCallStarted,
    ToolCallCompleted,
    RunContent,
    UICommand,
    RunCompleted,
    RunError,
)
LAST = (RunCompleted, RunError, RunCancelled)


class Shown(NamedTuple):
    """The type of a server-sent event, and its data."""

    event: str
    data: Mapping[str, Any]


def shown(event: Event, session: str, language: Language) -> Shown | None:
    """The event for a page; None for an event that pages do not get. A cancelled run ends with `RunError`."""
    body = event.body
    if isinstance(body, RunCancelled):
        payload: dict[str, Any] = {"error": {"type": "Cancelled", "msg": body.reason, **body.data}}
        return Shown("RunError", _data(event, "RunError", session, payload))
    if not isinstance(body, SHOWN):
        return None
    payload = asdict(body)
    if isinstance(body, RunStarted):
        payload["session"] = session
    if isinstance(body, SkillActivated):
        payload["text"] = say("page.loading", language, skill=body.skill)
    return Shown(event.type, _data(event, event.type, session, payload))


def whole(event: Event, session: str) -> Shown:
    """Any event as it is in the log, with the session's name as the client knows it."""
    payload = event.to_dict()["data"]
    if isinstance(event.body, RunStarted):
        payload = {**payload, "session": session}
    return Shown(event.type, _data(event, event.type, session, payload))


def _data(event: Event, kind: str, session: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    head = {"type": kind, "run": event.run, "session": session, "turn": event.turn, "seq": event.seq}
    return {**head, "step": event.step, "parent": event.parent, "ts": event.ts, "payload": payload}


# The server-sent events of one run, as pages get them.

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
        frames, size = [], 0
        for event in events:
            made = self._made.get(event.seq)
            if made is None:
                if isinstance(event.body, RunStarted) and event.body.language == "zh":
                    self._language = "zh"
                sent = as_sent(event, self._session, self._language, self._which)
                made = frame(sent.data, event=sent.event, name=f"{event.run}:{event.seq}") if sent is not None else b""
                self._made[event.seq] = made
            if event.seq <= after or not made:
                continue
            frames.append(made)
            size += len(made)
            if size >= PIECE:
                yield b"".join(frames)
                frames, size = [], 0
        if frames:
            yield b"".join(frames)


def as_sent(event: Event, session: str, language: Language, which: str) -> Shown | None:
    """The event as pages get it; None if they do not."""
    return whole(event, session) if which == "all" else shown(event, session, language)
