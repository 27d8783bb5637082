"""Controls access to the server: the host, the origin, the token, and the size and rate of requests."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from navigator_kernel.errors import KernelError
from navigator_kernel.gateway.problems import ProblemResponse
from navigator_kernel.values.http.endpoint import Caller, HttpProblem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from navigator_kernel.gateway.tokens import TokenStore

BODY = 4 * 1024 * 1024  # bytes of a request
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
OPEN = frozenset({"/healthz", "/readyz"})  # paths that need no token
RATE, BURST = 50.0, 200.0  # changes per second by one token, and the size of a burst
READ = 0.1  # cost of a request that only reads, where a change costs 1
SHARE = 10.0  # taken at once from a bucket that gateways share, so that few requests have to ask for it
ALONE = 5.0  # seconds after a failure of the shared buckets in which a gateway uses its own
CHECKED = 1.0  # seconds between two checks of the tokens of open requests
ENDED = "the token was revoked or has expired"
LAST_EVENT = "last_event"  # key of a scope; the value returns the bytes of a stream's last event


class Buckets:
    """A token bucket for each token (RFC 2697's single rate). With `take`, that of `SharedStores`, all gateways share
    it; without their database each gateway has its own."""

    def __init__(
        self,
        rate: float = RATE,
        burst: float = BURST,
        clock: Callable[[], float] = time.monotonic,
        take: Callable[[str, float, float, float], float] | None = None,
    ) -> None:
        self._rate, self._burst, self._clock, self._take = rate, burst, clock, take
        self._held: dict[str, tuple[float, float]] = {}
        self._alone = 0.0  # when to ask the database again
        self._taken: dict[str, float] = {}  # of the shared buckets, and not used yet

    async def wait(self, name: str, cost: float = 1.0) -> float:
        """Takes `cost` from a bucket; returns 0, or the seconds to wait if it has less."""
        if self._take is not None and self._clock() >= self._alone:
            try:
                if self._taken.get(name, 0.0) < cost:
                    more = await asyncio.to_thread(self._take, name, max(cost, SHARE), self._rate, self._burst)
                    self._taken[name] = self._taken.get(name, 0.0) + more
            except KernelError:
                self._alone = self._clock() + ALONE
                return self._own(name, cost)
            left = self._taken[name] - cost
            if left < 0:
                return -left / self._rate
            self._taken[name] = left
            return 0.0
        return self._own(name, cost)

    def _own(self, name: str, cost: float) -> float:
        now = self._clock()
        left, before = self._held.get(name, (self._burst, now))
        left = min(self._burst, left + (now - before) * self._rate)
        taken = left >= cost
        self._held[name] = (left - cost if taken else left, now)
        return 0.0 if taken else (cost - left) / self._rate


class OpenRequest(Struct, eq=False):
    """A request that is being answered by `task`; `is_ended` says that its token has ended."""

    token: str
    task: asyncio.Task[Any]
    is_ended: bool = False


class OpenRequests:
    """The requests that are being answered: each is cancelled soon after its token was revoked or has expired."""

    def __init__(self, tokens: TokenStore) -> None:
        self._tokens, self._open = tokens, set[OpenRequest]()

    @contextmanager
    def add(self, token: str) -> Iterator[OpenRequest]:
        """The request that the current task answers, until the end of the block. `token` is the token's id."""
        request = OpenRequest(token, cast("asyncio.Task[Any]", asyncio.current_task()))
        self._open.add(request)
        try:
            yield request
        finally:
            self._open.discard(request)

    async def watch(self) -> None:
        """Checks the tokens of all open requests at regular intervals, until it is cancelled. If the tokens cannot be
        read, all requests end."""
        while True:
            await asyncio.sleep(CHECKED)
            if not self._open:
                continue
            try:
                valid = self._tokens.valid()
            except Exception:
                logging.getLogger("navigator").exception("the tokens cannot be read")
                valid = frozenset()
            for request in self._open:
                if request.token not in valid and not request.is_ended:
                    request.is_ended = True
                    request.task.cancel()


class Access:
    """ASGI middleware. `places` are the hosts, with ports, that a client may name; `caller` looks up a token, and
    `requests` ends the requests of a token that has ended. `open_paths` and what is below `open_folder` need no
    token."""

    def __init__(
        self,
        app: ASGIApp,
        places: Collection[str],
        caller: Callable[[str], Caller | None],
        requests: OpenRequests,
        buckets: Buckets,
        open_paths: Collection[str] = OPEN,
        open_folder: str | None = None,
    ) -> None:
        self.app, self._places, self._caller, self._buckets = app, frozenset(places), caller, buckets
        self._requests = requests
        self._open_paths, self._open_folder = frozenset(open_paths), open_folder
        self._origins = frozenset(f"{scheme}://{place}" for place in self._places for scheme in ("http", "https"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = await self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        caller: Caller | None = scope.get("caller")
        if caller is None:
            await self.app(scope, _limited(receive), send)
            return
        # If the token ends before the answer, nothing more of the answer is sent: it is 401 if it has not begun, and a
        # stream ends with its last event; any other answer is cut
        sent = ""  # the type of the last message, "whole" after the end

        async def noted(message: Message) -> None:
            nonlocal sent
            is_end = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)
            sent = "whole" if is_end else message["type"]

        with self._requests.add(caller.id) as request:
            try:
                await self.app(scope, _limited(receive), noted)
                return
            except asyncio.CancelledError:
                if not request.is_ended or request.task.uncancel() > 0:
                    raise  # the server cancelled it
        if not sent:
            await _refused(ENDED)(scope, receive, send)
        elif sent != "whole" and LAST_EVENT in scope:
            await send({"type": "http.response.body", "body": scope[LAST_EVENT](), "more_body": False})

    async def _refusal(self, scope: Scope) -> ProblemResponse | None:
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
        length = held.get(b"content-length", "0")
        is_number = length.isascii() and length.isdigit() and len(length) < 20
        if not is_number or int(length) > BODY:
            return ProblemResponse(413, "too_large", f"a body has at most {BODY} bytes")
        if scope["path"] in self._open_paths or (self._open_folder and scope["path"].startswith(self._open_folder)):
            return None
        scheme, _, token = held.get(b"authorization", "").partition(" ")
        caller = self._caller(token.strip()) if scheme.lower() == "bearer" else None
        if caller is None:
            return _refused("a token is needed")
        if (seconds := await self._buckets.wait(caller.id, 1.0 if scope["method"] in WRITES else READ)) > 0:
            after = {"Retry-After": str(int(seconds) + 1)}
            return ProblemResponse(429, "rate", "too many requests with this token", headers=after)
        scope["caller"] = caller
        return None


def _refused(why: str) -> ProblemResponse:
    hint = "navigator serve --new-token; Authorization: Bearer …"
    return ProblemResponse(401, "token", why, hint=hint, headers={"WWW-Authenticate": "Bearer"})


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
