"""Calls a model over its provider's own protocol, with a time limit for every wait."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextvars import ContextVar
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from navigator_kernel.adapters.files.tree import read_inside
from navigator_kernel.adapters.models.calls import Spoken, meant, unpacked
from navigator_kernel.adapters.models.faults import UNKNOWN, failed_kind, own_words, repair, reported, spent_on, taken
from navigator_kernel.adapters.models.providers import (
    EXTRA,
    Key,
    find_key,
    known_context,
    seen_by,
    served,
    spelled_out,
    wire,
)
from navigator_kernel.adapters.secrets.redaction import REDACTED
from navigator_kernel.config.settings import Models
from navigator_kernel.errors import KernelError, ModelFailed, NotLoadable, TimedOut, UsageProblem
from navigator_kernel.language.model_failure import failure_text
from navigator_kernel.text import clean, shorten
from navigator_kernel.values.chat import PDF, Asked, ChatMessage, Completion, Finish, ShownFile, Spent, ToolCall, Tried

LONGEST_WAIT = 60.0  # seconds; if Retry-After is longer, the request fails and the person decides
FIRST_WAIT = 0.5  # seconds; doubled with every attempt
SAID = 300  # characters of a provider's own message
REFUSAL = 2_000  # characters of the words in which a model refuses
# Failures that another attempt may fix; all others are final
PASSING = frozenset({"rate_limited", "unavailable", "server_error", "unreachable", "cut_off", "no_address"})
_FINISHES: dict[str | None, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_call": "calls",
    "content_filter": "filtered",
}

Told = Callable[[str], None]


# If two threads import modules with circular imports at once, one of them can get an incomplete module.
_IMPORTING = threading.Lock()

_content_type: ContextVar[str] = ContextVar("the content type of the last response", default="")


class _Client(NamedTuple):
    """The open HTTP client and model, and the event loop that they belong to."""

    loop: asyncio.AbstractEventLoop
    http: Any
    model: Any


@cache
def _trust() -> Any:
    """The SSL context with the trusted certificates, made once per process because it takes 20 ms."""
    import httpx2

    return httpx2.create_ssl_context()


class WireModel:
    """Implements `model_ports.ChatModel`. `name` is `provider:model` or an alias."""

    def __init__(
        self,
        name: str,
        models: Models,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        key: Key | None = None,
    ) -> None:
        self.provider, self.model = spelled_out(name, models)
        self.models, self._sleep, self._key = models, sleep, key
        self._open: _Client | None = None
        self._asking = 0  # requests under way

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"

    @property
    def context(self) -> int:
        """From the settings, else from the table of models that comes with the client's package."""
        server = served(self.provider, self.models)
        return server.context if server is not None else known_context(self.provider, self.model)

    async def complete(self, asked: Asked, told: Told | None = None) -> Completion:
        """See the port. A request is repeated if that may help and none of its answer was passed on yet.

        The data of a failure holds `begun`, the text that was passed on, and `usage`, what the requests used.
        """
        held = _Request(told)
        self._asking += 1
        try:
            self._opened()  # its imports take a second in a new process, which is not the server's time
            async with asyncio.timeout(asked.limit):
                return await self._until_answered(asked, held, asyncio.get_running_loop().time() + asked.limit)
        except TimeoutError:
            held.lost += UNKNOWN
            raise held.ended(self._too_slow(asked.limit, "to_its_end")) from None
        except KernelError as error:
            raise held.ended(error)  # noqa: B904 - the same error
        finally:
            self._asking -= 1

    async def load(self) -> None:
        """Imports what a request needs, but sends no request."""
        self._opened()
        await self.close()

    async def close(self) -> None:
        """Closes its connections, unless another turn is asking."""
        if self._asking:
            return
        held, self._open = self._open, None
        if held is not None and held.loop is asyncio.get_running_loop():
            await held.http.aclose()

    async def _until_answered(self, asked: Asked, held: _Request, end: float) -> Completion:
        for attempt in range(self.models.retries + 1):
            try:
                done = await self._once(asked, held)
                tried = (Tried(model=self.name, spent=held.lost),) if held.lost.requests else ()
                return replace(done, tried=tried)
            except ModelFailed as error:
                wanted = error.data.get("retry_after") or 0.0
                wait = wanted or FIRST_WAIT * 2**attempt
                left = min(end - asyncio.get_running_loop().time(), LONGEST_WAIT)
                if held.begun or error.data["kind"] not in PASSING or attempt == self.models.retries or wait >= left:
                    raise
                if wanted and asked.waits is not None:
                    asked.waits(self.name, wanted)
                await self._sleep(wait)
        raise AssertionError("the last try returns or raises")

    async def _once(self, asked: Asked, held: _Request) -> Completion:
        from pydantic_ai import messages as parts
        from pydantic_ai.direct import model_request

        opened, held.stream = self._opened(), None
        _content_type.set("")
        held.spoken = Spoken(asked.tools, held.tell)
        try:
            settings, parameters = _settings(asked, opened.model), _parameters(asked)
            messages = list(_messages(asked.messages, seen_by(self.provider, self.models)))
            given: Any = {"model_settings": settings, "model_request_parameters": parameters}
            if held.told is None:
                response = await model_request(opened.model, messages, **given)
            else:
                response = await self._streamed(opened.model, messages, given, held)
        except Exception as error:  # noqa: BLE001 - forty libraries can raise anything, and their text may hold the key
            held.spoken.cut()
            failure = self._failure(error, held)
            held.lost += Spent() if failure.data["kind"] == "web_page" else taken(error, held.stream)
            raise failure from None
        if refusal := (response.provider_details or {}).get("refusal"):
            held.lost += spent_on(response)
            raise self._failed("refused", said=shorten(clean(str(refusal), lines=False), REFUSAL))
        said_why = (response.provider_details or {}).get("finish_reason") or response.finish_reason == "content_filter"
        if held.told is not None and not said_why:
            held.lost += replace(spent_on(response), unknown=1)
            raise self._failed(self._not_an_answer("cut_off"))
        if response.finish_reason in {"content_filter", "error"}:
            held.lost += spent_on(response)
            raise self._failed("filtered")
        if held.told is None:
            held.spoken("".join(part.content for part in response.parts if isinstance(part, parts.TextPart)))
        is_cut = response.finish_reason == "length"
        text, spoken = held.spoken.end(is_cut=is_cut)
        spoken = spoken if asked.calls else ()
        text = text.encode("utf-8", "replace").decode()  # replaces lone surrogates
        calls = unpacked(_calls(response, asked) or spoken, asked.tools)
        if not calls and not text.strip():
            held.lost += spent_on(response)
            raise self._failed(self._not_an_answer("empty"))
        plain = all(isinstance(part, parts.ToolCallPart | parts.TextPart) for part in response.parts)
        kept = "" if plain else parts.ModelMessagesTypeAdapter.dump_json([_rewritten(response, text, calls)]).decode()
        message = ChatMessage(role="assistant", text=text, calls=calls, wire=kept)
        finish: Finish = "calls" if spoken and not is_cut else _FINISHES.get(response.finish_reason, "other")
        return Completion(message=message, model=self.name, finish=finish, spent=spent_on(response))

    async def _streamed(self, model: Any, messages: list[Any], given: Any, held: _Request) -> Any:
        """Streams an answer and returns it whole. TimeoutError if its first event takes longer than `models.first`:
        pydantic-ai's `first_event_timeout` does the same with a scope for each event, half a millisecond per answer."""
        from pydantic_ai.direct import model_request_stream

        async with asyncio.timeout(self.models.first) as until_first:
            async with model_request_stream(model, messages, **given) as held.stream:
                async for event in held.stream:
                    if until_first.when() is not None:
                        until_first.reschedule(None)
                    if text := _text_of(event):
                        held.spoken(text)
                return held.stream.get()

    def _opened(self) -> _Client:
        loop = asyncio.get_running_loop()
        if self._open is None or self._open.loop is not loop:
            with _IMPORTING:
                try:
                    import httpx2  # noqa: F401 - like the next one, imported for the modules that it loads
                    import pydantic_ai.direct  # noqa: F401 - like the one before
                except ImportError as error:
                    raise NotLoadable("models need the extra `llm`", hint=EXTRA) from error
            self._open = self._client(loop)
        return self._open

    def _client(self, loop: asyncio.AbstractEventLoop) -> _Client:
        import httpx2

        limits = self.models
        http = httpx2.AsyncClient(
            verify=_trust(),
            timeout=httpx2.Timeout(limits.idle, connect=limits.connect),
            follow_redirects=False,
            event_hooks={"response": [self._came]},
        )
        self._key = self._key or find_key(self.provider, limits)
        try:
            with _IMPORTING:
                return _Client(loop, http, wire(self.provider, self.model, limits, self._key, http))
        except (TypeError, httpx2.InvalidURL) as error:
            hint = "check its address and its kind in [models.providers]"
            raise UsageProblem(
                f"model {self.name!r} cannot be used with these settings: {type(error).__name__}", hint=hint
            ) from None

    async def _came(self, response: Any) -> None:
        _content_type.set(response.headers.get("content-type", ""))
        await repair(response)

    def _failure(self, error: Exception, held: _Request) -> KernelError:
        from pydantic_ai import exceptions as wrong

        if isinstance(error, TimeoutError):
            return self._too_slow(self.models.first, "to_its_first_word")
        if isinstance(error, wrong.ModelTimeoutError):
            if error.phase == "connect":
                return self._too_slow(self.models.connect, "to_be_reached")
            return self._too_slow(self.models.idle, "between_two_words" if held.begun else "to_its_first_word")
        kind = failed_kind(error)
        kind = self._not_an_answer(kind) if kind in {"unreadable", "cut_off"} else kind
        secret = self._key.value if self._key else ""  # the provider's own words may contain it
        words = own_words(error).replace(secret, REDACTED) if secret else own_words(error)
        facts = {"retry_after": getattr(error, "retry_after", None), "said": shorten(clean(words, lines=False), SAID)}
        facts |= {"status": getattr(error, "status_code", None)}
        broke = getattr(error, "in_stream", False) and reported(error) and kind not in {"redirected", "web_page"}
        return self._failed(kind, in_stream=broke, **facts)

    def _not_an_answer(self, kind: str) -> str:
        """`web_page` if the last response was one, else `kind`."""
        return "web_page" if _content_type.get().partition(";")[0].strip() == "text/html" else kind

    def _failed(self, kind: str, **data: Any) -> ModelFailed:
        held = {"kind": kind, "model": self.name, **{name: value for name, value in data.items() if value}}
        message, hint = failure_text(held)
        return ModelFailed(message, hint=hint, **held)

    def _too_slow(self, seconds: float, limit: str) -> TimedOut:
        held = {"kind": "timeout", "model": self.name, "limit": limit, "seconds": seconds}
        message, hint = failure_text(held)
        return TimedOut(message, hint=hint, **held)


