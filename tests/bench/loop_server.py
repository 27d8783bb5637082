"""A model that answers every message at once, until its standard input ends: `python loop_server.py <text>`."""

from __future__ import annotations

import sys

from models.wire_server import Said, serving

if __name__ == "__main__":
    with serving() as server:
        server.scripts["worker"] = lambda _messages, _number: Said(text=sys.argv[1])
        print(server.url, flush=True)
        sys.stdin.read()
