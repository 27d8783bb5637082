"""Projects of tasks; the first one cannot be deleted (JIT-13)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from navigator_kernel.tools.factory import plain
from navigator_kernel.values.http.conditions import IF_MATCH, IF_NONE_MATCH, refuse_another, tagged
from navigator_kernel.values.http.cursors import Page
from navigator_kernel.values.http.endpoint import Answer, Call, Endpoint
from navigator_planner import schemas
from navigator_planner.api.answers import KeptProject, Number, Projects
from navigator_planner.api.calls import ERRORS, created, in_session, numbered, place_in

if TYPE_CHECKING:
    from navigator_planner.toolkit import OpenToolkit


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


_read = partial(Endpoint, "GET", role="read", tag="projects", headers=(IF_NONE_MATCH,), sends=("ETag",))
_change = partial(Endpoint, role="chat", tag="projects")
_created: Any = {"sends": ("ETag", "Location"), "answer": KeptProject, "status": 201, "errors": ERRORS}
_one: Any = {"parts": {"project": Number}, "answer": KeptProject, "errors": (404, *ERRORS)}
_deleted: Any = {"headers": (IF_MATCH,), "status": 204, "errors": (404, 409, 412, *ERRORS)}
_DELETE = "Delete a project; its tasks go to project 1"

ENDPOINTS = (
    _read("/api/projects", "List projects", list_projects, query=Page, answer=Projects, errors=ERRORS),
    _change("POST", "/api/projects", "Create a project", create_project, body=schemas.ProjectCreate, **_created),
    _read("/api/projects/{project}", "Read a project", read_project, **_one),
    _change("DELETE", "/api/projects/{project}", _DELETE, delete_project, parts={"project": Number}, **_deleted),
)
