"""The planner's tools as a registry (TOL-7, TOL-12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.tools.factory import FunctionTool, Sessions, ToolFactory
from navigator_kernel.values.chat import ToolDef
from navigator_planner.store import open_sessions

if TYPE_CHECKING:
    from navigator_kernel.ports import ProjectPorts


class Toolkit(Struct, frozen=True):
    """The planner's tools by their names, and `sessions`, which opens a session of their database."""

    tools: Mapping[str, FunctionTool]
    sessions: Sessions


OpenToolkit = Callable[[], Toolkit]


def open_toolkit(project: ProjectPorts) -> Toolkit:
    """Opens the planner's tools. ImportError without SQLAlchemy or pydantic; the database is opened with the first
    session."""
    file = project.state / "planner.sqlite"
    sessions = open_sessions(file, lambda: project.writer.make_folder(file.parent))
    held = ToolFactory(sessions).registry(registry(project.encoder))
    return Toolkit({tool.name: tool for tool in held}, sessions)


def registry(encoder: Callable[[], Any] = lambda: None) -> Mapping[str, ToolDef]:
    """The definitions of the tools. A new tool needs one line here, and its name in the skills that may call it."""
    from navigator_planner import schemas, service

    notes, tasks = service.Notes(encoder), ("refresh:tasks", "toast")
    ask = "Really delete the task {task_id}? / 确定要删除任务 {task_id} 吗？"
    return {
        "task_get": ToolDef(service.task_get, "Shows one task", schemas.TaskId),
        "task_list": ToolDef(service.task_list, "Lists tasks", schemas.TaskList),
        "task_create": ToolDef(service.task_create, "Creates a task", schemas.TaskCreate, tasks),
        "task_update": ToolDef(service.task_update, "Changes fields of a task", schemas.TaskUpdate, tasks),
        "task_delete": ToolDef(service.task_delete, "Deletes a task", schemas.TaskId, tasks, ask),
        "task_snooze": ToolDef(service.task_snooze, "Postpones a task", schemas.TaskSnooze, tasks),
        "note_search": ToolDef(notes.search, "Finds notes by what they mean", schemas.NoteSearch),
        "note_create": ToolDef(notes.create, "Writes a note", schemas.NoteCreate, ("refresh:notes", "toast")),
        "link_create": ToolDef(notes.link, "Links two notes", schemas.NoteLinkCreate, ("refresh:notes", "toast")),
    }
