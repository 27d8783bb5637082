"""Servers for the benchmark of streams, until their standard input ends: `python stream_server.py model | bare`.

`model` speaks OpenAI's protocol and streams PIECES pieces, one every PAUSE seconds; `bare` is Starlette alone, and
streams as many events of a given size at the same pace.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

PIECES, PAUSE = 40, 0.25  # pieces of an answer; seconds between them
SIZE = 300  # bytes of data per event, as in the kernel


def chunk(**delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "worker", "choices": [choice]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


async def pieces() -> AsyncIterator[bytes]:
    for number in range(PIECES):
        yield chunk(role="assistant", content=f"piece {number} ")
        await asyncio.sleep(PAUSE)
    yield chunk() + b"data: [DONE]\n\n"


async def completions(request: Request) -> Response:
    body = await request.json()
    if body.get("stream"):
        return StreamingResponse(pieces(), media_type="text/event-stream")
    text = '{"skills": [], "direct": true}'
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return JSONResponse({"id": "c", "object": "chat.completion", "created": 0, "model": "worker", "choices": [choice]})


async def events() -> AsyncIterator[bytes]:
    for number in range(PIECES):
        yield f"id: {number}\nevent: RunContent\ndata: {'a' * SIZE}\n\n".encode()
        await asyncio.sleep(PAUSE)


async def stream(_: Request) -> Response:
    return StreamingResponse(events(), media_type="text/event-stream")


def main(kind: str) -> None:
    routes = [Route("/v1/chat/completions", completions, methods=["POST"]), Route("/events", stream)]
    app = Starlette(routes=routes)
    with socket.create_server(("127.0.0.1", 0), backlog=2_048) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", backlog=2_048))

        def end_with_input() -> None:
            sys.stdin.read()
            server.should_exit = True

        threading.Thread(target=end_with_input, daemon=True).start()
        path = "/v1" if kind == "model" else "/events"
        print(f"http://127.0.0.1:{listener.getsockname()[1]}{path}", flush=True)
        server.run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])
