"""Removes text that looks like a user interface command from a model's answer: only tools may give commands (X-17)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from navigator_kernel.text import lazy_compile

TYPES = frozenset({"toast", "refresh", "navigate", "modal"})
_FENCED = lazy_compile(r"```(?:json)?\s*```\n?")
_BEGINS = lazy_compile(r"\{\s*\"(?:type|payload)\"")


def without_commands(text: str) -> str:
    """`text` without each JSON object that is a command, `{type, payload}`."""
    kept, at = [], 0
    for begin, end in _commands(text):
        kept.append(text[at:begin])
        at = end
    return _FENCED.sub("", "".join([*kept, text[at:]])) if kept else text


def _commands(text: str) -> Iterator[tuple[int, int]]:
    decoder, at = json.JSONDecoder(), 0
    while hit := _BEGINS.search(text, at):
        try:
            held, at = decoder.raw_decode(text, hit.start())
        except (ValueError, RecursionError):
            at = hit.end()
            continue
        if isinstance(held, dict) and held.get("type") in TYPES and isinstance(held.get("payload"), dict):
            yield hit.start(), at
