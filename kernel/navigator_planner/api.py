"""The planner's endpoints of the HTTP API, with the same functions as the tools of chat (TOL-13)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import replace
from pydantic import ValidationError

from navigator_kernel.errors import Busy, KernelError, NotLoadable
from navigator_kernel.tools.factory import plain
from navigator_kernel.values.http.conditions import (
    IF_MATCH,
    IF_NONE_MATCH,
    another_state,
    refuse_another,
    tag_of,
    tagged,
)
from navigator_kernel.values.http.cursors import Page, cursor_of, place_of
from navigator_kernel.values.http.endpoint import Answer, Call, Endpoint, HttpProblem
from navigator_planner import schemas
from navigator_planner.answers import (
    FoundNotes,
    KeptLink,
    KeptNote,
    KeptProject,
    KeptTask,
    LinkedNotes,
    NoteQuery,
    Notes,
    Number,
    Projects,
    TaskFilter,
    Tasks,
)
from navigator_planner.errors import ChangedMeanwhile, DefaultProject, NoSuchEntry

if TYPE_CHECKING:
    from navigator_planner.toolkit import OpenToolkit, Toolkit

T = TypeVar("T")
HINT = "pip install 'navigator-kernel[gateway]'"
ERRORS = (501, 503)  # the package is missing; no database


def endpoints(planner: OpenToolkit) -> Sequence[Endpoint]:
    """The endpoints of tasks, notes and projects, which work with `planner`."""
    return tuple(replace(endpoint, service=planner) for endpoint in (*TASKS, *NOTES, *PROJECTS))


# Tasks

_PLACE = tuple[Annotated[datetime, Meta(tz=True)] | None, Number, Number]


async def list_tasks(planner: OpenToolkit, call: Call) -> Answer:
    """Lists tasks by their time, those without one last."""
    asked = msgspec.structs.asdict(call.query)
    place = place_in(asked.pop("cursor"), _PLACE)
    try:
        after = None if place is None else (place[0] and place[0].astimezone(UTC), *place[1:])
    except OverflowError:
        raise HttpProblem(400, "usage", "the cursor is not one of this list") from None
    wanted = arguments(schemas.TaskList, **asked)

    def listed(db: Any) -> dict[str, Any]:
        from navigator_planner.service import TaskPlace, task_page

        tasks, last = task_page(db, wanted, None if after is None else TaskPlace(*after))
        following = cursor_of(msgspec.json.encode(tuple(last)).decode()) if last else ""
        return {"tasks": plain(tasks), "next": following}

    return tagged(await in_session(planner, listed), call.headers)


async def read_task(planner: OpenToolkit, call: Call) -> Answer:
    wanted = schemas.TaskId(task_id=call.path["task"])
    return tagged(await worked(planner, lambda kit: kit.tools["task_get"].call(wanted)), call.headers)


async def create_task(planner: OpenToolkit, call: Call) -> Answer:
    made = await worked(planner, lambda kit: kit.tools["task_create"].call(call.body))
    return created(made, f"/api/tasks/{made['id']}")


async def update_task(planner: OpenToolkit, call: Call) -> Answer:
    """Changes only the fields that `changes` names."""
    given = schemas.TaskUpdate(task_id=call.path["task"], changes=call.body.changes)
    return await _changed(planner, call, "task_update", given)


async def snooze_task(planner: OpenToolkit, call: Call) -> Answer:
    """Moves the start of the task to `until`; it takes as long as before."""
    given = schemas.TaskSnooze(task_id=call.path["task"], until=call.body.until)
    return await _changed(planner, call, "task_snooze", given)


async def delete_task(planner: OpenToolkit, call: Call) -> Answer:
    """Deletes the task at once: a client asks its person itself."""
    await _changed(planner, call, "task_delete", schemas.TaskId(task_id=call.path["task"]))
    return Answer(status=204)


async def _changed(planner: OpenToolkit, call: Call, tool: str, given: Any) -> Answer:
    """Changes one task, if it is in the state that `If-Match` names."""
    wanted = schemas.TaskId(task_id=call.path["task"])

    def change(kit: Toolkit) -> Any:
        seen = []  # SQLAlchemy reads an unreferenced row again, and would change a state that was not checked

        def check(db: Any) -> None:
            seen.append(kit.tools["task_get"].definition.func(db, wanted))
            refuse_another(plain(seen[0]), call.headers)

        return kit.tools[tool].call(given, check)

    value = await worked(planner, change, call.headers)
    return Answer(value=value, headers={"etag": tag_of(value)})


_task_of = partial(Endpoint, role="chat", tag="tasks")
_read_tasks = partial(_task_of, "GET", role="read", headers=(IF_NONE_MATCH,), sends=("ETag",))
_one_task: Any = {"parts": {"task": Number}, "headers": (IF_MATCH,), "errors": (404, 409, 412, *ERRORS)}
_changed_task: Any = {**_one_task, "sends": ("ETag",), "answer": KeptTask}
_created_task: Any = {"sends": ("ETag", "Location"), "answer": KeptTask, "status": 201, "errors": (404, 409, *ERRORS)}
_found_task: Any = {"parts": {"task": Number}, "answer": KeptTask, "errors": (404, *ERRORS)}

TASKS = (
    _read_tasks("/api/tasks", "List tasks by their time", list_tasks, query=TaskFilter, answer=Tasks, errors=ERRORS),
    _task_of("POST", "/api/tasks", "Create a task", create_task, body=schemas.TaskCreate, **_created_task),
    _read_tasks("/api/tasks/{task}", "Read a task", read_task, **_found_task),
    _task_of(
        "PATCH", "/api/tasks/{task}", "Change fields of a task", update_task, body=schemas.TaskChanges, **_changed_task
    ),
    _task_of("DELETE", "/api/tasks/{task}", "Delete a task", delete_task, status=204, **_one_task),
    _task_of(
        "POST", "/api/tasks/{task}/snooze", "Postpone a task", snooze_task, body=schemas.TaskUntil, **_changed_task
    ),
)


# Notes and the links between them


async def list_notes(planner: OpenToolkit, call: Call) -> Answer:
    """Lists notes, newest first."""
    before, limit = place_in(call.query.cursor, Number), call.query.limit

    def listed(db: Any) -> dict[str, Any]:
        from navigator_planner.service import note_list

        return numbered("notes", note_list(db, before, limit + 1), limit)

    return tagged(await in_session(planner, listed), call.headers)


async def read_note(planner: OpenToolkit, call: Call) -> Answer:
    def read(db: Any) -> dict[str, Any]:
        from navigator_planner.service import note_get

        return note_get(db, call.path["note"])

    return tagged(await in_session(planner, read), call.headers)


async def list_links(planner: OpenToolkit, call: Call) -> Answer:
    """Lists the notes that a note is linked with, in both directions."""

    def listed(db: Any) -> dict[str, Any]:
        from navigator_planner.service import note_links

        return {"links": note_links(db, call.path["note"])}

    return tagged(await in_session(planner, listed), call.headers)


async def create_note(planner: OpenToolkit, call: Call) -> Answer:
    made = await worked(planner, lambda kit: kit.tools["note_create"].call(call.body))
    return created(made, f"/api/notes/{made['id']}")


async def search_notes(planner: OpenToolkit, call: Call) -> Answer:
    """Searches notes by meaning, best first; without an encoder by words."""
    wanted = arguments(schemas.NoteSearch, **msgspec.structs.asdict(call.query))
    found = await worked(planner, lambda kit: kit.tools["note_search"].call(wanted))
    return tagged({"notes": found}, call.headers)


async def create_link(planner: OpenToolkit, call: Call) -> Answer:
    made = await worked(planner, lambda kit: kit.tools["link_create"].call(call.body))
    return Answer(value=made, status=201, headers={"etag": tag_of(made)})


_read_notes = partial(
    Endpoint, "GET", role="read", tag="notes", headers=(IF_NONE_MATCH,), sends=("ETag",), errors=ERRORS
)
_create_notes = partial(Endpoint, "POST", role="chat", tag="notes", status=201)
_found_note: Any = {"parts": {"note": Number}, "errors": (404, *ERRORS)}
_created_note: Any = {"sends": ("ETag", "Location"), "answer": KeptNote, "errors": ERRORS}
_created_link: Any = {"sends": ("ETag",), "answer": KeptLink, "errors": (404, 409, *ERRORS)}

NOTES = (
    _read_notes("/api/notes", "List notes, newest first", list_notes, query=Page, answer=Notes),
    _create_notes("/api/notes", "Write a note", create_note, body=schemas.NoteCreate, **_created_note),
    _read_notes(
        "/api/notes/search", "Search notes by what they mean", search_notes, query=NoteQuery, answer=FoundNotes
    ),
    _read_notes("/api/notes/{note}", "Read a note", read_note, answer=KeptNote, **_found_note),
    _read_notes(
        "/api/notes/{note}/links",
        "List the notes that a note is linked with",
        list_links,
        answer=LinkedNotes,
        **_found_note,
    ),
    _create_notes("/api/links", "Link two notes", create_link, body=schemas.NoteLinkCreate, **_created_link),
)


# Projects of tasks; the first one cannot be deleted (JIT-13)


async def list_projects(planner: OpenToolkit, call: Call) -> Answer:
    """Lists projects, the default project first."""
    after, limit = place_in(call.query.cursor, Number) or 0, call.query.limit

    def listed(db: Any) -> dict[str, Any]:
        from navigator_planner.service import project_list

        return numbered("projects", plain(project_list(db, after, limit + 1)), limit)

    return tagged(await in_session(planner, listed), call.headers)


async def read_project(planner: OpenToolkit, call: Call) -> Answer:
    def read(db: Any) -> Any:
        from navigator_planner.service import project_get

        return plain(project_get(db, call.path["project"]))

    return tagged(await in_session(planner, read), call.headers)


async def create_project(planner: OpenToolkit, call: Call) -> Answer:
    def create(db: Any) -> Any:
        from navigator_planner.service import project_create

        return plain(project_create(db, call.body.name))

    made = await in_session(planner, create, writes=True)
    return created(made, f"/api/projects/{made['id']}")


async def delete_project(planner: OpenToolkit, call: Call) -> Answer:
    """Deletes a project; its tasks go to project 1, which itself cannot be deleted."""
    number = call.path["project"]

    def delete(db: Any) -> None:
        from navigator_planner.service import project_delete, project_get

        seen = project_get(db, number)
        refuse_another(plain(seen), call.headers)
        project_delete(db, number)

    await in_session(planner, delete, call.headers, writes=True)
    return Answer(status=204)


_read_projects = partial(Endpoint, "GET", role="read", tag="projects", headers=(IF_NONE_MATCH,), sends=("ETag",))
_change_projects = partial(Endpoint, role="chat", tag="projects")
_created_project: Any = {"sends": ("ETag", "Location"), "answer": KeptProject, "status": 201, "errors": ERRORS}
_found_project: Any = {"parts": {"project": Number}, "answer": KeptProject, "errors": (404, *ERRORS)}
_deleted_project: Any = {"headers": (IF_MATCH,), "status": 204, "errors": (404, 409, 412, *ERRORS)}
_DELETE_PROJECT = "Delete a project; its tasks go to project 1"

PROJECTS = (
    _read_projects("/api/projects", "List projects", list_projects, query=Page, answer=Projects, errors=ERRORS),
    _change_projects(
        "POST", "/api/projects", "Create a project", create_project, body=schemas.ProjectCreate, **_created_project
    ),
    _read_projects("/api/projects/{project}", "Read a project", read_project, **_found_project),
    _change_projects(
        "DELETE",
        "/api/projects/{project}",
        _DELETE_PROJECT,
        delete_project,
        parts={"project": Number},
        **_deleted_project,
    ),
)


# Calls of the planner's functions: on a thread, with a session, their refusals as problems


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
        case _:
            from sqlalchemy.exc import OperationalError

            if isinstance(error, OperationalError):
                message = "the database is busy or cannot be reached"
                return HttpProblem(503, "database", message, headers={"Retry-After": "1"})
    return error
