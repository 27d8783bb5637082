"""What is said to a model and what it answers, in words of no provider's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field

Role = Literal["system", "user", "assistant", "tool"]
Finish = Literal["stop", "length", "calls", "filtered", "other"]
# How a model uses tools: it calls them, it names them in a JSON schema that its server enforces, or neither works
Tooling = Literal["native", "schema", "none"]


class ToolCall(Struct, frozen=True, kw_only=True):
    """What a model wants done; `arguments` is the JSON text as it wrote it, well formed or not."""

    id: str
    name: str
    arguments: str = "{}"


PDF = "application/pdf"


class ShownFile(NamedTuple):
    """A picture or a PDF that a tool shows: where its bytes lie, its media type, its size in bytes and its digest."""

    path: str
    kind: str
    size: int
    sha256: str


class ChatMessage(Struct, frozen=True, kw_only=True):
    """One message. `call` and `name` say which call a tool's answer belongs to; `wire` is what a provider wants to see
    again as it was, its reasoning among it, as JSON (RTE-33). `files` are what the answer shows beside its text; their
    bytes are read when a model is asked, and are kept nowhere."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call: str = ""
    name: str = ""
    wire: str = ""
    files: tuple[ShownFile, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        base: dict[str, Any] = {"role": self.role, "text": self.text}
        base |= {"calls": [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in self.calls]}
        base |= {"files": [list(one) for one in self.files]} if self.files else {}
        return {**base, "call": self.call, "name": self.name, "wire": self.wire}

    @classmethod
    def from_dict(cls, held: Mapping[str, Any]) -> ChatMessage:
        calls = tuple(ToolCall(**one) for one in held.get("calls", ()))
        files = tuple(ShownFile(*one) for one in held.get("files", ()))
        return cls(**{**held, "calls": calls, "files": files})


class ToolSpec(Struct, frozen=True, kw_only=True):
    """A tool as a model sees it; `schema` is the JSON schema of its arguments, an object."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


class Asked(Struct, frozen=True, kw_only=True):
    """One request. `temperature` is left out where a model takes none (X-25); `shape` is the JSON schema that the
    answer must have, where the provider can see to that; `limit` is in seconds, from the first byte to the last;
    `spare` says that a model which cannot use the tools may answer without them."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    temperature: float | None = None
    shape: Mapping[str, Any] | None = None
    tokens: int | None = None
    limit: float = 120.0
    spare: bool = False


class Spent(Struct, frozen=True, kw_only=True):
    """What requests took: tokens, of which `cached` the provider read from its cache, and US dollars. `priced` says
    whether the price of all of them is known."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0
    priced: bool = True

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            requests=self.requests + other.requests,
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            cost=self.cost + other.cost,
            priced=self.priced and other.priced,
        )

    def to_dict(self) -> dict[str, Any]:
        """`cost` is None where a price is not known."""
        base: dict[str, Any] = {"requests": self.requests, "input_tokens": self.input, "output_tokens": self.output}
        return {**base, "cached_tokens": self.cached, "cost": round(self.cost, 6) if self.priced else None}


class Completion(Struct, frozen=True, kw_only=True):
    """An answer; `model` is `provider:model` of the one that gave it."""

    message: ChatMessage
    model: str
    finish: Finish = "stop"
    spent: Spent = field(default_factory=Spent)
