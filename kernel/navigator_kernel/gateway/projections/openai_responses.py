"""OpenAI's responses: the answer as a whole, or as a stream of typed events."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from navigator_kernel.gateway.access import ENDED
from navigator_kernel.gateway.projections.openai_sessions import (
    Part,
    conversation_of,
    named_session,
    refuse_forced_tool,
    refuse_format,
    text_of,
)
from navigator_kernel.gateway.projections.openai_turn import OpenAITurn, TurnFailed, TurnResponse, WholeAnswer, begin
from navigator_kernel.gateway.streams.sse import EventStreamResponse
from navigator_kernel.values.http.endpoint import Call, Endpoint, HttpProblem
from navigator_kernel.values.http.sse import PING, frame

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway


_ID = "resp_"
_MESSAGE, _REFERENCE = "message", "item_reference"


class InputItem(Struct, frozen=True):
    """A message, or a reference to an item of an earlier answer; items of other types are ignored."""

    type: str = _MESSAGE
    role: str = ""
    content: str | list[Part] | None = None
    id: str | None = None


class TextOptions(Struct, frozen=True):
    format: dict[str, Any] | None = None


class ResponseRequest(Struct, frozen=True, kw_only=True):
    """Other fields that a client sends are ignored: the kernel has its own tools, and its models have their own
    settings."""

    model: str
    input: str | list[InputItem]
    instructions: str | None = None
    stream: bool | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: str | dict[str, Any] | None = None
    user: str | None = None
    metadata: dict[str, str] | None = None
    tool_choice: str | dict[str, Any] | None = None
    text: TextOptions | None = None


async def create_response(gateway: Gateway, call: Call) -> TurnResponse:
    """Answers the last message. The run ends when the client goes away."""
    asked: ResponseRequest = call.body
    if asked.background:
        raise HttpProblem(
            400, "unsupported_background", "responses in the background are not supported", hint="POST /api/sessions/…"
        )
    refuse_forced_tool(asked.tool_choice)
    refuse_format(asked.text.format if asked.text else None)
    items = [InputItem(role="user", content=asked.input)] if isinstance(asked.input, str) else asked.input
    if not items or items[-1].type != _MESSAGE:
        raise HttpProblem(400, "usage", "the last item must be a message")
    messages = [(item.role, text_of(item.content, item.role)) for item in items if item.type == _MESSAGE]
    if asked.instructions:
        messages.insert(0, ("system", asked.instructions))
    given, response = asked.conversation, asked.previous_response_id or ""
    session = given.get("id", "") if isinstance(given, dict) else given or ""
    if response and (not response.startswith(_ID) or response == _ID):
        raise HttpProblem(404, "not_found", f"there is no response {response!r}")
    # An item may be only a reference, with the run in its id: the client has not sent the messages before it
    references = [item.id or "" for item in items if item.type == _REFERENCE]
    referred = references[-1].split("_")[1] if references and references[-1].count("_") > 1 else ""
    conversation = conversation_of(
        messages,
        user=asked.user or "",
        session=str(session) or named_session(call.headers, asked.metadata),
        previous=response.removeprefix(_ID) or referred,
    )
    turn = await begin(gateway, call, asked.model, conversation)
    answer = _Answer(turn, asked)
    if asked.stream:
        return TurnResponse(turn, EventStreamResponse(answer.stream(), turn.headers, answer.token_ended))
    return TurnResponse(turn, WholeAnswer(turn, answer.whole()))


class _Answer:
    def __init__(self, turn: OpenAITurn, asked: ResponseRequest) -> None:
        self._turn, self._asked, self._created = turn, asked, int(time.time())
        self._items, self._number = OutputItems(turn.run.id), 0
        self._last: dict[str, Any] = {}

    async def whole(self) -> dict[str, Any]:
        async for _ in self.stream():
            pass
        return self._last

    async def stream(self) -> AsyncIterator[bytes]:
        for kind in ("created", "in_progress"):
            yield self._frame({"type": f"response.{kind}", "response": self._response("in_progress")})
        status, error = "completed", None
        try:
            async with aclosing(self._turn.pieces()) as pieces:  # type: ignore[type-var]  # an asynchronous generator
                async for piece in pieces:
                    if piece.kind == "ping":
                        yield PING
                        continue
                    for event in self._items.add(piece.kind, piece.text):
                        yield self._frame(event)
            status = "incomplete" if self._turn.is_cut else status
        except TurnFailed as failed:
            status, error = "failed", {"code": "server_error", "message": failed.message, "type": failed.code}
        for event in self._items.close():
            yield self._frame(event)
        spent = self._turn.spent
        usage = {  # of all model requests of the turn; models do not report how much of it was reasoning
            "input_tokens": spent.input,
            "input_tokens_details": {"cached_tokens": spent.cached, "cache_write_tokens": 0},
            "output_tokens": spent.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": spent.input + spent.output,
        }
        self._last = {**self._response(status), "error": error, "usage": usage}
        yield self._frame({"type": f"response.{status}", "response": self._last})

    def token_ended(self) -> bytes:
        """The last event of the stream if the client's token has ended."""
        return self._frame({"type": "error", "code": "token", "message": ENDED, "param": None})

    def _frame(self, event: Mapping[str, Any]) -> bytes:
        self._number += 1
        return frame({**event, "sequence_number": self._number - 1}, event=event["type"])

    def _response(self, status: str) -> dict[str, Any]:
        asked = self._asked
        return {
            "id": f"{_ID}{self._turn.run.id}",
            "object": "response",
            "created_at": self._created,
            "completed_at": int(time.time()) if status == "completed" else None,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": asked.instructions,
            "metadata": asked.metadata or {},
            "model": asked.model,
            "output": self._items.done,
            "parallel_tool_calls": False,
            "previous_response_id": asked.previous_response_id,
            "conversation": {"id": self._turn.session} if asked.conversation else None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
            "usage": None,
            "user": asked.user,
        }


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/v1/responses",
        role="chat",
        summary="Answer a conversation, in the form of OpenAI's responses",
        handler=create_response,
        tag="openai",
        body=ResponseRequest,
        answer=dict[str, Any],
        errors=(404, 409),
    ),
)


