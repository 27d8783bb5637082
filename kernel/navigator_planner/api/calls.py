"""Calls the planner's functions for the HTTP API: on a thread, with a session, its refusals as problems."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from pydantic import ValidationError

from navigator_kernel.errors import Busy, KernelError, NotLoadable
from navigator_kernel.values.http.conditions import IF_MATCH, another_state, tag_of
from navigator_kernel.values.http.cursors import cursor_of, place_of
from navigator_kernel.values.http.endpoint import Answer, HttpProblem
from navigator_planner.errors import ChangedMeanwhile, DefaultProject, NoSuchEntry

if TYPE_CHECKING:
    from navigator_planner.toolkit import OpenToolkit, Toolkit

T = TypeVar("T")
HINT = "pip install 'navigator-kernel[gateway]'"
ERRORS = (501, 503)  # the package is missing; no database


async def worked(planner: OpenToolkit, work: Callable[[Toolkit], T], headers: Mapping[str, str] | None = None) -> T:
    """Runs `work` with the tools and returns its result. `headers` are those of a conditional write."""
    try:
        return await asyncio.to_thread(lambda: work(planner()))
    except Exception as error:
        raise _problem(error, headers or {}) from error


async def in_session(
    planner: OpenToolkit, work: Callable[[Any], T], headers: Mapping[str, str] | None = None, *, writes: bool = False
) -> T:
    """Runs `work` with a session and returns its result; commits if it `writes`."""

    def within(kit: Toolkit) -> T:
        with kit.sessions() as db:
            value = work(db)
            if writes:
                db.commit()
            return value

    return await worked(planner, within, headers)


def arguments(kind: type[T], **given: Any) -> T:
    """The arguments of a tool, from the query; 400 if they do not fit."""
    try:
        return kind(**given)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise HttpProblem(400, "usage", f"the query is not valid: {wrong}") from None


def created(value: Mapping[str, Any], place: str) -> Answer:
    return Answer(value=value, status=201, headers={"etag": tag_of(value), "location": place})


def numbered(name: str, found: Sequence[Mapping[str, Any]], limit: int) -> dict[str, Any]:
    """A page of entries in the order of their numbers; one entry more than `limit` means that others follow."""
    held = found[:limit]
    return {name: held, "next": cursor_of(str(held[-1]["id"])) if len(found) > limit else ""}


def place_in(cursor: str, kind: Any) -> Any:
    """The content of a list's cursor as `kind`; None without a cursor."""
    if not cursor:
        return None
    try:
        return msgspec.json.decode(place_of(cursor), type=kind)
    except msgspec.MsgspecError:
        raise HttpProblem(400, "usage", "the cursor is not one of this list") from None


def _problem(error: Exception, headers: Mapping[str, str]) -> Exception:
    match error:
        case NotLoadable():
            return HttpProblem(501, "planner", error.message, hint=error.hint)
        case ImportError():
            return HttpProblem(501, "planner", f"a package of the planner is missing: {error.name}", hint=HINT)
        case KernelError():
            later = {"Retry-After": "1"} if isinstance(error, Busy) else {}
            return HttpProblem(503, "database", error.message, hint=error.hint, headers=later)
        case ChangedMeanwhile():
            return another_state() if IF_MATCH in headers else HttpProblem(409, "conflict", str(error))
        case NoSuchEntry():
            return HttpProblem(404, "not_found", str(error))
        case DefaultProject():
            return HttpProblem(403, "default_project", str(error))
        case ValueError():
            return HttpProblem(422, "invalid", str(error))
    return _database_problem(error)


def _database_problem(error: Exception) -> Exception:
    from sqlalchemy.exc import OperationalError

    if not isinstance(error, OperationalError):
        return error
    return HttpProblem(503, "database", "the database is busy or cannot be reached", headers={"Retry-After": "1"})
