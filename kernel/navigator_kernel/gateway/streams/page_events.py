"""The events that a page shows: the names and the order of the seed document (EVT-1, EVT-2, EVT-6)."""

from __future__ import annotations

from collections.abc import Mapping
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
        payload: dict[str, Any] = {"error": {"type": "Cancelled", "msg": body.reason}}
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