Kind = Literal["text", "note"]


class OutputItems:
    """One item is open at a time; a piece of another kind closes it. `done` are the closed items."""

    def __init__(self, run: str) -> None:
        self.done: list[dict[str, Any]] = []
        self._run, self._open, self._text = run, "", ""

    def add(self, kind: Kind, text: str) -> Iterator[dict[str, Any]]:
        """Adds a piece and yields its events."""
        if self._open != kind:
            yield from self.close()
            self._open = kind
            item = self._item("in_progress")
            yield {"type": "response.output_item.added", "output_index": len(self.done), "item": item}
            yield {"type": f"{self._part_name}.added", **self._place, "part": self._part("")}
        self._text += text
        yield {"type": f"{self._text_name}.delta", **self._place, "delta": text, **self._more}

    def close(self) -> Iterator[dict[str, Any]]:
        """Closes the open item and yields its last events."""
        if not self._open:
            return
        yield {"type": f"{self._text_name}.done", **self._place, "text": self._text, **self._more}
        yield {"type": f"{self._part_name}.done", **self._place, "part": self._part(self._text)}
        item = self._item("completed", self._part(self._text))
        yield {"type": "response.output_item.done", "output_index": len(self.done), "item": item}
        self.done.append(item)
        self._open = self._text = ""

    @property
    def _is_text(self) -> bool:
        return self._open == "text"

    @property
    def _part_name(self) -> str:
        return "response.content_part" if self._is_text else "response.reasoning_summary_part"

    @property
    def _text_name(self) -> str:
        return "response.output_text" if self._is_text else "response.reasoning_summary_text"

    @property
    def _more(self) -> dict[str, Any]:
        return {"logprobs": []} if self._is_text else {}

    @property
    def _id(self) -> str:
        return f"{'msg' if self._is_text else 'rs'}_{self._run}_{len(self.done)}"

    @property
    def _place(self) -> dict[str, Any]:
        index = "content_index" if self._is_text else "summary_index"
        return {"item_id": self._id, "output_index": len(self.done), index: 0}

    def _part(self, text: str) -> dict[str, Any]:
        if self._is_text:
            return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return {"type": "summary_text", "text": text}

    def _item(self, status: str, *parts: dict[str, Any]) -> dict[str, Any]:
        head = {"id": self._id, "status": status}
        if self._is_text:
            return {**head, "type": "message", "role": "assistant", "content": list(parts)}
        return {**head, "type": "reasoning", "summary": list(parts)}
