"""What goes wrong at providers: failures, with their kind and cost, and answers that must be repaired."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.values.chat import Spent

UNKNOWN = Spent(requests=1, unknown=1, priced=False)  # a request whose usage nobody reported
_KEY_WORDS = ("authentication", "api_key", "api key", "unauthorized", "credential", "token")


def failed_kind(error: Exception) -> str:
    """The kind of the failure, as listed in docs/concepts/models.md."""
    from pydantic_ai import exceptions as wrong

    table: Sequence[tuple[type[Exception], str]] = (
        (wrong.ModelRateLimitError, "rate_limited"),
        (wrong.ModelQuotaExceededError, "quota_used_up"),
        (wrong.ModelUnavailableError, "unavailable"),
        (wrong.ModelServerError, "server_error"),
        (wrong.ModelAuthenticationError, "key_refused"),
        (wrong.ModelNotFoundError, "unknown_model"),
        (wrong.ModelContextWindowExceededError, "too_long"),
        (wrong.ModelRequestRejectedError, "rejected"),
        (wrong.ContentFilterError, "filtered"),
    )
    kind = next((kind for held, kind in table if isinstance(error, held)), "")
    if kind == "key_refused" and getattr(error, "status_code", None) == 403:  # it may be about a region or a model
        words = (getattr(error, name, None) for name in ("provider_error_code", "provider_error_type"))
        said = " ".join([*(str(word) for word in words if word), own_words(error)]).lower()
        return kind if any(word in said for word in _KEY_WORDS) else "forbidden"
    if kind:
        return kind
    if isinstance(error, wrong.ModelConnectionError):
        broke = error.phase == "read" or error.in_stream
        return "cut_off" if broke else _unreachable(error)
    return _by_status(error)


def own_words(error: Exception) -> str:
    """The provider's own words: the message in its answer, or else the whole answer."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    said = inner.get("message") if isinstance(inner, Mapping) else None
    if isinstance(said, str) and said:
        return said
    if isinstance(body, Mapping):
        return json.dumps(body, ensure_ascii=False, default=str)
    return str(body or error)


def reported(error: Exception) -> bool:
    """Whether the provider itself reported the error."""
    return getattr(error, "body", None) is not None


def taken(error: Exception, stream: Any) -> Spent:
    """The usage of a failed request: none if the provider refused it or was not reached, else what the provider
    reported in the part of the `stream` that arrived."""
    from pydantic_ai import exceptions as wrong

    if isinstance(error, wrong.ModelHTTPError) and not error.in_stream:
        return Spent()
    if _by_status(error) == "redirected":
        return Spent()
    if isinstance(error, wrong.ModelConnectionError) and error.phase in {"connect", "pool"}:
        return Spent()
    if stream is None:
        return UNKNOWN
    try:
        return replace(spent_on(stream.get()), unknown=1)
    except Exception:  # noqa: BLE001 - part of a response can cause any error
        return UNKNOWN


def spent_on(response: Any) -> Spent:
    """The usage of a response; it counts as unknown if the provider gave no figures."""
    usage, cost, priced = response.usage, 0.0, True
    try:
        cost = float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        priced = False
    held = {"input": usage.input_tokens, "output": usage.output_tokens, "cached": usage.cache_read_tokens}
    unknown = 0 if usage.input_tokens or usage.output_tokens else 1
    return Spent(requests=1, cost=cost, priced=priced, unknown=unknown, **held)


def _unreachable(error: Exception) -> str:
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return "no_address"
        if isinstance(cause, ssl.SSLError):
            return "no_tls"
    return "unreachable"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        yield error
        seen.add(id(error))
        error = error.__cause__ or error.__context__


def _by_status(error: Exception) -> str:
    """The kind of an error without a class of its own: a redirection, or an unreadable answer."""
    status = next((held for one in _causes(error) if (held := getattr(one, "status_code", None))), 0)
    return "redirected" if isinstance(status, int) and 300 <= status < 400 else "unreadable"


# What servers send that are only nearly compatible with OpenAI's is repaired before the library reads it: several calls
# with one index, arguments that are not text, calls without an id, and an error as an answer with status 200.

_MARK = b'"tool_calls"'
# A word in an error's type or code → its status; every other error is a request that the server rejects
_STATUSES = {"rate": 429, "quota": 429, "overload": 503, "unavail": 503, "auth": 401, "not_found": 404}
_STATUSES |= {"server": 500, "internal": 500, "api_error": 500}

