"""Models as the loop asks them: with others to fall back on, and with calls as text for one that makes no calls itself.

A model without tool calling gets tools if its server enforces a JSON schema: each answer is one object."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.models.calls import meant, unpacked
from navigator_kernel.errors import KernelError, ModelFailed
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.chat import (
    Asked,
    ChatMessage,
    Completion,
    Spent,
    ToolCall,
    Tooling,
    ToolSpec,
    Tried,
    spent_of,
)

if TYPE_CHECKING:
    from navigator_kernel.model_ports import ChatModel


_BEGIN = lazy_compile(r'\s*\{\s*"answer"\s*:\s*"')
_CUT_CALL = lazy_compile(r'\s*\{\s*"tool"\s*:\s*"([\w.:-]{1,100})"')
# Whole characters of a JSON string: an incomplete escape waits, and half of a surrogate pair waits for the other
_WHOLE = lazy_compile(
    r'(?:[^"\\]|\\(?:["\\/bfnrt]|u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|u(?![dD][89abAB])[0-9a-fA-F]{4}))*'
)


class _Over(Struct, frozen=True):
    inner: ChatModel

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def context(self) -> int:
        return self.inner.context

    async def close(self) -> None:
        await self.inner.close()


class TextCalls(_Over, frozen=True):
    """Implements `model_ports.ChatModel` over a model that is asked only for text. Its calls pass the same checks as
    those of other models, as the checks follow the answer."""

    async def complete(self, asked: Asked, told: Callable[[str], None] | None = None) -> Completion:
        """ModelFailed if the model returns neither a call nor an answer."""
        if not asked.tools:
            return await self.inner.complete(asked, told)
        shape = shape_of(asked.tools if asked.calls else ())
        wanted = replace(asked, messages=as_text(asked.messages, asked.tools), tools=(), shape=shape)
        try:
            done = await self.inner.complete(wanted, None if told is None else _Answer(told))
        except KernelError as error:  # only the answer's text was streamed
            error.data = {**error.data, "begun": _begun(str(error.data.get("begun", "")))}
            raise
        message = read(done.message.text)
        is_cut = done.finish == "length"
        if message is None and is_cut:  # a cut answer keeps its text; a cut call keeps its name, so that it is answered
            cut = done.message.text
            tool = _CUT_CALL.match(cut)
            calls = (ToolCall(id=f"text-{uuid4().hex[:16]}", name=tool[1], arguments=cut),) if tool else ()
            message = ChatMessage(role="assistant", text=_begun(cut), calls=calls)
        if message is not None:
            message = replace(
                message, calls=unpacked((meant(call, asked.tools) for call in message.calls), asked.tools)
            )
        if message is None or not (message.calls or message.text.strip()):
            kind, why = ("empty", "it said nothing") if message else ("unreadable", "its answer has no form asked for")
            hint = "ask another model: navigator model use NAME; navigator model test says what one can do"
            usage = done.taken.to_dict()
            raise ModelFailed(f"model {done.model!r}: {why}", hint=hint, kind=kind, model=done.model, usage=usage)
        return replace(done, message=message, finish="calls" if message.calls and not is_cut else done.finish)


class WithoutTools(_Over, frozen=True):
    """Implements `model_ports.ChatModel` over a model that cannot use tools at all: work that needs them is refused."""

    async def complete(self, asked: Asked, told: Callable[[str], None] | None = None) -> Completion:
        """ModelFailed if the task needs tools."""
        if asked.tools and not asked.spare:
            hint = "ask another model: navigator model use NAME; or try this one again: navigator model test"
            why = "it does not call them, and its server does not enforce a JSON schema"
            raise ModelFailed(
                f"model {self.name!r} cannot use tools: {why}", hint=hint, kind="no_tools", model=self.name
            )
        return await self.inner.complete(replace(asked, tools=()), told)


def shape_of(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The JSON schema of an answer: a call of one of `tools`, or the answer itself."""
    # References do not resolve inside another schema: then any object will do, as a tool checks its arguments itself
    given = [{"type": "object"} if '"$ref"' in json.dumps(dict(tool.schema)) else dict(tool.schema) for tool in tools]
    names = [{"type": "string", "enum": [tool.name]} for tool in tools]
    calls = [_form(tool=name, arguments=arguments) for name, arguments in zip(names, given, strict=True)]
    return {"anyOf": [*calls, _form(answer={"type": "string"})]}


def as_text(messages: Sequence[ChatMessage], tools: Sequence[ToolSpec]) -> tuple[ChatMessage, ...]:
    """The conversation as text only: the system message ends with the descriptions of the tools, and calls and their
    results are JSON objects, so that a result cannot end its own string."""
    begin = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    system = "\n\n".join([*(message.text.strip() for message in messages[:begin]), prompt(tools)])
    return (ChatMessage(role="system", text=system), *map(_as_text, messages[begin:]))


def prompt(tools: Sequence[ToolSpec]) -> str:
    described = ({"tool": tool.name, "description": tool.description, "arguments": dict(tool.schema)} for tool in tools)
    text = (Path(__file__).parent / "prompts" / "text_calls.md").read_text(encoding="utf-8").strip()
    return f"{text}\n\n" + "\n".join(json.dumps(one, ensure_ascii=False) for one in described) + "\n"


