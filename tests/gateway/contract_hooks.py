"""Loaded by schemathesis: sources of skills become a missing folder, so that nothing on the machine or the network is
read, and `If-Match` becomes `*`, because no generated value would match the current state."""

from __future__ import annotations

from typing import Any

import schemathesis

NOWHERE = "./no-such-folder"


@schemathesis.hook  # type: ignore[untyped-decorator]  # its types are not read
def map_body(context: schemathesis.HookContext, body: Any) -> Any:
    if isinstance(body, dict) and isinstance(body.get("source"), str) and body["source"]:
        return {**body, "source": NOWHERE}
    return body


@schemathesis.hook  # type: ignore[untyped-decorator]  # its types are not read
def map_headers(context: schemathesis.HookContext, headers: Any) -> Any:
    return {**headers, "If-Match": "*"} if headers and "If-Match" in headers else headers
