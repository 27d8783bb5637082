"""Describes the HTTP API for `public_surface`: its operations, and the schemas of what is sent and answered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maintenance.compatibility import ANYTHING

if TYPE_CHECKING:
    from navigator_kernel.values.http.endpoint import Endpoint

TOP = Path(__file__).resolve().parents[2]

REFERENCE = "#/components/schemas/"
METHODS = ("get", "post", "put", "patch", "delete")


def operations() -> dict[str, dict[str, Any]]:
    """The sections "HTTP", "HTTP body" and "HTTP answer"."""
    from navigator_kernel.gateway.openapi import document

    whole = document(endpoints())
    schemas, sent, answered = whole["components"]["schemas"], set[str](), set[str]()
    found: dict[str, Any] = {}
    for path, methods in whole["paths"].items():
        for method in METHODS:
            if method in methods:
                found[f"{method.upper()} {path}"] = _operation(methods[method])
                sent |= _references(methods[method].get("requestBody", {}))
                answered |= _references(methods[method]["responses"])
    sent, answered = _closed(sent, schemas), _closed({*answered, "Problem"}, schemas)
    return {
        "HTTP": found,
        "HTTP body": {name: shape(schemas[name], answer=False) for name in sorted(sent)},
        "HTTP answer": {name: shape(schemas[name], answer=True) for name in sorted(answered)},
    }


def endpoints() -> Sequence[Endpoint]:
    """All endpoints of the HTTP API, those of the shipped plugins too."""
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.gateway.gateway import Gateway
    from navigator_kernel.gateway.server import endpoints_of

    return endpoints_of(Gateway(Project(TOP)))


def shape(schema: Mapping[str, Any], *, answer: bool) -> dict[str, Any]:
    """A schema without its words. What is sent may ask less later and take more; an answer may hold more."""
    kinds, words = sorted(_kinds(schema)), sorted(_words(schema))
    found: dict[str, Any] = {("is" if answer else "accepts"): kinds or [ANYTHING]}
    if words:
        found["words"] = words
    if "properties" in schema:
        found["fields"] = {name: shape(held, answer=answer) for name, held in schema["properties"].items()}
        found["always" if answer else "required"] = sorted(schema.get("required", ()))
    if isinstance(schema.get("items"), dict):
        found["items"] = shape(schema["items"], answer=answer)
    if isinstance(schema.get("additionalProperties"), dict):
        found["values"] = shape(schema["additionalProperties"], answer=answer)
    return found


def _operation(held: Mapping[str, Any]) -> dict[str, Any]:
    params = {f"{item['in']} {item['name']}": item for item in held["parameters"]}
    content = held.get("requestBody", {}).get("content", {})
    return {
        "role": held["x-role"],
        "takes": {name: shape(item["schema"], answer=False) for name, item in params.items()},
        "required": sorted(name for name, item in params.items() if item["required"]),
        "body": {media: shape(one["schema"], answer=False) for media, one in content.items()},
        "answers": {
            status: {media: shape(one["schema"], answer=True) for media, one in one.get("content", {}).items()}
            for status, one in held["responses"].items()
            if status < "400"
        },
    }


def _kinds(schema: Mapping[str, Any]) -> Iterable[str]:
    """The types that a value may have, schemas with a name by that name."""
    for inner in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _kinds(inner)
    if "$ref" in schema:
        yield schema["$ref"].removeprefix(REFERENCE)
    kind = schema.get("type", ())
    yield from [kind] if isinstance(kind, str) else kind


def _words(schema: Mapping[str, Any]) -> Iterable[str]:
    for inner in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _words(inner)
    yield from (json.dumps(word) for word in schema.get("enum", ()))
    yield from [json.dumps(schema["const"])] if "const" in schema else ()


def _references(held: Any) -> set[str]:
    """Names of the schemas that are named anywhere in `held`."""
    if isinstance(held, list):
        return set[str]().union(*map(_references, held))
    if not isinstance(held, dict):
        return set()
    own = {held["$ref"].removeprefix(REFERENCE)} if str(held.get("$ref", "")).startswith(REFERENCE) else set()
    return own.union(*map(_references, held.values()))


def _closed(names: set[str], schemas: Mapping[str, Any]) -> set[str]:
    """With all that they name in turn."""
    while more := set[str]().union(*(_references(schemas[name]) for name in names)) - names:
        names = names | more
    return names
