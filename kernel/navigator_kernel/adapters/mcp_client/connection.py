"""One connection to one MCP server: its transports, its questions to the person, and its operations.

It is opened and closed by one task, and shared by all callers.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import re
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequestFormParams,
    ElicitResult,
    EmptyResult,
    Implementation,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    Request,
    RequestParams,
    ResourceUpdatedNotification,
    Result,
    SubscribeRequest,
    SubscribeRequestParams,
    Tool,
    ToolListChangedNotification,
    jsonrpc_message_adapter,
)
from mcp_types.methods import validate_server_result
from msgspec import Struct, field
from pydantic import ValidationError

from mcp import Client, MCPError
from navigator_kernel.adapters.files.scratch import make_scratch, remove_scratch_aside
from navigator_kernel.adapters.processes.process import MARK, kill_tree
from navigator_kernel.errors import (
    ConnectionFailed,
    FetchFailed,
    InputNeeded,
    KernelError,
    PermissionDenied,
    ResourceNotFound,
)
from navigator_kernel.language.answers import is_no, is_yes
from navigator_kernel.text import clean, lazy_compile, shorten, warn
from navigator_kernel.values.mcp import McpServer, OfferedTool

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
    """`opened` makes the transport; connecting may take `limit` seconds. It is in `running` until its
    process has ended. Everything here runs on one event loop."""

    def __init__(
        self, *, name: str, opened: Callable[[ServerState], Transport], limit: float, running: set[Connection]
    ) -> None:
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
        running.add(self)
        self._task.add_done_callback(lambda _: running.discard(self))

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
            self._tools = tuple(await _listed(client.list_tools, "tools"))
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
                _usable(self.opened(self.state), self.name),
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
            kinds = [about.get("type") for about in _fields(schema).values() if isinstance(about, Mapping)]
            if is_no(words) and "boolean" not in kinds:
                return ElicitResult(action="decline")
            if (content := content_of(schema, words)) is not None:
                return ElicitResult(action="accept", content=content)
        call.asked = (params.message, schema)
        return ElicitResult(action="cancel")


async def every(listed: Callable[..., Any], kind: str) -> list[Any]:
    """The entries of all pages of a list, up to `PAGES` pages and `ENTRIES` entries."""
    entries: list[Any] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await listed(cursor=cursor)
        entries += getattr(page, kind)
        cursor = page.next_cursor
        if not cursor or len(entries) >= ENTRIES:
            break
    return entries[:ENTRIES]


# One entry of a list, or one block of an answer, that is not as the protocol has it does not cost the other ones.

VERSION = "2025-11-25"  # of the protocol whose forms count; the earlier ones have no others
_LISTS = {
    "tools": "tools/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
    "prompts": "prompts/list",
    "content": "tools/call",
}


@asynccontextmanager
async def _usable(transport: Transport, server: str) -> AsyncIterator[tuple[Any, Any]]:
    async with transport as (incoming, outgoing):
        yield _UsableStream(incoming, server), outgoing


class _UsableStream:
    """The messages of a server, with what can be used of its answers."""

    def __init__(self, stream: Any, server: str) -> None:
        self._stream, self._server = stream, server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> _UsableStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> Any:
        return await self._stream.__aexit__(*raised)

    def __aiter__(self) -> _UsableStream:
        return self

    async def __anext__(self) -> Any:
        item = await anext(self._stream)
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
            result = item.message.result
            for key in _LISTS.keys() & result.keys():
                if isinstance(result[key], list) and not _is_sound(key, result[key]):
                    forms = [
                        next((form for form in _forms(key, one) if _is_sound(key, [form])), None) for one in result[key]
                    ]
                    if lost := [one for one, form in zip(result[key], forms, strict=True) if form is None]:
                        why = f"{len(lost)} {key} left out, the first one that is not as the protocol has it"
                        warn("the MCP server %r: %s: %.200r", self._server, why, lost[0])
                    result[key] = [form for form in forms if form is not None]
        return item


def _forms(key: str, entry: Any) -> Iterator[Any]:
    """What can be made of an entry, the best first: a block of an answer is text at least; the arguments of a tool are
    always an object; a tool with more that is wrong keeps its name, its description and its arguments."""
    yield entry
    if key == "content":
        yield {"type": "text", "text": json.dumps(entry, ensure_ascii=False)}
    elif key == "tools" and isinstance(entry, Mapping):
        schema = entry.get("inputSchema")
        typed = {**(schema if isinstance(schema, Mapping) else {}), "type": "object"}
        yield {**entry, "inputSchema": typed}
        yield {name: entry[name] for name in ("name", "description") if name in entry} | {"inputSchema": typed}


def _is_sound(key: str, entries: Sequence[Any]) -> bool:
    try:
        validate_server_result(_LISTS[key], VERSION, {key: entries})
    except ValidationError:
        return False
    return True


# A server's questions go to the person, and the answer becomes the content that the server asked for.

_APART = lazy_compile(r"(?<!\s)(?:\s*+[,，;；、]\s*+|(?=[^\S\n]*\n)\s++)")
_PAIR = lazy_compile(  # a value ends before a separator, and before the next name
    r"(?<![\w.-])([\w.-]++)\s*+[=:：]\s*+((?:[^,，;；、\s]++|[^\S\n]++(?!$|[,，;；、\n]|[\w.-]++\s*+[=:：]))+)"
)


def question_key(message: str, schema: Mapping[str, Any]) -> str:
    """A key that is the same for the same question."""
    return hashlib.sha256(json.dumps([message, schema], sort_keys=True).encode()).hexdigest()[:16]


def input_needed(server: str, message: str, schema: Mapping[str, Any]) -> InputNeeded:
    """The question of a server, with the fields of the answer."""
    fields = _fields(schema)
    required = _required(schema)
    optional = [name for name in fields if name not in required]
    question = f"{server}: {shorten(clean(message), 1_000)}"
    facts = {"required": required or optional[:1], "optional": optional, "fields": dict(fields)}
    hint = f"answer {', '.join(required) or 'yes or no'}"
    return InputNeeded(question, hint=hint, question=question, key=question_key(message, schema), **facts)


def content_of(schema: Mapping[str, Any], words: str) -> dict[str, Any] | None:
    """Fits `words` to the fields of `schema`: JSON, `name=value` pairs, values in the order of the required fields, or
    one text; None if a required field is missing."""
    fields, required = _fields(schema), _required(schema)
    names = required or list(fields)[:1]
    if words.strip().startswith("{"):
        try:
            values = json.loads(words)
        except ValueError:
            values = None
        if isinstance(values, dict):
            return values if all(name in values for name in required) else None
    pairs = {name: value.strip() for name, value in _PAIR.findall(words) if name in fields}
    if not pairs and len(names) == 1:
        pairs = {names[0]: words.strip()}
    elif not pairs and names:
        pairs = dict(zip(names, _APART.split(words.strip()), strict=False))
    content = {name: fitted(value, fields.get(name)) for name, value in pairs.items()}
    return content if all(content.get(name) not in (None, "") for name in required) else None


def fitted(value: str, about: Any) -> Any:
    """Converts a text to the type in `about`, a part of a JSON Schema; unchanged without a type that fits."""
    kind = about.get("type") if isinstance(about, Mapping) else None
    if kind == "boolean":
        word = value.strip().casefold()
        return (
            True
            if word in {"true", "1"} or is_yes(value)
            else False
            if word in {"false", "0"} or is_no(value)
            else value
        )
    if kind in ("integer", "number", "array", "object", "null"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def arguments_of(given: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a tool, with the texts converted to the types in its schema."""
    fields = _fields(schema)
    return {name: fitted(value, fields.get(name)) if isinstance(value, str) else value for name, value in given.items()}


