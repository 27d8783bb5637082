"""Classifies the failures of providers, and finds out what a failed request cost."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
    if kind == "key_refused":
        return "forbidden" if _is_forbidden(error) else kind
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


def _is_forbidden(error: Exception) -> bool:
    """Whether it is a 403 that is not about the key, but about a region or a model that the account may not use."""
    if getattr(error, "status_code", None) != 403:
        return False
    words = (getattr(error, name, None) for name in ("provider_error_code", "provider_error_type"))
    said = " ".join([*(str(word) for word in words if word), own_words(error)]).lower()
    return not any(word in said for word in _KEY_WORDS)


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
