"""Requests to a model, its answers, and the tools that it may call, independent of the provider."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct, field

from navigator_kernel.events import Usage
from navigator_kernel.text import lazy_compile

Role = Literal["system", "user", "assistant", "tool"]
Finish = Literal["stop", "length", "calls", "filtered", "other"]
# How a model uses tools: it calls them, it writes calls as JSON that its server enforces, or neither works
Tooling = Literal["native", "schema", "none"]
# Names of messages that the kernel writes for the person: any, and one that asks for the rest of an answer
BY_KERNEL, CUT_OFF = "kernel", "cut_off"


class ToolCall(Struct, frozen=True, kw_only=True):
    """A model's tool call; `arguments` is its JSON text, valid or not."""

    id: str
    name: str
    arguments: str = "{}"


PDF = "application/pdf"


class ShownFile(NamedTuple):
    """A picture or a PDF that a tool shows: its path, media type, size in bytes and digest."""

    path: str
    kind: str
    size: int
    sha256: str


class ChatMessage(Struct, frozen=True, kw_only=True):
    """One message. `call` and `name` say which call a tool's answer belongs to, `failed` that it is an error; `wire` is
    the JSON that a provider needs back unchanged, including its reasoning (RTE-33). `files` are shown beside the
    answer's text; their bytes are read when a model is asked, and are not stored."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call: str = ""
    name: str = ""
    wire: str = ""
    files: tuple[ShownFile, ...] = ()
    failed: bool = False

    def to_dict(self) -> dict[str, Any]:
        body: dict[str, Any] = msgspec.to_builtins(self)
        return body


class Cut(NamedTuple):
    """How a conversation is shortened: the first `left_out` messages are not sent, the results before the message
    `shortened` are a line each."""

    left_out: int = 0
    shortened: int = 0


class ToolSpec(Struct, frozen=True, kw_only=True):
    """A tool as a model sees it; `schema` is the JSON schema of its arguments, an object."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


class Asked(Struct, frozen=True, kw_only=True):
    """One request. `temperature` is left out if a model takes none (X-25); `shape` is the JSON schema that the answer
    must have, if the provider can enforce it; `limit` is in seconds, from the first byte to the last; `spare` says that
    a model that cannot use the tools may answer without them; `calls` is false if the answer may have none. `waits` is
    called with the model and the seconds before each wait that a provider asks for."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    temperature: float | None = None
    shape: Mapping[str, Any] | None = None
    tokens: int | None = None
    limit: float = 120.0
    spare: bool = False
    calls: bool = True
    waits: Callable[[str, float], None] | None = None


class Spent(Struct, frozen=True, kw_only=True):
    """The usage of requests: tokens, of which the provider read `cached` from its cache, and US dollars. `priced` says
    whether the price of all of them is known; `unknown` counts the requests whose usage the provider did not report, or
    not completely."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0
    priced: bool = True
    unknown: int = 0

    def __add__(self, other: Spent) -> Spent:
        return self._with(other, 1)

    def __sub__(self, other: Spent) -> Spent:
        """What was spent since `other`."""
        return self._with(other, -1)

    def _with(self, other: Spent, sign: int) -> Spent:
        return Spent(
            requests=self.requests + sign * other.requests,
            input=self.input + sign * other.input,
            output=self.output + sign * other.output,
            cached=self.cached + sign * other.cached,
            cost=self.cost + sign * other.cost,
            priced=self.priced and (other.priced or sign < 0),
            unknown=self.unknown + sign * other.unknown,
        )

    def to_dict(self) -> dict[str, Any]:
        """`cost` is None if a price is not known; `unknown_requests` is left out if it is 0."""
        base: dict[str, Any] = {"requests": self.requests, "input_tokens": self.input, "output_tokens": self.output}
        base |= {"cached_tokens": self.cached, "cost": round(self.cost, 6) if self.priced else None}
        return {**base, "unknown_requests": self.unknown} if self.unknown else base


def spent_of(held: Mapping[str, Any]) -> Spent:
    """The inverse of `Spent.to_dict`; KeyError if a required key is missing."""
    cost = held["cost"]
    return Spent(
        requests=held["requests"],
        input=held["input_tokens"],
        output=held["output_tokens"],
        cached=held["cached_tokens"],
        cost=cost or 0.0,
        priced=cost is not None,
        unknown=held.get("unknown_requests", 0),
    )


