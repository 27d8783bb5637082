"""Turns over AG-UI: a plain HTTP client, and the order of its events by the rules of `verifyEvents` (AG-UI 1.0)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.served import Served

Event = Mapping[str, Any]

ONCE = {  # events that open a part: the kind of the part, and the field that names it
    "TEXT_MESSAGE_START": ("text", "messageId"),
    "TOOL_CALL_START": ("call", "toolCallId"),
    "STEP_STARTED": ("step", "stepName"),
    "SUBAGENT_STARTED": ("agent", "subagentRunId"),
}
CLOSES = {
    "TEXT_MESSAGE_END": ("text", "messageId"),
    "TOOL_CALL_END": ("call", "toolCallId"),
    "STEP_FINISHED": ("step", "stepName"),
    "SUBAGENT_FINISHED": ("agent", "subagentRunId"),
    "SUBAGENT_ERROR": ("agent", "subagentRunId"),
}
WITHIN = {"TEXT_MESSAGE_CONTENT": ("text", "messageId"), "TOOL_CALL_ARGS": ("call", "toolCallId")}


def asked(text: str = "", thread: str = "", **more: Any) -> dict[str, Any]:
    """A RunAgentInput with at most one message."""
    said = [{"id": str(uuid.uuid4()), "role": "user", "content": text}] if text else []
    head = {"threadId": thread or str(uuid.uuid4()), "runId": str(uuid.uuid4()), "protocolVersion": "1.0"}
    return {**head, "messages": said, "state": {}, "tools": [], "context": [], "forwardedProps": {}, **more}


def resumed(thread: str, interrupt: str, payload: Any = None, status: str = "resolved") -> dict[str, Any]:
    entry = {"interruptId": interrupt, "status": status, **({} if payload is None else {"payload": payload})}
    return asked(thread=thread, resume=[entry])


def events(served: Served, body: Mapping[str, Any], path: str = "/ag-ui", role: str = "admin") -> list[Event]:
    """The events of a stream, split as the client does: at two LFs, with only `data:` read."""
    with served.client(role) as client, client.stream("POST", path, json=body) as answer:
        data = answer.read()
        assert answer.status_code == 200, data
    assert b"\r" not in data and b"event:" not in data
    return read(data.decode())


def read(stream: str) -> list[Event]:
    frames = [frame for frame in stream.split("\n\n") if frame.startswith("data: ")]
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


def kinds(held: Iterable[Event]) -> list[str]:
    return [str(event["type"]) for event in held]


def of_kind(held: Iterable[Event], kind: str) -> list[Event]:
    return [event for event in held if event["type"] == kind]


def interrupts(held: Sequence[Event]) -> list[dict[str, Any]]:
    assert held[-1]["type"] == "RUN_FINISHED" and held[-1]["outcome"]["type"] == "interrupt", held[-1]
    return list(held[-1]["outcome"]["interrupts"])


def text(held: Iterable[Event]) -> str:
    return "".join(str(event["delta"]) for event in of_kind(held, "TEXT_MESSAGE_CONTENT"))


def in_order(held: Sequence[Event]) -> None:
    """Checks that RUN_STARTED is first and one end last; each part opens once, is open for its content, and closes."""
    assert kinds(held)[0] == "RUN_STARTED"
    assert [kind for kind in kinds(held) if kind in {"RUN_FINISHED", "RUN_ERROR"}] == [kinds(held)[-1]]
    assert all(value is not None for event in held for value in event.values())
    is_open: set[tuple[str, str]] = set()
    for event in held:
        kind = event["type"]
        if kind in ONCE:
            key = (ONCE[kind][0], event[ONCE[kind][1]])
            assert key not in is_open, event
            is_open.add(key)
        elif kind in CLOSES or kind in WITHIN:
            part, name = CLOSES.get(kind) or WITHIN[kind]
            assert (part, event[name]) in is_open, event
            if kind in CLOSES:
                is_open.remove((part, event[name]))
    assert not is_open or kinds(held)[-1] == "RUN_ERROR"
