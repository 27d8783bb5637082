"""Loaded by schemathesis: sources of skills lead nowhere, so that nothing of the machine or the network is read, and
writes meet the state that there is, which no generated `If-Match` would."""

from __future__ import annotations

from typing import Any

import schemathesis

NOWHERE = "./no-such-folder"


@schemathesis.hook
def map_body(context: schemathesis.HookContext, body: Any) -> Any:
    if isinstance(body, dict) and isinstance(body.get("source"), str) and body["source"]:
        return {**body, "source": NOWHERE}
    return body


@schemathesis.hook
def map_headers(context: schemathesis.HookContext, headers: Any) -> Any:
    return {**headers, "If-Match": "*"} if headers and "If-Match" in headers else headers