def read(text: str) -> ChatMessage | None:
    """Parses the answer, or returns None. The whole text must be JSON, so that quoted JSON is not a call."""
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(held, dict):
        return None
    tool, arguments, answer = held.get("tool"), held.get("arguments", {}), held.get("answer")
    if isinstance(tool, str) and isinstance(arguments, dict) and answer is None:
        call = ToolCall(id=f"text-{uuid4().hex[:16]}", name=tool, arguments=json.dumps(arguments))
        return ChatMessage(role="assistant", calls=(call,))
    return ChatMessage(role="assistant", text=answer) if isinstance(answer, str) and tool is None else None


def _form(**properties: Any) -> dict[str, Any]:
    base = {"type": "object", "properties": properties, "required": list(properties)}
    return {**base, "additionalProperties": False}


def _as_text(message: ChatMessage) -> ChatMessage:
    if message.role == "tool":
        return ChatMessage(role="user", text=_json(result_of=message.name, text=message.text), files=message.files)
    return ChatMessage(role="assistant", text="\n".join(_forms(message))) if message.role == "assistant" else message


def _forms(message: ChatMessage) -> Iterator[str]:
    if message.text or not message.calls:
        yield _json(answer=message.text)
    for call in message.calls:
        try:
            arguments = json.loads(call.arguments or "{}")
        except ValueError:
            arguments = {}
        yield _json(tool=call.name, arguments=arguments)


def _json(**facts: Any) -> str:
    return json.dumps(facts, ensure_ascii=False)


def _begun(text: str) -> str:
    """The beginning of an answer that was cut off."""
    pieces: list[str] = []
    _Answer(pieces.append)(text)
    return "".join(pieces)


class _Answer:
    """Passes on the text of `{"answer": "…"}` while it arrives, and nothing of a call."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self._told, self._held, self._within = told, "", False

    def __call__(self, piece: str) -> None:
        self._held += piece
        if not self._within:
            begin = _BEGIN.match(self._held)
            if begin is None:
                return
            self._within, self._held = True, self._held[begin.end() :]
        whole = _WHOLE.match(self._held)
        if whole is not None and whole.end():
            self._held = self._held[whole.end() :]
            self._told(str(json.loads(f'"{whole.group()}"', strict=False)))


# Failures that another model would not avoid
OWN_FAULT = frozenset({"filtered", "refused", "over_budget"})


class ModelChain(Struct, frozen=True):
    """Implements `model_ports.ChatModel` over models of which the next is asked if one fails before its first
    word."""

    models: Sequence[ChatModel]

    @property
    def name(self) -> str:
        return self.models[0].name

    @property
    def context(self) -> int:
        """The smallest that is known, so that each model can take over."""
        return min((model.context for model in self.models if model.context), default=0)

    async def complete(self, asked: Asked, told: Callable[[str], None] | None = None) -> Completion:
        """Lists earlier failures in `tried`. Raises the last failure, with all of them in `data["tried"]`."""
        heard, tried, began = False, list[Tried](), time.monotonic()

        def tell(text: str) -> None:
            nonlocal heard
            heard = True
            if told is not None:
                told(text)

        for model in self.models:
            try:
                left = max(asked.limit - (time.monotonic() - began), 1.0)
                done = await model.complete(replace(asked, limit=left), tell if told is not None else None)
                return replace(done, tried=(*tried, *done.tried))
            except KernelError as error:
                took = error.data.get("usage")
                spent = spent_of(took) if took else Spent()
                tried.append(Tried(model=model.name, why=error.message, spent=spent))
                error.data = {**error.data, "tried": [one.to_dict() for one in tried]}
                kind = error.data.get("kind") if isinstance(error, ModelFailed) else None
                is_own_fault = kind in OWN_FAULT or (kind == "rejected" and asked.shape is not None)
                if model is self.models[-1] or heard or is_own_fault:
                    raise
        raise AssertionError("the last model returns or raises")

    async def close(self) -> None:
        for model in self.models:
            await model.close()


WORD = "Answer with the one word: ready"
CALL = "Call the tool `ready` now, with the word `yes`."
READY = ToolSpec(
    name="ready",
    description="Says that you are ready.",
    schema={"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)
TOKENS = 1_000  # tokens of an answer, including reasoning
LIMIT = 60.0  # seconds
# Errors of a server that does not know a feature; other errors say nothing about tools
_DECLINED = frozenset({"rejected", "server_error", "unknown_model", "unreadable", "empty", "cut_off"})


async def tooling(model: ChatModel) -> tuple[Tooling, Spent]:
    """Returns how the model can use tools, and the usage of finding out. Only for a model that has answered without
    tools; ModelFailed or TimedOut if nothing could be found out."""
    spent = Spent()
    called = await _heard(model, CALL, tools=(READY,))
    if called is not None:
        spent += called.spent
        if any(call.name == READY.name for call in called.message.calls):
            return "native", spent
    # The prompt asks for plain text: the answer is JSON only if the server enforces the schema
    held = await _heard(model, WORD, shape=shape_of((READY,)))
    if held is None:
        return "none", spent
    return ("schema" if read(held.message.text) else "none"), spent + held.spent


async def _heard(
    model: ChatModel, text: str, *, tools: tuple[ToolSpec, ...] = (), shape: Mapping[str, Any] | None = None
) -> Completion | None:
    """The answer, or None if the server declines the request."""
    said = (ChatMessage(role="user", text=text),)
    try:
        return await model.complete(Asked(messages=said, tools=tools, shape=shape, tokens=TOKENS, limit=LIMIT))
    except ModelFailed as error:
        if error.data.get("kind") in _DECLINED:
            return None
        raise
