"""An MCP server over stdio that starts at once: two resources and one tool, from the standard library alone.

`hang` never answers, `slow` never answers a call, `crash` exits at once, `peek` records what else it can access.
Servers made with the SDK are in the guide and among the servers from the registries.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ONE = {"uri": "note://one", "name": "one", "description": "The first", "mimeType": "text/plain"}
TWO = {"uri": "note://two", "name": "two"}
TEXTS = {"note://one": "first note", "note://two": "第二"}
NUMBER = {"type": "integer"}
ADD = {
    "name": "add",
    "description": "Adds two numbers",
    "inputSchema": {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, "required": ["a", "b"]},
}


def main(mode: str) -> None:
    Path("server.pid").write_text(str(os.getpid()))
    Path("server.env").write_text("\n".join(sorted(os.environ)))
    if mode == "peek":
        peek(Path(os.environ["OUTSIDE"]))
    if mode == "hang":
        time.sleep(60)
    if mode == "crash":
        sys.exit("no disk")
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            result = answered(asked.get("method", ""), asked.get("params") or {}, mode)
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **result}) + "\n")
            sys.stdout.flush()


def answered(method: str, params: dict[str, Any], mode: str) -> dict[str, Any]:
    """The result or the error of a request."""
    match method:
        case "initialize":
            able: dict[str, Any] = {"resources": {}, "tools": {}}
            server = {"name": "files", "version": "1"}
            return {
                "result": {"protocolVersion": params["protocolVersion"], "capabilities": able, "serverInfo": server}
            }
        case "ping":
            return {"result": {}}
        case "resources/list":
            return {"result": {"resources": [ONE, TWO]}}
        case "resources/read" if params["uri"] in TEXTS:
            held = {"uri": params["uri"], "mimeType": "text/plain", "text": TEXTS[params["uri"]]}
            return {"result": {"contents": [held]}}
        case "resources/read":
            return {"error": {"code": -32002, "message": f"Unknown resource: {params['uri']}"}}
        case "tools/list":
            return {"result": {"tools": [ADD]}}
        case "tools/call":
            return {"result": added(params["arguments"], mode)}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def added(numbers: dict[str, int], mode: str) -> dict[str, Any]:
    if mode == "slow":
        time.sleep(60)
    if numbers["a"] < 0:
        return {"content": [{"type": "text", "text": "Error executing tool add: negative"}], "isError": True}
    return {"content": [{"type": "text", "text": str(numbers["a"] + numbers["b"])}]}


def peek(outside: Path) -> None:
    """Tries to read and write `outside` and to open a socket, and records the results in `peek.json`."""
    tries: dict[str, Callable[[], object]] = {
        "read": outside.read_text,
        "write": lambda: outside.write_text("mine"),
        "socket": socket.socket,
    }
    told = {}
    for name, attempt in tries.items():
        try:
            attempt()
            told[name] = "done"
        except OSError as error:
            told[name] = type(error).__name__
    Path("peek.json").write_text(json.dumps({**told, "home": os.environ["HOME"]}))


if __name__ == "__main__":
    main(sys.argv[1])