class _Request:
    """The text passed on from the answers to one request and its repetitions, and the usage of the failed ones."""

    def __init__(self, told: Told | None) -> None:
        self.told, self.begun, self.lost = told, "", Spent()
        self.stream: Any = None  # the stream of the last request
        self.spoken = Spoken(())  # reads its text

    def tell(self, text: str) -> None:
        self.begun += text
        if self.told is not None:
            self.told(text)

    def ended(self, error: KernelError) -> KernelError:
        """The error, with `begun` and `usage` added to its data unless they are empty."""
        told: dict[str, Any] = {"begun": self.begun} if self.begun else {}
        told |= {"usage": self.lost.to_dict()} if self.lost.requests else {}
        error.data = {**error.data, **told}
        return error


# Anthropic caches these only if they are marked: the tools, the system text, and the conversation up to here
_CACHED = dict.fromkeys(
    ("anthropic_cache_tool_definitions", "anthropic_cache_instructions", "anthropic_cache_messages"), True
)


def _settings(asked: Asked, model: Any) -> Any:
    retries = getattr(getattr(model, "client", None), "max_retries", None)
    held: dict[str, Any] = {} if retries == 0 else {"max_retries": 0}  # the setting costs a new client for each request
    held |= _CACHED if asked.tools else {}  # for a single request, a cache costs a quarter more and is never read
    held |= {"temperature": asked.temperature} if asked.temperature is not None else {}
    held |= {"tool_choice": "none"} if asked.tools and not asked.calls else {}
    return {**held, "max_tokens": asked.tokens} if asked.tokens else held


