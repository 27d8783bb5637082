"""Conditional requests (RFC 9110, 13): entity tags, `If-Match` and `If-None-Match`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from navigator_kernel.text import lazy_compile
from navigator_kernel.values.http.endpoint import Answer, HttpProblem

IF_MATCH, IF_NONE_MATCH = "If-Match", "If-None-Match"
_TAG = lazy_compile(r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")')


def tag_of(value: Any) -> str:
    """A strong entity tag: equal values have the same tag, different values different tags."""
    return f'"{hashlib.sha256(msgspec.json.encode(value, enc_hook=str)).hexdigest()[:32]}"'


def tagged(value: Any, headers: Mapping[str, str]) -> Answer:
    """The answer to GET: `value` with its tag, or 304 if the client has it."""
    tag = tag_of(value)
    known = headers.get(IF_NONE_MATCH, "")
    is_known = known.strip() == "*" or any(found[2] == tag for found in _TAG.finditer(known))
    return Answer(value=value, status=304 if is_known else 200, headers={"etag": tag})


def refuse_another(value: Any, headers: Mapping[str, str]) -> None:
    """Raises 412 if `If-Match` does not name the current state `value`; a weak tag never matches."""
    wanted = headers.get(IF_MATCH)
    if wanted is None or wanted.strip() == "*":
        return
    if not any(found[1] is None and found[2] == tag_of(value) for found in _TAG.finditer(wanted)):
        raise another_state()


def another_state() -> HttpProblem:
    hint = "get it again, and send its ETag as If-Match"
    return HttpProblem(412, "precondition", "its state is not the one that If-Match names", hint=hint)
