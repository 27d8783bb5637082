"""The declaration of a tool (TOL-6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from navigator_kernel.text import lazy_compile

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


def filled(text: str, values: Mapping[str, Any]) -> str:
    """`text` with each `{name}` replaced once by the value of that name; unknown names stay."""
    return _FIELD.sub(lambda hit: str(values[hit[1]]) if hit[1] in values else hit.group(), text)