def _parameters(asked: Asked) -> Any:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.schema))
        for tool in asked.tools
    ]
    if asked.shape is None:
        return ModelRequestParameters(function_tools=tools)
    shape = OutputObjectDefinition(json_schema=dict(asked.shape), name="answer", strict=False)
    return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=shape)


def _messages(messages: Sequence[ChatMessage], takes: Collection[str]) -> Iterator[Any]:
    """Yields each answer of a model by itself; the messages between two answers are one request."""
    from pydantic_ai.messages import ModelRequest

    held = zip(messages, contents(messages, takes), strict=True)
    for answered, group in groupby(held, key=lambda one: one[0].role == "assistant"):
        if answered:
            yield from (_answer(message) for message, _ in group)
        else:
            yield ModelRequest(parts=[_part(message, files) for message, files in group])


def _part(message: ChatMessage, files: Sequence[Any]) -> Any:
    from pydantic_ai.messages import SystemPromptPart, ToolReturnPart, UserPromptPart

    if message.role == "system":
        return SystemPromptPart(content=message.text)
    content: Any = message.text
    if files:
        texts = [message.text, *(one for one in files if isinstance(one, str))]
        content = ["\n".join(texts), *(one for one in files if not isinstance(one, str))]
        content = content if len(content) > 1 else content[0]
    if message.role == "tool":
        outcome: Any = "failed" if message.failed else "success"
        return ToolReturnPart(tool_name=message.name, content=content, tool_call_id=message.call, outcome=outcome)
    return UserPromptPart(content=content)


