"""Reads the messages of OpenAI's clients, which may have several parts, and refuses what cannot be done here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from navigator_kernel.gateway.projections.openai_sessions import Conversation
from navigator_kernel.values.http.endpoint import HttpProblem
from navigator_kernel.values.request import Said

TEXTS = frozenset({"text", "input_text", "output_text", "refusal", "summary_text"})
_PROGRAM = frozenset({"system", "developer"})
_NOT_FORCED = ("auto", "none")


class Part(Struct, frozen=True):
    """A part of a message's content."""

    type: str
    text: str = ""
    refusal: str = ""


def text_of(content: str | Sequence[Part] | None, role: str) -> str:
    """The text of a message; 400 if a person's message has a part of another kind."""
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.type not in TEXTS and role == "user":
            hint = "name a file of the project with @path in the text"
            raise HttpProblem(400, "unsupported_content", f"only texts can be read, not {part.type!r}", hint=hint)
    return "\n".join(part.text or part.refusal for part in content if part.type in TEXTS)


def conversation_of(
    said: Sequence[tuple[str, str]], *, user: str = "", session: str = "", previous: str = ""
) -> Conversation:
    """The last message and the ones before it, from pairs of role and text. Tools' messages are the client's own and
    are left out. 400 if the last message is not the person's."""
    told = [one for one in said if one[0] in {"user", "assistant"} and (one[0] == "user" or one[1].strip())]
    if not told or told[-1][0] != "user" or said[-1][0] in {"assistant", "tool", "function"}:
        raise HttpProblem(400, "usage", "the last message must have the role user")
    before = tuple(
        Said(role="assistant" if role == "assistant" else "user", text=text, run="") for role, text in told[:-1]
    )
    system = "\n\n".join(text for role, text in said if role in _PROGRAM and text.strip())
    return Conversation(text=told[-1][1], before=before, system=system, session=session, previous=previous, user=user)


def refuse_forced_tool(choice: str | Mapping[str, Any] | None) -> None:
    """Raises 400 if the answer must be a call of the client's tool: the kernel calls its own tools and ignores the
    client's, as a model may."""
    if choice is not None and choice not in _NOT_FORCED:
        raise HttpProblem(400, "unsupported_tool", "the tools of a request are not called", hint="tool_choice: auto")


def refuse_format(wanted: Mapping[str, Any] | None) -> None:
    """Raises 400 for a format of the answer that nothing here would enforce."""
    if wanted is not None and wanted.get("type", "text") != "text":
        raise HttpProblem(400, "unsupported_format", f"an answer is a text, not {wanted.get('type')!r}")
