"""Asks a model over its provider's own protocol, with a limit for every wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from navigator_kernel.adapters.model_files import contents
from navigator_kernel.adapters.model_providers import EXTRA, Key, find_key, seen_by, spelled_out, wire
from navigator_kernel.adapters.redaction import REDACTED
from navigator_kernel.errors import KernelError, ModelFailed, NotLoadable, TimedOut, UsageProblem
from navigator_kernel.text import clean, shorten
from navigator_kernel.values.chat import Asked, ChatMessage, Completion, Finish, Spent, ToolCall

if TYPE_CHECKING:
    from navigator_kernel.settings import Models

LONGEST_WAIT = 60.0  # seconds; where Retry-After asks for more, the person decides
FIRST_WAIT = 0.5  # doubled with every try
SAID = 300  # characters of a provider's own words
# What another try may mend; all else is as it is
PASSING = frozenset({"rate_limited", "unavailable", "server_error", "unreachable", "cut_off"})
_FINISHES: dict[str | None, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_call": "calls",
    "content_filter": "filtered",
}

Told = Callable[[str], None]


class _Client(NamedTuple):
    """What is open, for the event loop that it belongs to."""

    loop: asyncio.AbstractEventLoop
    http: Any
    model: Any


@cache
def _trust() -> Any:
    """Whose certificates are believed: read once a process, for it takes 20 ms."""
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

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"

    async def complete(self, asked: Asked, told: Told | None = None) -> Completion:
        """See the port. A request is repeated where that may help and nothing of its answer was told yet."""
        try:
            async with asyncio.timeout(asked.limit):
                return await self._until_answered(asked, told, asyncio.get_running_loop().time() + asked.limit)
        except TimeoutError:
            raise self._too_slow(asked.limit, "to its end") from None

    async def close(self) -> None:
        """Lets go of its connections."""
        held, self._open = self._open, None
        if held is not None and held.loop is asyncio.get_running_loop():
            await held.http.aclose()

    async def _until_answered(self, asked: Asked, told: Told | None, end: float) -> Completion:
        heard = False

        def tell(text: str) -> None:
            nonlocal heard
            heard = True
            if told is not None:
                told(text)

        for attempt in range(self.models.retries + 1):
            try:
                return await self._once(asked, tell if told is not None else None)
            except ModelFailed as error:
                wait = error.data.get("retry_after") or FIRST_WAIT * 2**attempt
                left = min(end - asyncio.get_running_loop().time(), LONGEST_WAIT)
                if heard or error.data["kind"] not in PASSING or attempt == self.models.retries or wait >= left:
                    raise
                await self._sleep(wait)
        raise AssertionError("the last try returns or raises")

    async def _once(self, asked: Asked, tell: Told | None) -> Completion:
        held = self._opened()
        from pydantic_ai.direct import model_request, model_request_stream

        try:
            settings, parameters = _settings(asked, self.models), _parameters(asked)
            messages = list(_messages(asked.messages, seen_by(self.provider, self.models)))
            if tell is None:
                response = await model_request(
                    held.model, messages, model_settings=settings, model_request_parameters=parameters
                )
            else:
                async with model_request_stream(
                    held.model, messages, model_settings=settings, model_request_parameters=parameters
                ) as stream:
                    async for event in stream:
                        if text := _text_of(event):
                            tell(text)
                    response = stream.get()
        except Exception as error:  # noqa: BLE001 - forty libraries may raise anything, and their words may hold the key
            raise self._failure(error) from None
        said_why = (response.provider_details or {}).get("finish_reason") or response.finish_reason == "content_filter"
        if tell is not None and not said_why:
            raise self._failed("cut_off", "its answer ended in the middle")
        if response.finish_reason in {"content_filter", "error"}:
            raise self._failed("filtered", "it withheld its answer, or the rest of it")
        return self._completion(response)

    def _opened(self) -> _Client:
        loop = asyncio.get_running_loop()
        if self._open is None or self._open.loop is not loop:
            try:
                import httpx2
            except ImportError as error:
                raise NotLoadable("models need the extra `llm`", hint=EXTRA) from error
            limits = self.models
            http = httpx2.AsyncClient(
                verify=_trust(),
                timeout=httpx2.Timeout(limits.idle, connect=limits.connect),
                follow_redirects=False,
            )
            self._key = self._key or find_key(self.provider, limits)
            try:
                self._open = _Client(loop, http, wire(self.provider, self.model, limits, self._key, http))
            except (TypeError, httpx2.InvalidURL) as error:
                hint = "check its address and its kind in [models.providers]"
                raise UsageProblem(
                    f"model {self.name!r} cannot be asked so: {type(error).__name__}", hint=hint
                ) from None
        return self._open

    def _completion(self, response: Any) -> Completion:
        from pydantic_ai import messages as parts

        calls = tuple(
            ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=_arguments(part))
            for part in response.parts
            if isinstance(part, parts.ToolCallPart)
        )
        text = "".join(part.content for part in response.parts if isinstance(part, parts.TextPart))
        text = text.encode("utf-8", "replace").decode()  # half a character is none
        if not calls and not text.strip():
            raise self._failed("empty", "it said nothing")
        plain = all(isinstance(part, parts.ToolCallPart | parts.TextPart) for part in response.parts)
        kept = "" if plain else parts.ModelMessagesTypeAdapter.dump_json([response]).decode()
        message = ChatMessage(role="assistant", text=text, calls=calls, wire=kept)
        finish = _FINISHES.get(response.finish_reason, "other")
        return Completion(message=message, model=self.name, finish=finish, spent=_spent(response))

    def _failure(self, error: Exception) -> KernelError:
        from pydantic_ai import exceptions as wrong

        if isinstance(error, wrong.ModelRequestTimeout):
            return self._too_slow(error.timeout, "to its first word")
        if isinstance(error, wrong.ModelTimeoutError):
            connecting = error.phase == "connect"
            limit = self.models.connect if connecting else self.models.idle
            return self._too_slow(limit, "to be reached" if connecting else "between two words")
        kind, message = _kind(error)
        status = getattr(error, "status_code", None)
        wait = getattr(error, "retry_after", None)
        data = {"retry_after": wait, "status": status, "said": self._said(error)}
        message += f"; it asks to wait {wait:.0f} s" if wait and wait >= LONGEST_WAIT else ""
        return self._failed(kind, f"{message} ({status})" if status else message, **data)

    def _failed(self, kind: str, message: str, **data: Any) -> ModelFailed:
        hint = _HINTS.get(kind, "try again, or another model: navigator model use NAME")
        return ModelFailed(f"model {self.name!r}: {message}", hint=hint, kind=kind, model=self.name, **data)

    def _too_slow(self, seconds: float, what: str) -> TimedOut:
        hint = "give it more time in [models], or ask another model"
        return TimedOut(f"model {self.name!r} took over {seconds:g} s {what}", hint=hint, model=self.name)

    def _said(self, error: Exception) -> str:
        """The provider's own words, without the key that some of them hold."""
        text = str(getattr(error, "body", None) or error)
        if self._key and self._key.value:
            text = text.replace(self._key.value, REDACTED)
        return shorten(clean(text, lines=False), SAID)


