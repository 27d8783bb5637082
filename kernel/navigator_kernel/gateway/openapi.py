"""Generates the OpenAPI 3.1 document from the declared endpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from navigator_kernel import __version__
from navigator_kernel.gateway.endpoints import BODY_METHODS, is_pydantic
from navigator_kernel.gateway.problems import MEDIA_TYPE, Problem
from navigator_kernel.gateway.projections.openai_errors import PREFIX, OpenAIError
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.http.endpoint import JSON, Answer, Call, Endpoint, SessionName

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway

PATH = "/openapi.json"
REFERENCE = "#/components/schemas/{name}"
EVERY = (400, 403, 413, 421, 500)  # error statuses that every endpoint can return
WITH_TOKEN = (401, 429)
WITH_BODY = (415, 422)
EVENT: Mapping[str, Any] = {
    "description": "One event of the stream: the fields of server-sent events; `data` is JSON.",
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "event": {"type": "string"},
        "data": {"type": "string", "contentMediaType": JSON},
    },
    "required": ["data"],
}
_PART = lazy_compile(r"\{(\w+)(?::\w+)?\}")
_LONG_PART = lazy_compile(r"\{(\w+):path\}")
_ABOUT = (
    "Errors are problem documents (RFC 9457) with a stable `code`. Every request needs a token, "
    "`Authorization: Bearer …`, made by `navigator serve --new-token`; each role may do what those before it may: "
    "read, chat, approve, admin."
)
_HEADERS: Mapping[str, str] = {
    "ETag": "the state of what is returned",
    "Location": "the address of what was created",
    "Retry-After": "seconds to wait",
    "WWW-Authenticate": "Bearer",
    "X-Run-Id": "the run's id",
}


def described(endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
    """Adds the endpoint that describes all `endpoints`."""

    async def openapi(_gateway: Gateway, _call: Call) -> Answer:
        return Answer(value=made())

    own = Endpoint(
        method="GET", path=PATH, role="read", summary="Describe this API", handler=openapi, tag="api", answer=dict
    )
    held = (*endpoints, own)
    made = cache(lambda: document(held))
    return held


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The document as JSON values."""
    schemas = Schemas(endpoints)
    errors = {status for endpoint in endpoints for status in statuses(endpoint)}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, schemas, endpoints)
        paths.setdefault(template_of(endpoint.path), {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Navigator Kernel", "version": __version__, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "tags": [{"name": name} for name in dict.fromkeys(endpoint.tag for endpoint in endpoints)],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas.components,
            "responses": {str(status): _error(status, schemas) for status in sorted(errors)},
        },
    }


def statuses(endpoint: Endpoint) -> Sequence[int]:
    """The statuses of the endpoint's errors, sorted."""
    found = {*EVERY, *endpoint.errors}
    found |= set(WITH_TOKEN) if endpoint.role is not None else set()
    found |= set(WITH_BODY) if endpoint.body is not None else set()
    found |= {404} if "{" in endpoint.path else set()
    found |= {304} if endpoint.method == "GET" and "If-None-Match" in endpoint.headers else set()
    return sorted(found)


def template_of(path: str) -> str:
    return _PART.sub(r"{\1}", path)


class Schemas:
    """The schemas of all bodies and answers; `components` has the named ones."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        kinds = [kind for endpoint in endpoints for kind in (endpoint.body, endpoint.answer) if kind is not None]
        models = [kind for kind in kinds if is_pydantic(kind)]
        structs = [Problem, OpenAIError, *(kind for kind in kinds if not is_pydantic(kind))]
        schemas, self.components = msgspec.json.schema_components(
            structs, schema_hook=lambda _kind: {}, ref_template=REFERENCE
        )
        self._schemas: dict[Any, Any] = dict(zip(structs, schemas, strict=True))
        for model in models:
            whole = model.model_json_schema(ref_template=REFERENCE.replace("{name}", "{model}"))
            for name, schema in {**whole.pop("$defs", {}), model.__name__: whole}.items():
                if self.components.setdefault(name, schema) != schema:
                    raise ValueError(f"two schemas are called {name!r}")
            self._schemas[model] = {"$ref": REFERENCE.format(name=model.__name__)}

    def of(self, kind: Any) -> Any:
        return self._schemas[kind]


def _operation(endpoint: Endpoint, schemas: Schemas, endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    whole, kinds = _LONG_PART.findall(endpoint.path), {"session": SessionName, **endpoint.parts}
    parameters: list[dict[str, Any]] = []
    for name in _PART.findall(endpoint.path):
        schema = {"type": "string", "pattern": "^.+$" if name in whole else "^[^/]+$"}
        schema = msgspec.json.schema(kinds[name]) if name in kinds else schema
        parameters.append({"name": name, "in": "path", "required": True, "schema": schema})
    fields = msgspec.json.schema(endpoint.query)["$defs"][endpoint.query.__name__]
    for name, schema in fields["properties"].items():
        required = name in fields.get("required", ())
        parameters.append({"name": name, "in": "query", "required": required, "schema": schema})
    text = {"type": "string"}
    parameters += [{"name": name, "in": "header", "required": False, "schema": text} for name in endpoint.headers]

    success: dict[str, Any] = {"description": HTTPStatus(endpoint.status).phrase}
    if endpoint.sends:
        success["headers"] = _sent(endpoint.sends)
    if endpoint.media != JSON:
        success["content"] = {endpoint.media: {"schema": EVENT if endpoint.media == "text/event-stream" else text}}
    elif endpoint.answer is not None:
        success["content"] = {JSON: {"schema": schemas.of(endpoint.answer)}}
    links = {}  # the operations that are possible on a created entry
    for other in endpoints if "Location" in endpoint.sends else ():
        parts = _PART.findall(other.path)
        if len(parts) == 1 and other.path.startswith(f"{endpoint.path}/{{{parts[0]}}}"):
            links[other.name] = {"operationId": other.name, "parameters": {parts[0]: "$response.body#/id"}}
    if links:
        success["links"] = links

    responses = {str(endpoint.status): success}
    for status in statuses(endpoint):
        error: dict[str, Any] = {"$ref": f"#/components/responses/{status}"}
        if endpoint.path.startswith(PREFIX):
            error = {**_error(status, schemas), "content": {JSON: {"schema": schemas.of(OpenAIError)}}}
        responses[str(status)] = error
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "x-role": endpoint.role,
        "parameters": parameters,
        "responses": responses,
    }
    if endpoint.handler.__doc__:
        operation["description"] = " ".join(endpoint.handler.__doc__.split())
    if endpoint.role is None:
        operation["security"] = []
    if endpoint.body is not None and endpoint.method in BODY_METHODS:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": schemas.of(endpoint.body)}}}
    return operation


def _error(status: int, schemas: Schemas) -> dict[str, Any]:
    error: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if status == 304:
        return {**error, "headers": _sent(("ETag",))}
    if status in {429, 503}:
        error["headers"] = _sent(("Retry-After",))
    if status == 401:
        error["headers"] = _sent(("WWW-Authenticate",))
    return {**error, "content": {MEDIA_TYPE: {"schema": schemas.of(Problem)}}}


def _sent(names: Sequence[str]) -> dict[str, Any]:
    return {name: {"schema": {"type": "string"}, "description": _HEADERS[name]} for name in names}
