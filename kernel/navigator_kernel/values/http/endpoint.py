"""Declares an endpoint in one place: its path, role, body, answer and errors; the OpenAPI document is made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct

Role = Literal["read", "chat", "approve", "admin"]
ROLES: Sequence[Role] = get_args(Role)
JSON = "application/json"
SESSION = "[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"  # the session store accepts it with a token's id in front
SessionName = Annotated[str, Meta(pattern=f"^{SESSION}$")]


class HttpProblem(Exception):
    """A request that cannot be answered; `code` is a stable word for programs."""

    def __init__(
        self, status: int, code: str, detail: str, *, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.hint = status, code, detail, hint
        self.headers = headers or {}


class Caller(Struct, frozen=True, kw_only=True):
    """The sender of a request. `id` names the token, and is not secret."""

    id: str
    role: Role

    def may(self, role: Role) -> bool:
        """Whether the caller may do what `role` may; each role includes those before it."""
        return ROLES.index(self.role) >= ROLES.index(role)


class Nothing(Struct, frozen=True):
    """The query of an endpoint without one."""


class Call(Struct, frozen=True, kw_only=True):
    """An accepted request. `path` has the parts of the path, `query` and `body` the rest in the endpoint's types."""

    caller: Caller
    path: Mapping[str, Any]
    query: Any
    body: Any
    headers: Mapping[str, str]


class Answer(Struct, frozen=True, kw_only=True):
    """An answer with a status or headers of its own."""

    value: Any = None
    status: int = 200
    headers: Mapping[str, str] = {}


Handler = Callable[[Any, Call], Any]  # a plain function of the kernel is called in a thread


class Endpoint(Struct, frozen=True):
    """`body`, `query` and `answer` are types that msgspec reads, or models of pydantic; `media` is the type of a
    stream. `parts` are the types of the path's parts that are not plain text; `headers` are those that the handler
    reads, `sends` those of its answer. `errors` are statuses in addition to those of every endpoint. The handler's
    first argument is `service`; without one it is the gateway, and in a plugin the server's turns."""

    method: str
    path: str
    summary: str
    handler: Handler
    role: Role | None
    tag: str
    body: Any = None
    query: type[Struct] = Nothing
    parts: Mapping[str, Any] = {}
    headers: Sequence[str] = ()
    sends: Sequence[str] = ()
    answer: Any = None
    status: int = 200
    media: str = JSON
    errors: Sequence[int] = ()
    service: Any = None

    @property
    def name(self) -> str:
        """The operation's id."""
        return self.handler.__name__.lstrip("_")
