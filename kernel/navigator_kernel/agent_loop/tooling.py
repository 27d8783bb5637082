"""Finds out how a model can use tools, by asking it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from navigator_kernel.agent_loop.text_calls import read, shape_of
from navigator_kernel.errors import ModelFailed
from navigator_kernel.values.chat import Asked, ChatMessage, Completion, Spent, Tooling, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from navigator_kernel.model_ports import ChatModel

WORD = "Answer with the one word: ready"
CALL = "Call the tool `ready` now, with the word `yes`."
READY = ToolSpec(
    name="ready",
    description="Says that you are ready.",
    schema={"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)
TOKENS = 1_000  # tokens of an answer, including reasoning
LIMIT = 60.0  # seconds
# Errors of a server that does not know a feature; other errors say nothing about tools
_DECLINED = frozenset({"rejected", "server_error", "unknown_model", "unreadable", "empty", "cut_off"})


async def tooling(model: ChatModel) -> tuple[Tooling, Spent]:
    """Returns how the model can use tools, and the usage of finding out. Only for a model that has answered without
    tools; ModelFailed or TimedOut if nothing could be found out."""
    spent = Spent()
    called = await _heard(model, CALL, tools=(READY,))
    if called is not None:
        spent += called.spent
        if any(call.name == READY.name for call in called.message.calls):
            return "native", spent
    # The prompt asks for plain text: the answer is JSON only if the server enforces the schema
    held = await _heard(model, WORD, shape=shape_of((READY,)))
    if held is None:
        return "none", spent
    return ("schema" if read(held.message.text) else "none"), spent + held.spent


async def _heard(
    model: ChatModel, text: str, *, tools: tuple[ToolSpec, ...] = (), shape: Mapping[str, Any] | None = None
) -> Completion | None:
    """The answer, or None if the server declines the request."""
    said = (ChatMessage(role="user", text=text),)
    try:
        return await model.complete(Asked(messages=said, tools=tools, shape=shape, tokens=TOKENS, limit=LIMIT))
    except ModelFailed as error:
        if error.data.get("kind") in _DECLINED:
            return None
        raise