def usage_facts(spent: Spent) -> dict[str, Any]:
    """The fields of a `Usage` event."""
    return {
        "input_tokens": spent.input,
        "output_tokens": spent.output,
        "cached_tokens": spent.cached,
        "cost": round(spent.cost, 6) if spent.priced else None,
        "requests": spent.requests,
        "unknown": spent.unknown,
    }


def spent_by(usage: Usage) -> Spent:
    """The inverse of `usage_facts`."""
    return Spent(
        requests=usage.requests,
        input=usage.input_tokens,
        output=usage.output_tokens,
        cached=usage.cached_tokens,
        cost=usage.cost or 0.0,
        priced=usage.cost is not None,
        unknown=usage.unknown,
    )


class Tried(Struct, frozen=True, kw_only=True):
    """A model that failed before the answer came, or that failed once and was asked again: `why` is the message of its
    last failure, empty if the model answered in the end; `spent` is the usage of its failed requests."""

    model: str
    why: str = ""
    spent: Spent = field(default_factory=Spent)

    def to_dict(self) -> dict[str, Any]:
        base: dict[str, Any] = {"model": self.model, "why": self.why}
        return {**base, "usage": self.spent.to_dict()} if self.spent.requests else base


def tried_of(data: Mapping[str, Any]) -> tuple[Tried, ...]:
    """The models that were tried, from the data of a failure: `tried`, or `model` and `usage`."""
    held = data.get("tried") or [data]
    spent = ((one, one.get("usage")) for one in held)
    return tuple(
        Tried(model=str(one.get("model", "")), why=str(one.get("why", "")), spent=spent_of(took) if took else Spent())
        for one, took in spent
    )


class Completion(Struct, frozen=True, kw_only=True):
    """An answer; `model` is `provider:model` of the model that gave it, `spent` the usage of its last request, `tried`
    the failures before it."""

    message: ChatMessage
    model: str
    finish: Finish = "stop"
    spent: Spent = field(default_factory=Spent)
    tried: tuple[Tried, ...] = ()

    @property
    def taken(self) -> Spent:
        """The usage of all requests that led to the answer."""
        return sum((one.spent for one in self.tried), self.spent)


_FIELD = lazy_compile(r"\{(\w{1,40})\}")


class ToolDef(Struct, frozen=True):
    """One line of a registry of tools. `args_schema` is a pydantic model, or None to use the signature.

    `effects` say what has changed after it succeeds: `refresh:<what>`, `toast` or `toast:<text>`, `navigate:<where>`,
    `modal:<what>`; `{name}` in them is a field of the result. `confirm` is a question that is asked before each call;
    `{name}` in it is an argument.
    """

    func: Callable[..., Any]
    description: str
    args_schema: type[Any] | None = None
    effects: tuple[str, ...] = ()
    confirm: str = ""


class Result(NamedTuple):
    """The result of a tool: `value` as JSON values, or an error."""

    value: Any = None
    error: str = ""


class GuardedTool(Struct, frozen=True, kw_only=True):
    """A tool as the checks in front of its calls see it: whose `run`, `effects` and `confirm` are those of
    `model_ports.Tool`. `outward` says that it may reach others, `only_reads` that it says that it changes nothing: then
    a yes can be for a session, which `right` names. A consent is bound to `identity`, else to the name; `by_server`
    says that it is a tool of an MCP server, `facts` are for the audit log."""

    name: str
    spec: ToolSpec
    run: Callable[[Mapping[str, Any]], Coroutine[Any, Any, Result]]
    effects: tuple[str, ...] = ()
    confirm: str = ""
    outward: bool = True
    only_reads: bool = False
    by_server: bool = False
    identity: str = ""
    right: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


def filled(text: str, values: Mapping[str, Any]) -> str:
    """`text` with each `{name}` replaced once by the value of that name; unknown names stay."""
    return _FIELD.sub(lambda hit: str(values[hit[1]]) if hit[1] in values else hit.group(), text)
