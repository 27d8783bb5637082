"""Endpoints for tasks, with the same functions as the tools of chat (TOL-13)."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from navigator_kernel.tools.factory import plain
from navigator_kernel.values.http.conditions import IF_MATCH, IF_NONE_MATCH, refuse_another, tag_of, tagged
from navigator_kernel.values.http.cursors import cursor_of
from navigator_kernel.values.http.endpoint import Answer, Call, Endpoint, HttpProblem
from navigator_planner import schemas
from navigator_planner.api.answers import KeptTask, Number, TaskFilter, Tasks
from navigator_planner.api.calls import ERRORS, arguments, created, in_session, place_in, worked

if TYPE_CHECKING:
    from navigator_planner.toolkit import OpenToolkit, Toolkit

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


_of = partial(Endpoint, role="chat", tag="tasks")
_read = partial(_of, "GET", role="read", headers=(IF_NONE_MATCH,), sends=("ETag",))
_task: Any = {"parts": {"task": Number}, "headers": (IF_MATCH,), "errors": (404, 409, 412, *ERRORS)}
_changed_task: Any = {**_task, "sends": ("ETag",), "answer": KeptTask}
_created: Any = {"sends": ("ETag", "Location"), "answer": KeptTask, "status": 201, "errors": (404, 409, *ERRORS)}
_one: Any = {"parts": {"task": Number}, "answer": KeptTask, "errors": (404, *ERRORS)}

ENDPOINTS = (
    _read("/api/tasks", "List tasks by their time", list_tasks, query=TaskFilter, answer=Tasks, errors=ERRORS),
    _of("POST", "/api/tasks", "Create a task", create_task, body=schemas.TaskCreate, **_created),
    _read("/api/tasks/{task}", "Read a task", read_task, **_one),
    _of(
        "PATCH", "/api/tasks/{task}", "Change fields of a task", update_task, body=schemas.TaskChanges, **_changed_task
    ),
    _of("DELETE", "/api/tasks/{task}", "Delete a task", delete_task, status=204, **_task),
    _of("POST", "/api/tasks/{task}/snooze", "Postpone a task", snooze_task, body=schemas.TaskUntil, **_changed_task),
)
