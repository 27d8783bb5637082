"""Passes a server's questions to the person, and turns the answer into the content that the server asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from navigator_kernel.errors import InputNeeded
from navigator_kernel.language.answers import is_no, is_yes
from navigator_kernel.text import clean, lazy_compile, shorten

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


def declined(said: str) -> bool:
    return is_no(said)


def content_of(schema: Mapping[str, Any], said: str) -> dict[str, Any] | None:
    """Fits `said` to the fields of `schema`: JSON, `name=value` pairs, values in the order of the required fields, or
    one text; None if a required field is missing."""
    fields, required = _fields(schema), _required(schema)
    wanted = required or list(fields)[:1]
    if said.strip().startswith("{"):
        try:
            held = json.loads(said)
        except ValueError:
            held = None
        if isinstance(held, dict):
            return held if all(name in held for name in required) else None
    pairs = {name: value.strip() for name, value in _PAIR.findall(said) if name in fields}
    if not pairs and len(wanted) == 1:
        pairs = {wanted[0]: said.strip()}
    elif not pairs and wanted:
        pairs = dict(zip(wanted, _APART.split(said.strip()), strict=False))
    content = {name: fitted(value, fields.get(name)) for name, value in pairs.items()}
    return content if all(content.get(name) not in (None, "") for name in required) else None


def fitted(value: str, about: Any) -> Any:
    """Converts a text to the type in `about`, a part of a JSON Schema; unchanged without a type that fits."""
    kind = about.get("type") if isinstance(about, Mapping) else None
    if kind == "boolean":
        said = value.strip().casefold()
        return (
            True
            if said in {"true", "1"} or is_yes(value)
            else False
            if said in {"false", "0"} or is_no(value)
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
    held = schema.get("properties")
    return held if isinstance(held, Mapping) else {}


def _required(schema: Mapping[str, Any]) -> list[str]:
    held = schema.get("required")
    return [name for name in _fields(schema) if isinstance(held, list) and name in held]
