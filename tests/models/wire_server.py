"""A server that speaks the wire formats of OpenAI's chat completions and Anthropic's messages, well or badly.

The name of the requested model, one of `MODES`, selects the behaviour. Every request is kept.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from web_server import QuietServer

USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 12,
    "total_tokens": 132,
    "prompt_tokens_details": {"cached_tokens": 100},
}
HTML = "<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>"
LONG = 30.0  # seconds that a server which hangs stays silent


class Said(NamedTuple):
    """A model's answer: text, reasoning, and calls as `(name, arguments)`; or one of `MODES`."""

    text: str = ""
    reasoning: str = ""
    calls: Sequence[tuple[str, str]] = ()
    finish: str = ""
    mode: str = ""


class Request(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


Answer = Callable[["Exchange"], None]
Script = Callable[[Sequence[Mapping[str, Any]], int], Said]


@dataclass
class WireServer:
    """`scripts` are models whose answers depend on the messages and the number of requests; `acts` are answers of
    another kind, until a tool has answered; `declines` names request
    fields that a model's server does not know, and answers with 400."""

    scripts: dict[str, Script] = field(default_factory=dict)
    acts: dict[str, Answer] = field(default_factory=dict)
    declines: dict[str, tuple[str, ...]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def asked(self, model: str) -> int:
        return sum(request.body.get("model") == model for request in self.requests)


@contextmanager
def serving() -> Iterator[WireServer]:
    held = WireServer()

    class Handler(_Handler):
        state = held

    server = QuietServer(("127.0.0.1", 0), Handler)
    held.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield held
    finally:
        held.stopped.set()
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True  # otherwise every other answer waits 40 ms for an acknowledgement
    state: WireServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        state = self.state
        headers = {name.lower(): value for name, value in self.headers.items()}
        state.requests.append(Request(self.path, headers, body))
        model, spoken = str(body["model"]), _Anthropic if self.path.endswith("/messages") else _OpenAI
        exchange = Exchange(self, body, state.asked(model), spoken())
        with suppress(BrokenPipeError, ConnectionResetError):
            if unknown := [name for name in state.declines.get(model, ()) if name in body]:
                exchange.fail(400, f"{unknown[0]}: not supported", "invalid_request_error")
            elif model in state.acts and not any(map(_is_result, body["messages"])):
                state.acts[model](exchange)
            elif model in state.scripts:
                said = state.scripts[model](body["messages"], exchange.number)
                MODES[said.mode](exchange) if said.mode else exchange.say(said)
            else:
                MODES[model](exchange)

    def log_message(self, format: str, *args: object) -> None:
        return


class Exchange(NamedTuple):
    """One request that is being answered, the `number`th to this model."""

    handler: _Handler
    body: Mapping[str, Any]
    number: int
    spoken: _OpenAI | _Anthropic

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def key(self) -> str:
        headers = self.handler.headers
        return str(headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer "))

    def say(self, said: Said) -> None:
        if not self.streamed:
            self.send(200, json.dumps(self.spoken.whole(said, str(self.body["model"]))))
            return
        self.begin()
        for piece in self.spoken.pieces(said, str(self.body["model"])):
            self.write(piece)
        self.end()

    def send(self, status: int, body: str, kind: str = "application/json", **headers: str) -> None:
        data = body.encode()
        self.handler.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(data)

    def fail(self, status: int, message: str, type: str = "api_error", code: str = "", **headers: str) -> None:
        error = {"type": "error", "error": {"type": type, "message": message, **({"code": code} if code else {})}}
        self.send(status, json.dumps(error), **headers)

    def begin(self) -> None:
        self.handler.send_response(200)
        self.handler.send_header("content-type", "text/event-stream")
        self.handler.send_header("transfer-encoding", "chunked")
        self.handler.end_headers()

    def write(self, text: str) -> None:
        data = text.encode()
        self.handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.handler.wfile.flush()

    def end(self) -> None:
        self.handler.wfile.write(b"0\r\n\r\n")

    def drop(self) -> None:
        """Closes the connection in the middle of an answer."""
        self.handler.wfile.flush()
        self.handler.close_connection = True
        self.handler.connection.close()

    def stay_silent(self) -> None:
        self.handler.state.stopped.wait(LONG)
        self.handler.close_connection = True


def _is_result(message: Mapping[str, Any]) -> bool:
    """Whether a message has the result of a tool, in either protocol."""
    blocks = message["content"] if isinstance(message["content"], list) else []
    return message["role"] == "tool" or any(block.get("type") == "tool_result" for block in blocks)


class _OpenAI:
    too_long = ("maximum context length is 8192 tokens", "invalid_request_error", "context_length_exceeded")
    used_up = (429, "no credit", "insufficient_quota", "insufficient_quota")

    def whole(self, said: Said, model: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
        message |= {"reasoning_content": said.reasoning} if said.reasoning else {}
        message |= {"tool_calls": self._calls(said)} if said.calls else {}
        finish = said.finish or ("tool_calls" if said.calls else "stop")
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        base = {"id": "chatcmpl-1", "object": "chat.completion", "created": int(time.time()), "model": model}
        return {**base, "choices": [choice], "usage": USAGE}

    def pieces(self, said: Said, model: str) -> Iterator[str]:
        yield self.piece(model, {"role": "assistant", "content": ""})
        for part in _parts(said.reasoning):
            yield self.piece(model, {"reasoning_content": part})
        for part in _parts(said.text):
            yield self.piece(model, {"content": part})
        for at, call in enumerate(self._calls(said)):
            yield self.piece(model, {"tool_calls": [{"index": at, **call}]})
        yield self.piece(model, {}, said.finish or ("tool_calls" if said.calls else "stop"))
        yield self.piece(model, None)
        yield "data: [DONE]\n\n"

    def piece(self, model: str, delta: Mapping[str, Any] | None, finish: str | None = None) -> str:
        base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": int(time.time()), "model": model}
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        return f"data: {json.dumps({**base, 'choices': choices, **({} if choices else {'usage': USAGE})})}\n\n"

    def _calls(self, said: Said) -> list[dict[str, Any]]:
        named = enumerate(said.calls)
        return [
            {
                "id": f"call_{at}_{time.monotonic_ns()}",
                "type": "function",
                "function": {"name": name, "arguments": args},
            }
            for at, (name, args) in named
        ]


# OpenAI's reason for the end of an answer → Anthropic's
_REASONS = {"content_filter": "refusal", "length": "max_tokens"}


class _Anthropic:
    too_long = ("prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error")
    used_up = (400, "Your credit balance is too low to access the Anthropic API.", "invalid_request_error")

    def whole(self, said: Said, model: str) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text else []
        content += [
            {"type": "tool_use", "id": f"toolu_{at}", "name": name, "input": json.loads(args)}
            for at, (name, args) in enumerate(said.calls)
        ]
        base = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content}
        usage = {
            "input_tokens": 20,
            "output_tokens": 12,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 0,
        }
        reason = _REASONS.get(said.finish) or ("tool_use" if said.calls else "end_turn")
        return {**base, "stop_reason": reason, "stop_sequence": None, "usage": usage}

    def pieces(self, said: Said, model: str) -> Iterator[str]:
        whole = self.whole(said, model)
        yield self.piece("message_start", message={**whole, "content": [], "stop_reason": None})
        for at, block in enumerate(whole["content"]):
            if block["type"] == "text":
                yield self.piece("content_block_start", index=at, content_block={"type": "text", "text": ""})
                for part in _parts(block["text"]):
                    yield self.piece("content_block_delta", index=at, delta={"type": "text_delta", "text": part})
            else:
                yield self.piece("content_block_start", index=at, content_block={**block, "input": {}})
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                yield self.piece("content_block_delta", index=at, delta=delta)
            yield self.piece("content_block_stop", index=at)
        end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield self.piece("message_delta", delta=end, usage={"output_tokens": 12})
        yield self.piece("message_stop")

    def piece(self, type: str, **facts: Any) -> str:
        return f"event: {type}\ndata: {json.dumps({'type': type, **facts})}\n\n"


def _parts(text: str) -> Iterator[str]:
    """Pieces of 7 characters; a very long text in about 20,000 pieces."""
    size = max(7, len(text) // 20_000)
    yield from (text[at : at + size] for at in range(0, len(text), size))


HELLO = Said(text="Hello, all is well.")


def _once(otherwise: Answer) -> Answer:
    """Answers badly the first time, and well from then on."""

    def answer(exchange: Exchange) -> None:
        otherwise(exchange) if exchange.number == 1 else exchange.say(HELLO)

    return answer


def _silent_after(pieces: int) -> Answer:
    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for piece, _ in zip(exchange.spoken.pieces(HELLO, "x"), range(pieces), strict=False):
            exchange.write(piece)
        exchange.stay_silent()

    return answer


def _cut(exchange: Exchange) -> None:
    if not exchange.streamed:
        exchange.handler.send_response(200)
        exchange.handler.send_header("content-type", "application/json")
        exchange.handler.send_header("content-length", "5000")
        exchange.handler.end_headers()
        exchange.handler.wfile.write(json.dumps(exchange.spoken.whole(HELLO, "x")).encode()[:60])
    else:
        exchange.begin()
        for piece, _ in zip(exchange.spoken.pieces(HELLO, "x"), range(3), strict=False):
            exchange.write(piece)
    exchange.drop()


def _ends_early(exchange: Exchange) -> None:
    exchange.begin()
    for piece, _ in zip(exchange.spoken.pieces(HELLO, "x"), range(3), strict=False):
        exchange.write(piece)
    exchange.end()


def _broken_json(exchange: Exchange) -> None:
    if not exchange.streamed:
        exchange.send(200, json.dumps(exchange.spoken.whole(HELLO, "x"))[:80])
        return
    exchange.begin()
    for piece, _ in zip(exchange.spoken.pieces(HELLO, "x"), range(1), strict=False):
        head, _, data = piece.rpartition("data: ")
        exchange.write(f"{head}data: {data[:40]}\n\n")
    exchange.end()


def _no_choices(exchange: Exchange) -> None:
    if exchange.streamed:
        exchange.begin()
        exchange.write(exchange.spoken.piece("x", None))  # type: ignore[call-arg]  # OpenAI only
        exchange.write("data: [DONE]\n\n")
        exchange.end()
        return
    exchange.send(200, json.dumps({**exchange.spoken.whole(HELLO, "x"), "choices": []}))


def _error_in_stream(exchange: Exchange) -> None:
    exchange.begin()
    for piece, _ in zip(exchange.spoken.pieces(HELLO, "x"), range(3), strict=False):
        exchange.write(piece)
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    exchange.write(f"event: error\ndata: {json.dumps(error)}\n\n")
    exchange.end()


MODES: Mapping[str, Answer] = {
    "well": lambda x: x.say(HELLO),
    "reasons": lambda x: x.say(Said(text="42", reasoning="six times seven")),
    "calls": lambda x: x.say(Said(calls=[("look_up", '{"word": "moon"}')])),
    "limited-once": _once(lambda x: x.fail(429, "slow down", "rate_limit_error", retry_after="7")),
    "limited-a-second": _once(lambda x: x.fail(429, "slow down", "rate_limit_error", retry_after="1")),
    "limited-for-an-hour": _once(lambda x: x.fail(429, "slow down", "rate_limit_error", retry_after="3600")),
    "limited": lambda x: x.fail(429, "slow down", "rate_limit_error"),
    "used-up": lambda x: x.fail(*x.spoken.used_up),
    "failed-once": _once(lambda x: x.fail(500, "oops")),
    "failed": lambda x: x.fail(500, "oops"),
    "overloaded-once": _once(lambda x: x.fail(529, "Overloaded", "overloaded_error")),
    "unavailable": lambda x: x.fail(503, "come back"),
    "key-refused": lambda x: x.fail(401, f"Incorrect API key provided: {x.key}", "authentication_error"),
    "forbidden": lambda x: x.fail(403, "Country, region, or territory not supported", "permission_error"),
    "unknown": lambda x: x.fail(404, "no such model", "not_found_error", code="model_not_found"),
    "too-long": lambda x: x.fail(400, *x.spoken.too_long),
    "rejected": lambda x: x.fail(400, "temperature: no", "invalid_request_error"),
    "hangs": lambda x: x.stay_silent(),
    "hangs-at-the-first-word": _silent_after(0),
    "hangs-between-words": _silent_after(3),
    "moved": lambda x: x.send(307, "", location="http://127.0.0.1:9/elsewhere"),
    "page": lambda x: x.send(200, HTML, "text/html"),
    "page-of-an-error": lambda x: x.send(502, HTML, "text/html"),
    "cut": _cut,
    "ends-early": _ends_early,
    "broken-json": _broken_json,
    "no-choices": _no_choices,
    "silent-once": _once(_no_choices),
    "says-nothing": lambda x: x.say(Said()),
    "withheld": lambda x: x.say(Said(finish="content_filter")),
    "error-in-stream": _error_in_stream,
}
