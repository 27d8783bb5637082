"""OpenAI's chat completions: a conversation as messages, the answer whole or as a stream of chunks."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.gateway.access import ENDED
from navigator_kernel.gateway.projections.openai_errors import error_body
from navigator_kernel.gateway.projections.openai_sessions import (
    Part,
    conversation_of,
    named_session,
    refuse_forced_tool,
    refuse_format,
    text_of,
)
from navigator_kernel.gateway.projections.openai_turn import (
    FAILED,
    OpenAITurn,
    TurnFailed,
    TurnResponse,
    WholeAnswer,
    begin,
)
from navigator_kernel.gateway.streams.sse import EventStreamResponse
from navigator_kernel.values.chat import Spent
from navigator_kernel.values.http.endpoint import Call, Endpoint, HttpProblem
from navigator_kernel.values.http.sse import PING, frame

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway

DONE = b"data: [DONE]\n\n"


class ChatMessage(Struct, frozen=True):
    """`content` is a text or a list of parts, of which only texts can be read."""

    role: str
    content: str | list[Part] | None = None


class StreamOptions(Struct, frozen=True):
    include_usage: bool | None = None


class ChatRequest(Struct, frozen=True, kw_only=True):
    """Other fields are ignored: the kernel has its own tools, and its models have their own settings."""

    model: str
    messages: list[ChatMessage]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    user: str | None = None
    metadata: dict[str, str] | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None


async def complete_chat(gateway: Gateway, call: Call) -> TurnResponse:
    """Answers the last message. The run ends when the client disconnects."""
    asked: ChatRequest = call.body
    if (asked.n or 1) != 1:
        raise HttpProblem(400, "usage", "only one choice is returned: n must be 1")
    refuse_forced_tool(asked.tool_choice)
    refuse_format(asked.response_format)
    said = [(one.role, text_of(one.content, one.role)) for one in asked.messages]
    conversation = conversation_of(said, user=asked.user or "", session=named_session(call.headers, asked.metadata))
    turn = await begin(gateway, call, asked.model, conversation)
    answer = _Answer(turn, asked)
    if asked.stream:
        last = frame(error_body(401, "token", ENDED)) + DONE
        return TurnResponse(turn, EventStreamResponse(answer.stream(), turn.headers, lambda: last))
    return TurnResponse(turn, WholeAnswer(turn, answer.whole()))


class _Answer:
    def __init__(self, turn: OpenAITurn, asked: ChatRequest) -> None:
        self._turn, self._asked, self._created = turn, asked, int(time.time())
        self._has_usage = bool(asked.stream_options and asked.stream_options.include_usage)

    async def whole(self) -> dict[str, Any]:
        turn, notes = self._turn, []
        try:
            async for piece in turn.pieces():
                notes += [piece.text] if piece.kind == "note" else []
        except TurnFailed as error:
            raise HttpProblem(FAILED, error.code, error.message) from error
        message = {"role": "assistant", "content": turn.text, "refusal": None}
        message |= {"reasoning_content": "".join(notes)} if notes else {}
        choice = {"index": 0, "message": message, "finish_reason": self._finish, "logprobs": None}
        return {**self._head("chat.completion"), "choices": [choice], "usage": usage_of(turn.spent)}

    async def stream(self) -> AsyncIterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})
        try:
            async with aclosing(self._turn.pieces()) as pieces:  # type: ignore[type-var]  # an asynchronous generator
                async for piece in pieces:
                    field = "content" if piece.kind == "text" else "reasoning_content"
                    yield PING if piece.kind == "ping" else self._chunk({field: piece.text})
        except TurnFailed as error:
            yield frame(error_body(FAILED, error.code, error.message))
            yield DONE
            return
        yield self._chunk({}, self._finish)
        if self._has_usage:
            yield self._frame([], usage_of(self._turn.spent))
        yield DONE

    @property
    def _finish(self) -> str:
        return "length" if self._turn.is_cut else "stop"

    def _chunk(self, delta: Mapping[str, str], finish: str | None = None) -> bytes:
        return self._frame([{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}])

    def _frame(self, choices: Sequence[Any], usage: Mapping[str, Any] | None = None) -> bytes:
        more = {"usage": usage} if self._has_usage else {}
        return frame({**self._head("chat.completion.chunk"), "choices": choices, **more})

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self._turn.run.id}",
            "object": kind,
            "created": self._created,
            "model": self._asked.model,
        }


def usage_of(spent: Spent) -> dict[str, Any]:
    """The usage of all requests of the turn to models."""
    return {
        "prompt_tokens": spent.input,
        "completion_tokens": spent.output,
        "total_tokens": spent.input + spent.output,
        "prompt_tokens_details": {"cached_tokens": spent.cached},
    }


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/v1/chat/completions",
        role="chat",
        summary="Answer a conversation, in the form of OpenAI's chat completions",
        handler=complete_chat,
        tag="openai",
        body=ChatRequest,
        answer=dict[str, Any],
        errors=(404, 409, FAILED),
    ),
)
