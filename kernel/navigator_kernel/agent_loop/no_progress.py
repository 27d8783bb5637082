"""Finds out whether a model makes no progress: the same call fails in the same way, or gives the same result, again and
again (SAF-5)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from navigator_kernel.values.allowed import LOOKING, RUN
from navigator_kernel.values.called import read_arguments

if TYPE_CHECKING:
    from navigator_kernel.values.chat import ChatMessage, ToolCall

# Answers of a model with the same call and the same error, or the same result; it is told after one less
FAILURES, RESULTS = 3, 10
NOTICE = "\n\n⚠ "  # what stands between a result and the notice that it came before


def is_stuck(messages: Iterable[ChatMessage]) -> bool:
    """Whether the same came once too often, since the person wrote or something new was done."""
    return any(count >= _most(key) for key, count in _counts(messages).items())


def is_nearly_stuck(messages: tuple[ChatMessage, ...]) -> bool:
    """Whether the last message, the result of a call, may not come once more."""
    calls = next((message.calls for message in reversed(messages) if message.role == "assistant"), ())
    call = next((call for call in calls if call.id == messages[-1].call), None)
    key = _key(call, messages[-1]) if call is not None else ""
    return _counts(messages)[key] == _most(key) - 1


def _counts(messages: Iterable[ChatMessage]) -> Counter[str]:
    """How many answers contain each call with its result. Equal calls of one answer count once, since the model has not
    seen a result in between. What the person says, and a call that did something new, begin the count again; only
    looking at files does not."""
    counts: Counter[str] = Counter()
    calls: dict[str, ToolCall] = {}
    in_this_answer: set[str] = set()
    done: set[str] = set()
    for message in messages:
        if message.role == "user" and not message.name:
            counts.clear()
        elif message.role == "assistant":
            calls, in_this_answer = {call.id: call for call in message.calls}, set()
        elif (call := calls.get(message.call)) is not None:
            key = _key(call, message)
            if not _failed(message) and call.name not in LOOKING and key not in done:
                counts.clear()
                done.add(key)
            counts[key] += key not in in_this_answer
            in_this_answer.add(key)
    return counts


def _key(call: ToolCall, message: ChatMessage) -> str:
    """A key that is equal for equal results of equal calls; the first letter says whether it is an error."""
    return f"{'-' if _failed(message) else '+'}{call_key(call)} {message.text.partition(NOTICE)[0]}"


def _most(key: str) -> int:
    return FAILURES if key.startswith("-") else RESULTS


def _failed(message: ChatMessage) -> bool:
    """Whether a tool failed, or a command that it ran."""
    begin = "exit code "
    ran_badly = message.name == RUN and message.text.startswith(begin) and not message.text.startswith(f"{begin}0")
    return message.failed or ran_badly


def call_key(call: ToolCall) -> str:
    """A key that is equal for equal calls, however their arguments are written."""
    body = json.dumps([call.name, read_arguments(call.arguments) or call.arguments], sort_keys=True)
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()
