"""Loaded by schemathesis: sources of skills that lead nowhere, so that nothing of the machine or the network is read."""

from __future__ import annotations

from typing import Any

import schemathesis

NOWHERE = "./no-such-folder"


@schemathesis.hook
def map_body(context: schemathesis.HookContext, body: Any) -> Any:
    if isinstance(body, dict) and isinstance(body.get("source"), str) and body["source"]:
        return {**body, "source": NOWHERE}
    return body