def _fields(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    fields = schema.get("properties")
    return fields if isinstance(fields, Mapping) else {}


def _required(schema: Mapping[str, Any]) -> list[str]:
    required = schema.get("required")
    return [name for name in _fields(schema) if isinstance(required, list) and name in required]


# The operations of an MCP server that callers may use, and its failures by name (AGT-4, AGT-9).

NAMED = 20  # available names that an error lists
# A link that pydantic adds to each problem, for programmers
_LINKS = lazy_compile(r"\n {0,8}For further information visit https://errors\.pydantic\.dev/\S*")
_DENIED = lazy_compile(
    r"permission|access denied|not allowed|forbidden|unauthori[sz]ed|\b(?:EACCES|EPERM|EROFS)\b|\b40[13]\b",
    re.IGNORECASE,
)
_SHAPES = {
    "resources": ("uri", "name", "description", "mime_type", "size"),
    "templates": ("uri_template", "name", "description", "mime_type"),
    "prompts": ("name", "description", "arguments"),
}


async def perform(
    connection: Connection, client: Client, operation: str, params: Mapping[str, Any], approve: Any, progress: Any
) -> dict[str, Any]:
    """Performs one operation; before it calls a tool, `approve` raises if nobody agreed to the tool as it is now."""
    try:
        match operation:
            case "list":
                resources = await _listed(client.list_resources, "resources")
                templates = await _listed(client.list_resource_templates, "resource_templates")
                shown = {"resources": _plain(resources, "resources")}
                return shown | ({"templates": _plain(templates, "templates")} if templates else {})
            case "tools":
                return {"tools": [tool.to_dict() for tool in offered(connection.name, await connection.tools(client))]}
            case "prompts":
                return {"prompts": _plain(await _listed(client.list_prompts, "prompts"), "prompts")}
            case "read":
                read = await client.read_resource(params["uri"])
                return {"uri": params["uri"], "contents": [_dumped(item) for item in read.contents]}
            case "skills":

                def listed(cursor: str | None) -> Any:
                    return client.session.send_request(_ListSkills(params=_Page(cursor=cursor)), _Skills)

                return {"skills": await every(listed, "skills")}
            case "prompt":
                words = {name: str(value) for name, value in params.get("args", {}).items()}
                prompt = await client.get_prompt(params["prompt"], words)
                return {"prompt": params["prompt"], "messages": [_dumped(message) for message in prompt.messages]}
            case _:
                return await _called(connection, client, params, approve, progress)
    except MCPError as error:
        raise await _explained(connection, client, operation, params, error) from None
    except ValidationError as error:
        what = f"{error.error_count()} things are not as the protocol has them"
        problem = error.errors(include_url=False, include_input=False)[0]
        hint = f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
        raise FetchFailed(f"the MCP server {connection.name!r} answered {operation!r}: {what}", hint=hint) from None


class _Page(RequestParams):
    """The parameters of `skills/list` of the extension `io.modelcontextprotocol/skills`."""

    cursor: str | None = None


class _ListSkills(Request[_Page, Literal["skills/list"]]):
    method: Literal["skills/list"] = "skills/list"
    params: _Page


class _Skills(Result):
    skills: list[dict[str, Any]]
    next_cursor: str | None = None


async def subscribe(connection: Connection, client: Client, uri: str) -> None:
    """Asks the server to report when the resource changes, as servers of the protocol with a handshake do."""
    request = SubscribeRequest(params=SubscribeRequestParams(uri=uri))
    try:
        await client.session.send_request(request, EmptyResult)
    except MCPError as error:
        raise await _explained(connection, client, "subscribe", {"uri": uri}, error) from None


def offered(server: str, tools: Sequence[Any]) -> list[OfferedTool]:
    """The tools as they are shown, approved and called."""
    return [
        OfferedTool(
            server=server,
            name=tool.name,
            description=tool.description or "",
            schema=dict(tool.input_schema),
            more={
                "title": tool.title,
                "output": tool.output_schema,
                "annotations": tool.annotations and _dumped(tool.annotations),
            },
        )
        for tool in tools
    ]


async def _called(
    connection: Connection, client: Client, params: Mapping[str, Any], approve: Any, progress: Any
) -> dict[str, Any]:
    name, tools = params["tool"], offered(connection.name, await connection.tools(client))
    chosen = next((tool for tool in tools if tool.name == name), None)
    if chosen is None:
        raise _missing("tool", name, connection.name, [tool.name for tool in tools])
    approve(name, tools)
    arguments = arguments_of(params.get("args", {}), chosen.schema)
    request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments))
    async with connection.calling(params.get("answers", {}), params.get("said", ())) as call:
        # Not `client.call_tool`, which validates results against the server's schema
        answer = await client.session.send_request(request, CallToolResult, progress_callback=progress)
    if call.asked is not None:
        raise input_needed(connection.name, *call.asked)
    content = [_dumped(item) for item in answer.content]
    if answer.is_error:
        content = [{**item, "text": _LINKS.sub("", item["text"])} if "text" in item else item for item in content]
    answered = {"tool": name, "content": content, "is_error": bool(answer.is_error)}
    if answer.structured_content is not None:
        answered["structured"] = answer.structured_content
    text = " ".join(str(item.get("text", "")) for item in content)
    if answer.is_error and _DENIED.search(text[:2_000]):
        raise PermissionDenied(_said(connection.name, text), hint="the server itself refused it", **answered)
    return answered


