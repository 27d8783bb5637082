"""Selects the newest messages that fit a budget, and never separates a call from its answer (X-15)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from navigator_kernel.values.chat import PDF

if TYPE_CHECKING:
    from navigator_kernel.values.chat import ChatMessage

HISTORY = 8_000  # tokens of earlier turns
WORK = 48_000  # tokens of this turn so far
TURNS = 10  # turns of the conversation (JIT-4)
PICTURE = 1_600  # tokens of a picture, roughly
PDF_BYTES = 50  # bytes of a PDF per token, roughly


def tokens(message: ChatMessage) -> int:
    """A rough count: one token for four ASCII characters, one for any other, four for the message, and its files."""
    text = message.text + message.wire + "".join(call.name + call.arguments for call in message.calls)
    wide = sum(not letter.isascii() for letter in text)
    shown = sum(max(file.size // PDF_BYTES, PICTURE) if file.kind == PDF else PICTURE for file in message.files)
    return 4 + wide + (len(text) - wide + 3) // 4 + shown


def units(messages: Iterable[ChatMessage]) -> list[tuple[ChatMessage, ...]]:
    """Groups messages that belong together: calls with all their answers; every other message is alone."""
    found: list[list[ChatMessage]] = []
    for message in messages:
        if message.role == "tool" and found and found[-1][0].calls:
            found[-1].append(message)
        else:
            found.append([message])
    return [tuple(one) for one in found]


def newest(messages: Sequence[ChatMessage], budget: int) -> tuple[ChatMessage, ...]:
    """The last whole units within `budget` tokens; tool results without their call are left out."""
    kept: list[tuple[ChatMessage, ...]] = []
    for unit in reversed(units(messages)):
        cost = sum(map(tokens, unit))
        if cost > budget:
            break
        budget -= cost
        if unit[0].role != "tool":
            kept.append(unit)
    return tuple(message for unit in reversed(kept) for message in unit)


def fitted(last: Sequence[tuple[ChatMessage, ...]], budget: int) -> tuple[ChatMessage, ...]:
    """The last unit with its tool results cut to fit, so that the newest work is never dropped."""
    unit = last[0] if last else ()
    answers = sum(message.role == "tool" for message in unit)
    room = budget // (2 * answers) if answers else 0  # in characters, since one is rarely more than a token
    return tuple(
        replace(message, text=f"{message.text[:room]} …")
        if message.role == "tool" and len(message.text) > room
        else message
        for message in unit
    )


def past(history: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """The last turns, starting with a message of the person."""
    found = newest(history[-2 * TURNS :], HISTORY)
    begin = next((at for at, message in enumerate(found) if message.role == "user"), len(found))
    return found[begin:]