Chunks = Callable[..., AsyncIterator[bytes]]


async def repair(response: Any) -> None:
    """Repairs an HTTP response, whose body has not been read yet; one that is not JSON stays a stream."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if response.status_code != 200 or kind not in {"application/json", "text/event-stream"}:
        return
    chunks: Chunks = response.aiter_bytes
    if kind == "text/event-stream":
        response.aiter_bytes = lambda *_size: _lines(chunks())
        return
    bodies: list[Any] = []
    response.aiter_bytes = lambda *_size: _whole(chunks(), bodies)
    await response.aread()
    if bodies and (status := _status(bodies[0])):
        response.status_code = status


async def _whole(chunks: AsyncIterator[bytes], bodies: list[Any]) -> AsyncIterator[bytes]:
    data = b"".join([chunk async for chunk in chunks])
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        yield data
        return
    bodies.append(body)
    choices = body.get("choices") if isinstance(body, dict) else None
    if _MARK in data and isinstance(choices, list):
        for choice in choices:
            message = choice.get("message") if isinstance(choice, dict) else None
            for call in _calls(message):
                _as_text(call)
                call["id"] = call.get("id") or f"call-{uuid4().hex[:16]}"
                call["type"] = call.get("type") or "function"
        data = json.dumps(body).encode()
    yield data


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a stream of events, whole; those with calls are repaired."""
    held, begun = b"", _Begun()
    async for chunk in chunks:
        held += chunk
        whole, end, held = held.rpartition(b"\n")
        if end:
            yield b"\n".join(map(begun.repaired, whole.split(b"\n"))) + end
    if held:
        yield begun.repaired(held)


class _Call(Struct):
    """A call that has begun: its place in the answer, and what came of it."""

    at: int
    id: str
    name: str
    arguments: str = ""


class _Begun:
    """The calls of one stream, by the index that the server gives."""

    def __init__(self) -> None:
        self._by_index: dict[int, _Call] = {}
        self._count = 0

    def repaired(self, line: bytes) -> bytes:
        if _MARK not in line or not line.startswith(b"data:"):
            return line
        try:
            body = json.loads(line[5:])
            choices = body["choices"]
            for choice in choices:
                for call in _calls(choice.get("delta")):
                    _as_text(call)
                    function = call.get("function") or {}
                    own, name = str(call.get("id") or ""), function.get("name") or ""
                    arguments = function.get("arguments") or ""
                    index = call.get("index")
                    index = index if isinstance(index, int) else max(self._by_index, default=0)
                    now = self._by_index.get(index)
                    if now is None or (name and _is_another(now, own, arguments)):
                        now = self._by_index[index] = _Call(self._count, own, name)
                        call["id"] = own or f"call-{uuid4().hex[:16]}"
                        self._count += 1
                    elif name and name == now.name:  # a name that is sent again is not its second half
                        function["name"] = None
                    now.arguments += arguments
                    call["index"] = now.at
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
            return line
        return b"data: " + json.dumps(body).encode()


def _is_another(now: _Call, own: str, arguments: str) -> bool:
    """Whether a piece with a name begins another call under the index of the call `now`."""
    if own and now.id and own != now.id:
        return True
    if not arguments.lstrip().startswith("{"):
        return False
    try:
        json.loads(now.arguments)
    except (ValueError, RecursionError):
        return False
    return True


def _calls(message: Any) -> list[dict[str, Any]]:
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _as_text(call: dict[str, Any]) -> None:
    """Makes the arguments a text, as OpenAI's are."""
    function = call.get("function")
    if isinstance(function, dict) and "arguments" in function and not isinstance(function["arguments"], str):
        value = function["arguments"]
        function["arguments"] = "" if value is None else json.dumps(value, ensure_ascii=False)


def _status(body: Any) -> int:
    """The status of an answer that is only an error; 0 for every other one."""
    if not isinstance(body, dict) or not body.get("error") or {"choices", "content", "output"} & body.keys():
        return 0
    error = body["error"] if isinstance(body["error"], dict) else {}
    codes = [error.get("code"), error.get("status"), body.get("code")]
    numbers = [int(str(one)) for one in codes if str(one).isdecimal() and 400 <= int(str(one)) < 600]
    if numbers:
        return numbers[0]
    words = " ".join(str(error.get(key, "")) for key in ("type", "code", "status")).lower()
    return next((status for word, status in _STATUSES.items() if word in words), 400)