async def _explained(
    connection: Connection, client: Client, operation: str, params: Mapping[str, Any], error: MCPError
) -> KernelError:
    """AGT-9: the failure by its name; for a name that was not found, with the names that exist."""
    reason = str(error)
    if connection.state.gone.is_set() or (error.code == CONNECTION_CLOSED and reason.lower() == "connection closed"):
        connection.leave()
        return connection.lost()
    if _DENIED.search(reason):
        return PermissionDenied(_said(connection.name, reason), hint="the server itself refused it")
    if operation == "read":
        there = await _listed(client.list_resources, "resources")
        names = [str(item.uri) for item in there]
        if params["uri"] not in names:
            return _missing("resource", params["uri"], connection.name, names, reason)
    if operation == "prompt":
        prompts = [item.name for item in await _listed(client.list_prompts, "prompts")]
        if params["prompt"] not in prompts:
            return _missing("prompt", params["prompt"], connection.name, prompts, reason)
    return FetchFailed(
        f"the MCP server {connection.name!r} refused {operation!r}: {clean(reason)}",
        hint=f"navigator mcp test {connection.name}",
    )


def _missing(kind: str, name: str, server: str, names: Sequence[str], reason: str = "") -> ResourceNotFound:
    available = list(dict.fromkeys((*get_close_matches(name, names, 5, 0.5), *names)))[:NAMED]
    hint = f"nearest: {clean(available[0], lines=False)}" if available else "it has none"
    more = f" ({shorten(clean(reason, lines=False), 200)})" if reason else ""
    message = f"ResourceNotFound: {server!r} has no {kind} {clean(name, lines=False)!r}{more}"
    return ResourceNotFound(message, hint=hint, available=available)