def _answer(message: ChatMessage) -> Any:
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart

    if message.wire:
        return ModelMessagesTypeAdapter.validate_json(message.wire)[0]
    parts: list[Any] = [TextPart(content=message.text)] if message.text else []
    parts += [ToolCallPart(tool_name=c.name, args=c.arguments, tool_call_id=c.id) for c in message.calls]
    return ModelResponse(parts=parts)


def _calls(response: Any, asked: Asked) -> tuple[ToolCall, ...]:
    """The calls of a response, in the kernel's own names and arguments, each with an id of its own."""
    from pydantic_ai.messages import ToolCallPart

    calls: dict[str, ToolCall] = {}
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            own = f"{part.tool_call_id}-{len(calls)}" if part.tool_call_id in calls else part.tool_call_id
            given = part.args if isinstance(part.args, str) else part.args_as_json_str()  # it may be no JSON
            calls[own] = meant(ToolCall(id=own, name=part.tool_name, arguments=given), asked.tools)
    return tuple(calls.values())


def _rewritten(response: Any, text: str, calls: Sequence[ToolCall]) -> Any:
    """The response with the text and the calls as they are kept; all its other parts stay as they are."""
    from dataclasses import replace as changed

    from pydantic_ai.messages import TextPart, ToolCallPart

    kept: list[Any] = []
    left, is_first = list(calls), True
    whole = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    for part in response.parts:
        if isinstance(part, ToolCallPart) and left:
            call = left.pop(0)
            part = changed(part, tool_name=call.name, args=call.arguments, tool_call_id=call.id)
        elif isinstance(part, TextPart) and whole != text:
            part, is_first = changed(part, content=text if is_first else ""), False
        if not isinstance(part, TextPart) or part.content:
            kept.append(part)
    kept += [ToolCallPart(tool_name=call.name, args=call.arguments, tool_call_id=call.id) for call in left]
    return changed(response, parts=kept)


def _text_of(event: Any) -> str:
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


# Files that tools showed are in a request if the model takes them, or else a sentence about each

MOST = 15_000_000  # bytes of files in one request; providers accept 32 MB, and base64 adds a third
UNSEEN = "(The model that you are cannot see pictures: do not guess what is in this one. A script can look at it.)"
UNREAD = (
    "(The model that you are cannot read PDFs. A script can get its text: run with the package pypdf, for example.)"
)
CHANGED = "(The file is not there any more, or was changed: read it again.)"
LEFT_OUT = "(It is left out of this request, which has other files: read it again.)"


def contents(messages: Sequence[ChatMessage], takes: Collection[str]) -> list[list[Any]]:
    """For each message, the contents that follow its text. `takes` are the media types that the model takes; if there
    are too many bytes, the newest files are sent."""
    room, found = MOST, []
    for message in reversed(messages):
        parts: list[Any] = []
        for file in reversed(message.files):
            part, room = _content(file, takes, room)
            parts.insert(0, part)
        found.append(parts)
    return found[::-1]


def _content(file: ShownFile, takes: Collection[str], room: int) -> tuple[Any, int]:
    """The content for a file, and the number of bytes left after it."""
    from pydantic_ai.messages import BinaryContent

    if file.kind not in takes:
        return (UNREAD if file.kind == PDF else UNSEEN), room
    if file.size > room:
        return LEFT_OUT, 0
    path = Path(file.path)
    try:
        data = read_inside(path.parent, (path.name,), file.size + 1)
    except (KernelError, OSError, ValueError):
        return CHANGED, room
    if hashlib.sha256(data).hexdigest() != file.sha256:  # not what the tool was allowed to read: a link replaced it
        return CHANGED, room
    return BinaryContent(data=data, media_type=file.kind), room - file.size
