"""The planner's tools as a registry (TOL-7, TOL-12), and their database: SQLite in the person's state of the project,
or the one at NAVIGATOR_DATABASE_URL."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.errors import KernelError, NotLoadable
from navigator_kernel.storage_errors import database_failed, empty, newer, storage_failed
from navigator_kernel.tools.factory import FunctionTool, Sessions, ToolFactory
from navigator_kernel.values.chat import ToolDef

if TYPE_CHECKING:
    from navigator_kernel.ports import ProjectPorts

URL = "NAVIGATOR_DATABASE_URL"
ALONE = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(6022140)"}
VERSION = 1  # of the tables in a SQLite file
WAIT = 30.0  # seconds that a session waits for another one


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


def open_sessions(file: Path, prepare: Callable[[], None]) -> Callable[[], Any]:
    """Returns a factory of SQLAlchemy sessions; the first one creates the tables. `prepare` makes the file's folder.

    NotLoadable without SQLAlchemy or the database's driver, KernelError if the database cannot be used.
    """

    @cache
    def factory() -> Any:
        url = os.environ.get(URL, "")
        try:
            from sqlalchemy.exc import SQLAlchemyError
            from sqlalchemy.orm import sessionmaker

            engine = _engine(url, file, prepare)
        except ImportError as error:
            hint = f"pip install 'navigator-kernel[{'postgres' if url else 'planner'}]'"
            raise NotLoadable(f"a package of the planner is missing: {error.name}", hint=hint) from error
        except SQLAlchemyError as error:
            hint = f"check {URL}" if url else f"fix or move {str(file)!r}"
            raise KernelError(f"the planner's database cannot be used: {type(error).__name__}", hint=hint) from None
        return sessionmaker(engine, expire_on_commit=False)

    return lambda: factory()()


def _engine(url: str, file: Path, prepare: Callable[[], None]) -> Any:
    """The engine, with one connection per session: the kernel serves one person, and its processes are short."""
    import sqlite3

    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import NullPool

    if url:
        scheme, _, rest = url.partition("://")
        url = f"postgresql+psycopg://{rest}" if scheme in {"postgres", "postgresql"} else url
        engine = create_engine(url, poolclass=NullPool)
    else:
        prepare()
        if not file.exists():
            _make_file(file)
        engine = create_engine("sqlite://", creator=lambda: _connected(file), poolclass=NullPool)

        def raise_named(context: Any) -> None:
            error = context.original_exception
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.IntegrityError):
                raise database_failed(file, error) from error

        event.listen(engine, "handle_error", raise_named)
    _made(engine)
    return engine


def _make_file(file: Path) -> None:
    """Makes the database complete or not at all, so that an empty file is damage. Of two processes, one makes it."""
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    fresh = file.with_name(f".navigator-{os.urandom(8).hex()}.tmp")
    try:
        with closing(_connected(fresh)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        _made(create_engine("sqlite://", creator=lambda: _connected(fresh), poolclass=NullPool))
        with suppress(FileExistsError):
            os.link(fresh, file)
    except OSError as error:
        raise storage_failed(f"cannot make {str(file)!r}", error) from error
    finally:
        fresh.unlink(missing_ok=True)


def _made(engine: Any) -> None:
    """Creates the tables and the default project in one transaction, which blocks other processes that do the same."""
    from sqlalchemy import insert, inspect, select

    from navigator_planner.tables import DEFAULT_PROJECT, Base, Project

    first = select(Project.id).where(Project.id == DEFAULT_PROJECT)
    with engine.begin() as connection:
        there = inspect(connection).get_table_names()
        if Base.metadata.tables.keys() <= set(there) and connection.scalar(first):
            return
    with engine.begin() as connection:
        connection.exec_driver_sql(ALONE.get(engine.dialect.name, "SELECT 1"))
        Base.metadata.create_all(connection)
        if not connection.scalar(first):
            connection.execute(insert(Project).values(id=DEFAULT_PROJECT, name="Default"))


def _connected(file: Path) -> Any:
    import sqlite3

    if file.is_symlink():  # a foreign repository may contain one
        raise sqlite3.OperationalError("it is a link")
    if file.exists() and not file.stat().st_size:
        raise empty(file)
    connection = sqlite3.connect(file, timeout=WAIT, check_same_thread=False)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        connection.close()
        raise newer(file, version, VERSION)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")  # so that `doctor --repair` does not bring back deleted rows
    return connection