async def _listed(listed: Callable[..., Any], kind: str) -> list[Any]:
    """All entries of one kind; empty if the server does not have this kind at all."""
    try:
        return await every(listed, kind)
    except MCPError as error:
        if error.code == METHOD_NOT_FOUND:
            return []
        raise


def _plain(items: Sequence[Any], shape: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in _dumped(item).items() if name in _SHAPES[shape]} for item in items]


def _dumped(item: Any) -> dict[str, Any]:
    body: dict[str, Any] = item.model_dump(mode="json", exclude_none=True)
    body.pop("meta", None)
    return body


def _said(server: str, text: str) -> str:
    return f"PermissionDenied: {server!r} says: {shorten(clean(text, lines=False), 500)}"


# A server's process, as a transport of the SDK. The SDK's own transport copies a long line with every piece of it,
# keeps no log, and leaves processes that left the process group. Here a line has a limit, the end of stderr is kept
# in memory, and no process of the tree outlives the connection.

LINE = 128 * 1024 * 1024  # bytes of one message; a longer one ends the connection
LOG = 64 * 1024  # bytes of stderr that are kept
UNASKED = 10_000  # requests and notifications between two answers
UNREADABLE = 100  # lines that are not messages
LOOK = 0.5  # seconds between two checks of a server's resource use
PATIENCE = 1.0  # seconds in which a server can exit by itself, and again after SIGTERM


class StdioParams(NamedTuple):
    """How a server is started: in `cwd`, its own folder, with a scratch folder made for this process; consent to that
    was checked before. `exceeded` returns the limit that the process with the given id exceeds, or an empty string."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    scratch: Path
    exceeded: Callable[[int], str]


class ServerState(Struct):
    """Facts about a server besides its answers: the end of its stderr, why its connection ended, and whether it refused
    access."""

    why: str = ""
    refused: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    _log: bytearray = field(default_factory=bytearray)

    def hear(self, chunk: bytes) -> None:
        self._log += chunk
        del self._log[:-LOG]

    def last_words(self) -> str:
        """The last line of the log that is not blank."""
        written = (clean(line).strip() for line in reversed(self._log.decode("utf-8", "replace").splitlines()))
        return shorten(next((line for line in written if line), ""), 300)


@asynccontextmanager
async def process_of(start: StdioParams, state: ServerState) -> AsyncIterator[tuple[Any, Any]]:
    """The two streams for the SDK's client; OSError if the process cannot be started."""
    mark = secrets.token_hex(16)
    lock = make_scratch(start.scratch)
    try:
        process: Any = await asyncio.create_subprocess_exec(
            *start.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=start.cwd,
            env={**start.env, MARK: mark},
            limit=LINE,
            start_new_session=True,
        )
        try:
            heard, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            outgoing, sent = anyio.create_memory_object_stream[SessionMessage](0)
            async with anyio.create_task_group() as group:
                group.start_soon(_hear, process.stdout, heard, state)
                group.start_soon(_say, process.stdin, sent, state)
                group.start_soon(_drain, process.stderr, state.hear)
                group.start_soon(_watch, start, process.pid, mark, state)
                try:
                    yield incoming, outgoing
                finally:
                    group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await _ended(process, mark)
    finally:
        await remove_scratch_aside(start.scratch, lock)


