"""Controls access to the server: the host, the origin, the token, and the size and rate of requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from navigator_kernel.gateway.problems import ProblemResponse
from navigator_kernel.values.http.endpoint import HttpProblem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from navigator_kernel.values.http.endpoint import Caller

BODY = 4 * 1024 * 1024  # bytes of a request
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
OPEN = frozenset({"/healthz", "/readyz"})  # paths that need no token
RATE, BURST = 50.0, 200.0  # changes per second by one token, and the size of a burst
READ = 0.1  # cost of a request that only reads, where a change costs 1


class Buckets:
    """A token bucket for each token (RFC 2697's single rate)."""

    def __init__(self, rate: float = RATE, burst: float = BURST, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._held: dict[str, tuple[float, float]] = {}

    def wait(self, name: str, cost: float = 1.0) -> float:
        """Takes `cost` from a bucket; returns 0, or the seconds to wait if it has less."""
        now = self._clock()
        left, before = self._held.get(name, (self._burst, now))
        left = min(self._burst, left + (now - before) * self._rate)
        taken = left >= cost
        self._held[name] = (left - cost if taken else left, now)
        return 0.0 if taken else (cost - left) / self._rate


class Access:
    """ASGI middleware. `places` are the hosts, with ports, that a client may name; `caller` looks up a token."""

    def __init__(
        self,
        app: ASGIApp,
        places: Collection[str],
        caller: Callable[[str], Caller | None],
        buckets: Buckets,
        open_paths: Collection[str] = OPEN,
    ) -> None:
        self.app, self._places, self._caller, self._buckets = app, frozenset(places), caller, buckets
        self._open_paths = frozenset(open_paths)
        self._origins = frozenset(f"{scheme}://{place}" for place in self._places for scheme in ("http", "https"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self.app(scope, _limited(receive), send)

    def _refusal(self, scope: Scope) -> ProblemResponse | None:
        headers = [(name, value.decode("latin-1")) for name, value in scope["headers"]]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0].lower() not in self._places:
            return ProblemResponse(421, "host", "this server does not accept that host")
        held = dict(headers)
        origin = held.get(b"origin")
        if origin is not None and origin not in self._origins:
            return ProblemResponse(403, "origin", "requests from that origin are rejected")
        site = held.get(b"sec-fetch-site", "none")
        is_opened = held.get(b"sec-fetch-mode") == "navigate" and scope["path"] in self._open_paths
        if site not in {"none", "same-origin"} and not is_opened:
            return ProblemResponse(403, "origin", "requests from other sites are rejected")
        if _length(held.get(b"content-length", "0")) > BODY:
            return ProblemResponse(413, "too_large", f"a body has at most {BODY} bytes")
        if scope["path"] in self._open_paths:
            return None
        return self._token_refusal(scope, held.get(b"authorization", ""))

    def _token_refusal(self, scope: Scope, said: str) -> ProblemResponse | None:
        scheme, _, token = said.partition(" ")
        caller = self._caller(token.strip()) if scheme.lower() == "bearer" else None
        if caller is None:
            return ProblemResponse(
                401,
                "token",
                "a token is needed",
                hint="navigator serve --new-token; Authorization: Bearer …",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if (seconds := self._buckets.wait(caller.id, 1.0 if scope["method"] in WRITES else READ)) > 0:
            after = {"Retry-After": str(int(seconds) + 1)}
            return ProblemResponse(429, "rate", "too many requests with this token", headers=after)
        scope["caller"] = caller
        return None


def _limited(receive: Receive) -> Receive:
    """Counts the bytes of a request's body; a body that is too long is answered with 413."""
    count = 0

    async def counted() -> Message:
        nonlocal count
        message = await receive()
        count += len(message.get("body", b""))
        if count > BODY:
            raise HttpProblem(413, "too_large", f"a body has at most {BODY} bytes")
        return message

    return counted


def _length(said: str) -> int:
    return int(said) if said.isascii() and said.isdigit() and len(said) < 20 else BODY + 1
