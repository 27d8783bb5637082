"""Turns endpoints into routes: reads the request, checks the role, and answers every failure with a problem."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from navigator_kernel.gateway.logs import log_answer
from navigator_kernel.gateway.problems import ProblemResponse, problem_of
from navigator_kernel.gateway.streams.sse import response_of
from navigator_kernel.values.http.endpoint import JSON, Answer, Call, Caller, Endpoint, HttpProblem
from navigator_kernel.values.http.sse import EventStream

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from navigator_kernel.gateway.gateway import Gateway

BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})


def routes_of(endpoints: Sequence[Endpoint], gateway: Gateway) -> list[Route]:
    """One route for each path, so that other methods are answered with 405."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in endpoints:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [Route(path, _dispatcher(methods, gateway), methods=list(methods)) for path, methods in by_path.items()]


def _dispatcher(endpoints: Mapping[str, Endpoint], gateway: Gateway) -> Callable[[Request], Awaitable[ASGIApp]]:
    async def dispatch(request: Request) -> Any:
        endpoint, began = endpoints["GET" if request.method == "HEAD" else request.method], time.perf_counter()
        try:
            service = gateway if endpoint.service is None else endpoint.service
            call = await _call(endpoint, request)
            if inspect.iscoroutinefunction(endpoint.handler):
                value = await endpoint.handler(service, call)
            else:
                value = await asyncio.to_thread(endpoint.handler, service, call)
            answer = _response(endpoint, value)
        except Exception as error:  # noqa: BLE001 - every failure becomes a problem document
            answer = problem_of(error)
        status = getattr(answer, "status_code", 200)
        seconds, caller = time.perf_counter() - began, request.scope.get("caller")
        gateway.metrics.note(endpoint.method, endpoint.path, status, seconds)
        log_answer(endpoint.method, endpoint.path, status, seconds, caller.id if caller else "")
        return answer

    return dispatch


async def _call(endpoint: Endpoint, request: Request) -> Call:
    """What is asked: 403 for another role, 404 if a part of the path is not of its type, 415 for a body of another
    media type, 400 for a wrong query and for a body that is not JSON, 422 for one that does not fit."""
    caller: Caller = request.scope.get("caller") or Caller(id="", role="read")
    if endpoint.role is not None and not caller.may(endpoint.role):
        hint = f"navigator serve --new-token --role {endpoint.role}"
        raise HttpProblem(403, "role", f"this needs a token with the role {endpoint.role}", hint=hint)
    path = dict(request.path_params)
    try:
        path |= {name: msgspec.convert(path[name], kind, strict=False) for name, kind in endpoint.parts.items()}
    except msgspec.ValidationError:  # nothing can be there
        raise HttpProblem(404, "not_found", "there is nothing at this address") from None
    known, given = endpoint.query.__struct_encode_fields__, request.query_params.multi_items()
    if unknown := next((name for name, _ in given if name not in known), ""):
        raise HttpProblem(400, "usage", f"there is no parameter {unknown!r}", hint=f"there are: {', '.join(known)}")
    if len(dict(given)) < len(given):
        raise HttpProblem(400, "usage", "a parameter is given twice")
    try:
        query = msgspec.convert(dict(given), endpoint.query, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise HttpProblem(400, "usage", f"the query is not valid: {error}") from None
    body = None
    if endpoint.body is not None:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            raise HttpProblem(415, "media_type", f"the body must be {JSON}", hint=f"Content-Type: {JSON}")
        body = read_body(endpoint.body, await request.body())
    return Call(caller=caller, path=path, query=query, body=body, headers=request.headers)


T = TypeVar("T")


def read_body(kind: type[T], data: bytes) -> T:
    """Parses JSON in UTF-8 as `kind`; 400 if it is not JSON, 422 if it does not fit."""
    try:
        text = data.decode("utf-8")
        if is_pydantic(kind):
            return cast(T, _read_model(kind, text))
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise HttpProblem(422, "invalid", f"the body is not valid: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HttpProblem(400, "usage", f"the body is not JSON: {error}") from None


def _read_model(kind: Any, text: str) -> Any:
    from pydantic import ValidationError

    msgspec.json.decode(text)
    try:
        return kind.model_validate_json(text, strict=True)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'body'}: {one['msg']}" for one in error.errors())
        raise HttpProblem(422, "invalid", f"the body is not valid: {wrong}") from None


def is_pydantic(kind: Any) -> bool:
    """Whether `kind` is a pydantic model."""
    return inspect.isclass(kind) and hasattr(kind, "model_validate")


def _response(endpoint: Endpoint, value: Any) -> Any:
    if isinstance(value, EventStream):
        return response_of(value)
    if isinstance(value, Response) or (callable(value) and not isinstance(value, Struct)):
        return value
    answer = value if isinstance(value, Answer) else Answer(value=value, status=endpoint.status)
    headers = {"cache-control": "no-store", **answer.headers}
    if answer.status in {204, 304}:
        return Response(status_code=answer.status, headers=headers)
    data = msgspec.json.encode(answer.value, enc_hook=str)
    return Response(data, answer.status, headers=headers, media_type=endpoint.media)


def not_found() -> ProblemResponse:
    return ProblemResponse(404, "not_found", "there is nothing at this address", hint="GET /openapi.json lists all")