async def _hear(lines: asyncio.StreamReader, heard: Any, state: ServerState) -> None:
    """Passes on each line as a message, and sets `state.gone` when there will be no more."""
    unasked = unreadable = 0
    try:
        async with heard:
            while line := await lines.readline():
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except (ValueError, RecursionError):
                    unreadable += 1
                    if unreadable > UNREADABLE:
                        state.why = f"{unreadable} lines from it are not messages"
                        return
                    await asyncio.sleep(0)
                    continue
                unasked = unasked + 1 if isinstance(message, JSONRPCNotification | JSONRPCRequest) else 0
                if unasked > UNASKED:
                    state.why = f"it sent {unasked} messages that nobody asked for"
                    return
                await heard.send(SessionMessage(message))
    except ValueError:
        state.why = f"it sent a message of more than {LINE // 1024**2} MiB"
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        return  # the session has ended
    finally:
        state.gone.set()


async def _say(stdin: asyncio.StreamWriter, messages: Any, state: ServerState) -> None:
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with messages:
            async for message in messages:
                line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(line.encode() + b"\n")
                await stdin.drain()
        return
    state.gone.set()


async def _watch(start: StdioParams, pid: int, mark: str, state: ServerState) -> None:
    """Kills a server that exceeds a limit, without asking it to end first. The checks take at most a twentieth of the
    time, however many files there are."""
    limit = ""
    while not limit:
        began = time.monotonic()
        limit = await asyncio.to_thread(start.exceeded, pid)
        await asyncio.sleep(0 if limit else max(LOOK, 19 * (time.monotonic() - began)))
    state.why = f"it went over its limit of {limit}; its files are in {str(start.cwd)!r}"
    await asyncio.to_thread(kill_tree, pid, mark)


async def _drain(stream: asyncio.StreamReader, read: Any) -> None:
    while chunk := await stream.read(65_536):
        read(chunk)


async def _ended(process: Any, mark: str) -> None:
    """Ends the process with its children: closes its input, then sends SIGTERM, then kills it."""
    process.stdin.close()
    rest = asyncio.ensure_future(_drain(process.stdout, lambda _chunk: None))  # a full pipe would block its exit
    try:
        for ask in (None, signal.SIGTERM):
            if ask is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, ask)
            if await _exited(process):
                break
        kill_tree(process.pid, mark)
        await _exited(process)
    finally:
        rest.cancel()
        with suppress(asyncio.CancelledError, OSError):
            await rest
        transport = getattr(process, "_transport", None)  # another process that holds a pipe keeps it open
        if transport is not None:
            transport.close()


async def _exited(process: Any) -> bool:
    """Whether the process has exited within PATIENCE; not by `wait`, which also waits for the pipes."""
    end = time.monotonic() + PATIENCE
    while True:
        if process.returncode is not None or time.monotonic() >= end:
            return process.returncode is not None
        await asyncio.sleep(0.01)


WRITE = 30.0  # seconds to connect and to send
READ = 300.0  # seconds between two chunks of an open stream
REFUSED = (401, 403)


@asynccontextmanager
async def address_of(server: McpServer, state: ServerState) -> AsyncIterator[tuple[Any, Any]]:
    """The two streams of streamable HTTP for the SDK's client, with the person's headers. The proxies and certificates
    of the machine apply."""

    async def heard(response: httpx2.Response) -> None:
        if response.status_code >= 400 and response.request.method == "POST":
            state.why = f"it answered {response.status_code} {response.reason_phrase}".strip()
            state.refused = response.status_code in REFUSED

    timeout = httpx2.Timeout(WRITE, read=READ)
    hooks = {"response": [heard]}
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout, event_hooks=hooks) as http,
        streamable_http_client(server.url, http_client=http) as streams,
    ):
        yield streams
