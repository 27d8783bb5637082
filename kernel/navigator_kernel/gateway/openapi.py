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
        held = _operation(endpoint, schemas, endpoints)
        paths.setdefault(template_of(endpoint.path), {})[endpoint.method.lower()] = held
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
        found, self.components = msgspec.json.schema_components(structs, schema_hook=_unknown, ref_template=REFERENCE)
        self._held: dict[Any, Any] = dict(zip(structs, found, strict=True))
        for model in models:
            held = model.model_json_schema(ref_template=REFERENCE.replace("{name}", "{model}"))
            for name, schema in {**held.pop("$defs", {}), model.__name__: held}.items():
                if self.components.setdefault(name, schema) != schema:
                    raise ValueError(f"two schemas are called {name!r}")
            self._held[model] = {"$ref": REFERENCE.format(name=model.__name__)}

    def of(self, kind: Any) -> Any:
        return self._held[kind]


def _unknown(_kind: Any) -> dict[str, Any]:
    return {}


def _operation(endpoint: Endpoint, schemas: Schemas, endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    held: dict[str, Any] = {
        "operationId": endpoint.name,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "x-role": endpoint.role,
        "parameters": [*_path(endpoint), *_query(endpoint), *_headers(endpoint)],
        "responses": _responses(endpoint, schemas, endpoints),
    }
    if endpoint.handler.__doc__:
        held["description"] = " ".join(endpoint.handler.__doc__.split())
    if endpoint.role is None:
        held["security"] = []
    if endpoint.body is not None and endpoint.method in BODY_METHODS:
        held["requestBody"] = {"required": True, "content": {JSON: {"schema": schemas.of(endpoint.body)}}}
    return held


def _path(endpoint: Endpoint) -> list[dict[str, Any]]:
    whole, kinds = _LONG_PART.findall(endpoint.path), {"session": SessionName, **endpoint.parts}
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": msgspec.json.schema(kinds[name])
            if name in kinds
            else {"type": "string", "pattern": "^.+$" if name in whole else "^[^/]+$"},
        }
        for name in _PART.findall(endpoint.path)
    ]


def _query(endpoint: Endpoint) -> list[dict[str, Any]]:
    schema = msgspec.json.schema(endpoint.query)
    fields = schema["$defs"][endpoint.query.__name__]
    required = fields.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": held}
        for name, held in fields["properties"].items()
    ]


def _headers(endpoint: Endpoint) -> list[dict[str, Any]]:
    text = {"type": "string"}
    return [{"name": name, "in": "header", "required": False, "schema": text} for name in endpoint.headers]


def _responses(endpoint: Endpoint, schemas: Schemas, endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    return {
        str(endpoint.status): _success(endpoint, schemas, endpoints),
        **{str(status): _error_of(endpoint, status, schemas) for status in statuses(endpoint)},
    }


def _success(endpoint: Endpoint, schemas: Schemas, endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    held: dict[str, Any] = {"description": HTTPStatus(endpoint.status).phrase}
    if endpoint.sends:
        held["headers"] = _sent(endpoint.sends)
    if endpoint.media != JSON:
        schema = EVENT if endpoint.media == "text/event-stream" else {"type": "string"}
        held["content"] = {endpoint.media: {"schema": schema}}
    elif endpoint.answer is not None:
        held["content"] = {JSON: {"schema": schemas.of(endpoint.answer)}}
    if "Location" in endpoint.sends and (links := _links(endpoint, endpoints)):
        held["links"] = links
    return held


def _links(endpoint: Endpoint, endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The operations that are possible on a created entry, as links."""
    held = {}
    for other in endpoints:
        parts = _PART.findall(other.path)
        if len(parts) == 1 and other.path.startswith(f"{endpoint.path}/{{{parts[0]}}}"):
            held[other.name] = {"operationId": other.name, "parameters": {parts[0]: "$response.body#/id"}}
    return held


def _error_of(endpoint: Endpoint, status: int, schemas: Schemas) -> dict[str, Any]:
    if not endpoint.path.startswith(PREFIX):
        return {"$ref": f"#/components/responses/{status}"}
    return {**_error(status, schemas), "content": {JSON: {"schema": schemas.of(OpenAIError)}}}


def _error(status: int, schemas: Schemas) -> dict[str, Any]:
    held: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if status == 304:
        return {**held, "headers": _sent(("ETag",))}
    if status in {429, 503}:
        held["headers"] = _sent(("Retry-After",))
    if status == 401:
        held["headers"] = _sent(("WWW-Authenticate",))
    return {**held, "content": {MEDIA_TYPE: {"schema": schemas.of(Problem)}}}


def _sent(names: Sequence[str]) -> dict[str, Any]:
    return {name: {"schema": {"type": "string"}, "description": _HEADERS[name]} for name in names}
