"""Writes one entry of the audit log as a line of limited length: long values are cut, identifying ones are kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from navigator_kernel.text import cut_text, escaped

LINE_LIMIT = 64 * 1024  # bytes of one line, with its authentication code
IDENTITY = frozenset({"v", "n", "ts", "event", "run", "actor", "subject", "digest", "origin", "why", "how", "by"})
IDENTITY_LIMIT = 1_000  # characters of one such value
_ROOM = 128  # bytes of the line that the authentication code takes
_STEPS = ((2_000, 100), (500, 20), (50, 5))  # kept characters per value and items per list, tried until the line fits


def written(facts: Mapping[str, Any]) -> bytes:
    """`facts` as one JSON object. If it exceeds the limit, long values are replaced with their beginning, end, length
    and SHA-256; the values of `IDENTITY` keep up to 1,000 characters each."""
    data = _json(facts)
    for characters, items in _STEPS:
        if len(data) <= LINE_LIMIT - _ROOM:
            return data
        data = _json({key: _fitted(key, value, characters, items) for key, value in facts.items()})
    if len(data) <= LINE_LIMIT - _ROOM:
        return data
    kept = {key: _fitted(key, value, 0, 0) for key, value in facts.items() if key in IDENTITY}
    rest = {key: value for key, value in facts.items() if key not in IDENTITY}
    return _json({**kept, "cut": cut_text(_json(rest).decode(), _STEPS[-1][0])})


def _fitted(key: str, value: Any, characters: int, items: int) -> Any:
    if key not in IDENTITY:
        return _short(value, characters, items)
    text = value if isinstance(value, str) else str(value)
    return value if len(text) <= IDENTITY_LIMIT else cut_text(text, IDENTITY_LIMIT)


def _short(value: Any, characters: int, items: int) -> Any:
    if isinstance(value, Mapping):
        if len(value) > items:
            return cut_text(_json(value).decode(), characters)
        return {cut_text(str(key), characters): _short(one, characters, items) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        kept = [_short(one, characters, items) for one in value[:items]]
        return kept if len(value) <= items else [*kept, {"items": len(value), "sha256": _digest(_json(value))}]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = str(value)
    return cut_text(text, characters)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _json(body: Any) -> bytes:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=str)
    return (text if text.isascii() else escaped(text)).encode("utf-8", "backslashreplace")
