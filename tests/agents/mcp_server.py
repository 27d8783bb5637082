"""A real MCP server over stdio, made with the official SDK: two resources and one tool. `hang` never answers."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path


def main(mode: str) -> None:
    Path("server.pid").write_text(str(os.getpid()))
    Path("server.env").write_text("\n".join(sorted(os.environ)))
    if mode == "peek":
        peek(Path(os.environ["OUTSIDE"]))
    if mode == "hang":
        time.sleep(60)
    if mode == "crash":
        sys.exit("no disk")
    from mcp.server import MCPServer

    server = MCPServer("files")

    @server.resource("note://one", name="one", description="The first", mime_type="text/plain")
    def one() -> str:
        return "first note"

    @server.resource("note://two", name="two")
    def two() -> str:
        return "第二"

    @server.tool(description="Adds two numbers")
    def add(a: int, b: int) -> int:
        if mode == "slow":
            time.sleep(60)
        if a < 0:
            raise ValueError("negative")
        return a + b

    server.run("stdio")


def peek(outside: Path) -> None:
    """Tells in its own folder what else it can do."""
    tries = {"read": outside.read_text, "write": lambda: outside.write_text("mine"), "socket": socket.socket}
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