_HINTS = {
    "key_refused": "check its key: navigator model list says where it comes from",
    "quota_used_up": "top up the account, or ask another model",
    "unknown_model": "navigator model list names what is set here",
    "too_long": "say less, or ask a model with more room",
    "unreachable": "check the address and the network",
    "rejected": "ask another model; where this one calls no tools, navigator model test finds out and keeps that",
}


def _kind(error: Exception) -> tuple[str, str]:
    """What went wrong, as a word and in words."""
    from pydantic_ai import exceptions as wrong

    table: Sequence[tuple[type[Exception], str, str]] = (
        (wrong.ModelRateLimitError, "rate_limited", "too many requests"),
        (wrong.ModelQuotaExceededError, "quota_used_up", "its account is used up"),
        (wrong.ModelUnavailableError, "unavailable", "it is not available now"),
        (wrong.ModelServerError, "server_error", "its server failed"),
        (wrong.ModelAuthenticationError, "key_refused", "its key was refused"),
        (wrong.ModelNotFoundError, "unknown_model", "nothing is known of it there"),
        (wrong.ModelContextWindowExceededError, "too_long", "that is more than it can read"),
        (wrong.ModelRequestRejectedError, "rejected", "the request was rejected"),
        (wrong.ContentFilterError, "filtered", "it withheld its answer"),
    )
    for held, kind, message in table:
        if isinstance(error, held):
            return kind, message
    if isinstance(error, wrong.ModelConnectionError):
        if error.phase == "read" or error.in_stream:
            return "cut_off", "its answer ended in the middle"
        return "unreachable", "it could not be reached"
    return "unreadable", "its answer could not be read"


# What Anthropic keeps only where it is marked: the tools, the system text, and the conversation up to here
_CACHED = dict.fromkeys(
    ("anthropic_cache_tool_definitions", "anthropic_cache_instructions", "anthropic_cache_messages"), True
)


def _settings(asked: Asked, models: Models) -> Any:
    held: dict[str, Any] = {"max_retries": 0, "first_event_timeout": min(models.first, asked.limit)}
    held |= _CACHED if asked.tools else {}  # what is asked once would cost a quarter more, and is never read again
    held |= {"temperature": asked.temperature} if asked.temperature is not None else {}
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
    """Answers of a model one by one; what lies between two of them is one request."""
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
        return ToolReturnPart(tool_name=message.name, content=content, tool_call_id=message.call)
    return UserPromptPart(content=content)


def _answer(message: ChatMessage) -> Any:
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart

    if message.wire:
        return ModelMessagesTypeAdapter.validate_json(message.wire)[0]
    parts: list[Any] = [TextPart(content=message.text)] if message.text else []
    parts += [ToolCallPart(tool_name=c.name, args=c.arguments, tool_call_id=c.id) for c in message.calls]
    return ModelResponse(parts=parts)


def _arguments(part: Any) -> str:
    """As the model wrote them, which may be no JSON."""
    return part.args if isinstance(part.args, str) else str(part.args_as_json_str())


def _text_of(event: Any) -> str:
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


def _spent(response: Any) -> Spent:
    usage, cost, priced = response.usage, 0.0, True
    try:
        cost = float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        priced = False
    held = {"input": usage.input_tokens, "output": usage.output_tokens, "cached": usage.cache_read_tokens}
    return Spent(requests=1, cost=cost, priced=priced, **held)
