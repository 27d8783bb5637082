"""One connection to one MCP server, opened and closed by one task and shared by all callers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias, cast

from mcp_types import (
    ElicitRequestFormParams,
    ElicitResult,
    Implementation,
    ResourceUpdatedNotification,
    Tool,
    ToolListChangedNotification,
)
from msgspec import Struct, field

from mcp import Client
from navigator_kernel.adapters.mcp_client.elicitation import content_of, declined, question_key
from navigator_kernel.adapters.mcp_client.stdio import ServerState
from navigator_kernel.adapters.mcp_client.thread import thread
from navigator_kernel.errors import ConnectionFailed, KernelError, PermissionDenied

logging.getLogger("mcp").addHandler(logging.NullHandler())  # our errors contain its messages
IDLE = 300.0  # seconds without a call after which a connection is closed
ANSWER = 2.0  # seconds in which a server must answer a ping after a call is cancelled
ENTRIES, PAGES = 20_000, 200  # limits of one list
Transport: TypeAlias = AbstractAsyncContextManager[tuple[Any, Any]]


class PendingCall(Struct, eq=False):
    """A call under way: the person's earlier answers by question (`answers`) or in order (`said`), and the question
    that the server asked meanwhile (`asked`)."""

    answers: Mapping[str, Any]
    said: list[str] = field(default_factory=list)
    asked: tuple[str, Mapping[str, Any]] | None = None


class Connection:
    """`opened` makes the transport; connecting may take `limit` seconds. Everything here runs on one event loop."""

    def __init__(self, *, name: str, opened: Callable[[ServerState], Transport], limit: float) -> None:
        self.name, self.opened, self.limit = name, opened, limit
        self.state, self.used = ServerState(), time.monotonic()
        self.changed: dict[str, asyncio.Event] = {}  # by the watched URI
        self.calls: list[PendingCall] = []
        self._stop = asyncio.Event()
        self._tools: tuple[Tool, ...] | None = None
        loop = asyncio.get_running_loop()
        self._client: asyncio.Future[Client] = loop.create_future()
        loop.call_later(self.limit, self._too_late)
        self._task = asyncio.create_task(self._own(), name=f"mcp {self.name}")
        thread().open.add(self)
        self._task.add_done_callback(lambda _: thread().open.discard(self))

    @property
    def alive(self) -> bool:
        return not self._task.done() and not self.state.gone.is_set() and not self._stop.is_set()

    async def client(self) -> Client:
        """The connected client; ConnectionFailed if connecting fails or takes too long."""
        return await asyncio.shield(self._client)

    def lost(self, why: str = "") -> ConnectionFailed | PermissionDenied:
        """The error of a lost connection, with the known reason and the last line that the server wrote."""
        reason, words = self.state.why or why or "its connection ended", self.state.last_words()
        message = f"the MCP server {self.name!r}: {reason}{f'; it said: {words}' if words else ''}"
        if self.state.refused:
            return PermissionDenied(f"PermissionDenied: {message}", hint="check its headers: navigator mcp list")
        return ConnectionFailed(message, hint="check its command, its address and its log")

    def leave(self) -> None:
        self._stop.set()
        if not self._client.done():
            self._task.cancel()

    async def left(self) -> None:
        """Ends the connection and waits until its process is gone."""
        self.leave()
        await asyncio.wait([self._task])

    async def tools(self, client: Client) -> tuple[Tool, ...]:
        """The tools of the server; they are listed again only after the server reports a change."""
        if self._tools is None:
            self._tools = tuple(await every(client.list_tools, "tools"))
        return self._tools

    @asynccontextmanager
    async def calling(self, answers: Mapping[str, Any], said: Sequence[str]) -> AsyncIterator[PendingCall]:
        call = PendingCall(answers, list(said))
        self.calls.append(call)
        try:
            yield call
        finally:
            self.calls.remove(call)
            self.used = time.monotonic()

    async def still_there(self, client: Client) -> None:
        """Ends a connection whose server does not even answer a ping."""
        try:
            async with asyncio.timeout(ANSWER):
                await client.send_ping()
        except Exception:  # noqa: BLE001 - any error counts as no answer
            self.state.why = self.state.why or "it does not answer any more"
            self.leave()

    def _too_late(self) -> None:
        if not self._client.done():
            self.state.why = self.state.why or f"it did not answer within {self.limit:g} seconds"
            self.leave()

    async def _own(self) -> None:
        try:
            info = Implementation(name="navigator-kernel", version="0")
            async with Client(
                self.opened(self.state),
                mode="legacy",
                cache=None,
                client_info=info,
                elicitation_callback=cast("Any", self._elicited),
                message_handler=self._heard,
            ) as client:
                self._client.set_result(client)
                await self._over()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - passed on to the waiting callers
            self._fail(error)
        finally:
            self.state.gone.set()
            self._fail(ConnectionError("closed"))
            if not self._client.cancelled():
                self._client.exception()  # marks the error as retrieved, in case no caller waited

    async def _over(self) -> None:
        """Waits until `leave` is called, the server goes away, or nobody has used the connection for `IDLE` seconds."""
        ends = [asyncio.ensure_future(event.wait()) for event in (self._stop, self.state.gone)]
        try:
            while not any(end.done() for end in ends):
                await asyncio.wait(ends, timeout=IDLE, return_when=asyncio.FIRST_COMPLETED)
                if not self.calls and not self.changed and time.monotonic() - self.used >= IDLE:
                    return
        finally:
            for end in ends:
                end.cancel()

    def _fail(self, error: BaseException) -> None:
        if self._client.done():
            return
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        known = isinstance(error, KernelError)
        self._client.set_exception(error if known else self.lost(f"{type(error).__name__}: {error}".strip(": ")))

    async def _heard(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._tools = None
        elif isinstance(message, ResourceUpdatedNotification) and str(message.params.uri) in self.changed:
            self.changed[str(message.params.uri)].set()

    async def _elicited(self, _context: Any, params: Any) -> ElicitResult:
        """The person's earlier answer to the same question; without one, the question goes to the person."""
        if not isinstance(params, ElicitRequestFormParams):
            return ElicitResult(action="decline")
        schema = dict(params.requested_schema)
        key = question_key(params.message, schema)
        for call in self.calls:
            if key in call.answers:
                return ElicitResult(action="accept", content=dict(call.answers[key]))
        if len(self.calls) != 1:  # with several calls, it is not known which one the question belongs to
            return ElicitResult(action="cancel")
        (call,) = self.calls
        if call.said:
            words = call.said.pop(0)
            if declined(words) and not any(kind == "boolean" for kind in _kinds(schema)):
                return ElicitResult(action="decline")
            if (content := content_of(schema, words)) is not None:
                return ElicitResult(action="accept", content=content)
        call.asked = (params.message, schema)
        return ElicitResult(action="cancel")


def _kinds(schema: Mapping[str, Any]) -> Iterator[Any]:
    fields = schema.get("properties")
    yield from (about.get("type") for about in fields.values() if isinstance(about, Mapping)) if fields else ()


async def every(listed: Callable[..., Any], kind: str) -> list[Any]:
    """The entries of all pages of a list, up to `PAGES` pages and `ENTRIES` entries."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await listed(cursor=cursor)
        found += getattr(page, kind)
        cursor = page.next_cursor
        if not cursor or len(found) >= ENTRIES:
            break
    return found[:ENTRIES]
