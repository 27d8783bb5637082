"""The input of an AG-UI client (AG-UI 1.0, RunAgentInput), and the parts of it that the kernel reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from navigator_kernel.values.http.endpoint import HttpProblem, SessionName

ASIDE = frozenset({"developer", "system", "activity", "reasoning"})  # roles that are not part of the conversation

Name = Annotated[str, Meta(min_length=1, max_length=200)]


class CalledFunction(Struct, frozen=True):
    """The tool's name; its arguments are not read."""

    name: str = ""


class CalledTool(Struct, frozen=True):
    """A tool call in a message."""

    id: str
    function: CalledFunction = CalledFunction()


class InputMessage(Struct, frozen=True, rename="camel"):
    """`content` is text, or a list of parts, of which only those with text are read."""

    id: str
    role: str
    content: Any = None
    tool_calls: Sequence[CalledTool] | None = None
    tool_call_id: str | None = None


class ResumeEntry(Struct, frozen=True, rename="camel"):
    """The answer to an interrupt. `payload` is true or false, or an object with `approved` and, for more than one use,
    `scope`."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class RunAgentInput(Struct, frozen=True, rename="camel", kw_only=True):
    """`threadId` is a session of the token. The last message is the person's, unless `resume` answers an interrupt.
    `state`, `tools`, `context` and `forwardedProps` are accepted and not used. Null means absent, as clients before 1.0
    send it."""

    thread_id: SessionName
    run_id: Name
    messages: Sequence[InputMessage]
    protocol_version: str | None = None
    parent_run_id: str | None = None
    resume: Sequence[ResumeEntry] | None = None
    state: Any = None
    tools: Any = None
    context: Any = None
    forwarded_props: Any = None


class UnansweredCall(Struct, frozen=True):
    """A tool call without a result in the client's messages."""

    id: str
    tool: str


def message_of(request: RunAgentInput) -> str:
    """The text of the last message, empty if it is not the person's."""
    messages = [message for message in request.messages if message.role not in ASIDE]
    content = messages[-1].content if messages and messages[-1].role == "user" else ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def unanswered_call(request: RunAgentInput) -> UnansweredCall | None:
    """The last tool call, if it has no result yet: the one that waited for an approval."""
    answered = {message.tool_call_id for message in request.messages if message.role == "tool"}
    calls = [call for message in request.messages for call in message.tool_calls or ()]
    if not calls or calls[-1].id in answered:
        return None
    return UnansweredCall(calls[-1].id, calls[-1].function.name)


def answer_of(entry: ResumeEntry) -> Literal["yes", "session", "no", "cancel"]:
    """The answer that a person gave. 403 for a lasting one, 422 for an answer that says neither yes nor no."""
    if entry.status == "cancelled":
        return "cancel"
    payload: Any = {"approved": entry.payload} if isinstance(entry.payload, bool) else entry.payload
    approved = payload.get("approved") if isinstance(payload, Mapping) else None
    if not isinstance(approved, bool):
        raise HttpProblem(422, "invalid", "the payload says neither yes nor no", hint='payload: {"approved": true}')
    scope = payload.get("scope", "once")
    if scope == "always":
        raise HttpProblem(403, "refused", "a lasting approval is given at the terminal", hint="approve it once")
    if scope not in {"once", "session"}:
        raise HttpProblem(422, "invalid", "the scope of an approval is once or session")
    return "no" if not approved else "session" if scope == "session" else "yes"
