"""Finds out whether a model makes no progress: the same call fails in the same way again and again (SAF-5)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from navigator_kernel.values.allowed import LOOKING, RUN

if TYPE_CHECKING:
    from navigator_kernel.values.chat import ChatMessage, ToolCall

MOST = 3  # answers of a model in which the same call fails in the same way; the model is told after one less


def same_failures(messages: Iterable[ChatMessage]) -> Counter[str]:
    """How many answers contain each failure, by call and error. Equal calls of one answer count once, since the model
    has not seen an error in between. What the person says, and a call that did something new, begin the count again;
    only looking at files does not."""
    counts: Counter[str] = Counter()
    calls: dict[str, ToolCall] = {}
    in_this_answer: set[str] = set()
    done: set[str] = set()
    for message in messages:
        if message.role == "user":
            counts.clear()
        elif message.role == "assistant":
            calls, in_this_answer = {call.id: call for call in message.calls}, set()
        elif (call := calls.get(message.call)) is not None:
            key = call_key(call)
            if is_failure(message):
                failure = failure_key(key, message)
                counts[failure] += failure not in in_this_answer
                in_this_answer.add(failure)
            elif call.name not in LOOKING and key not in done:
                counts.clear()
                done.add(key)
    return counts


def is_failure(message: ChatMessage) -> bool:
    """Whether a tool failed, or a command that it ran."""
    failed = (
        message.name == RUN and message.text.startswith("exit code ") and not message.text.startswith("exit code 0")
    )
    return message.failed or failed


def failure_key(call: str, message: ChatMessage) -> str:
    """A key that is equal for equal errors of equal calls."""
    return f"{call} {message.text.partition(NOTICE)[0]}"


NOTICE = "\n\n⚠ "  # what stands between an error and the notice that the same call failed before


def call_key(call: ToolCall) -> str:
    """A key that is equal for equal calls, however their arguments are written."""
    body = json.dumps([call.name, arguments_of(call) or call.arguments], sort_keys=True)
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()


def _never(_value: str) -> None:
    raise ValueError("no number of JSON")


def arguments_of(call: ToolCall) -> dict[str, object] | None:
    """The arguments, or None if they are not a JSON object."""
    try:
        arguments = json.loads(call.arguments or "{}", parse_constant=_never)
        json.dumps(arguments, ensure_ascii=False).encode()  # a lone surrogate is not a character
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None
