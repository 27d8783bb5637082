"""Opens the planner's database: SQLite in the person's state of the project, or the one at NAVIGATOR_DATABASE_URL."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from navigator_kernel.errors import KernelError, NotLoadable

URL = "NAVIGATOR_DATABASE_URL"
ALONE = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(6022140)"}
WAIT = 30.0  # seconds that a session waits for another one


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
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import NullPool

    if url:
        scheme, _, rest = url.partition("://")
        url = f"postgresql+psycopg://{rest}" if scheme in {"postgres", "postgresql"} else url
        engine = create_engine(url, poolclass=NullPool)
    else:
        prepare()
        engine = create_engine("sqlite://", creator=lambda: _connected(file), poolclass=NullPool)
        event.listen(engine, "connect", _prepared)
    _made(engine)
    return engine


def _made(engine: Any) -> None:
    """Creates the tables and the default project in one transaction, which blocks other processes that do the same."""
    from sqlalchemy import insert, inspect, select

    from navigator_kernel.planner.tables import DEFAULT_PROJECT, Base, Project

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
    return sqlite3.connect(file, timeout=WAIT, check_same_thread=False)


def _prepared(connection: Any, _record: Any) -> None:
    _write_ahead(connection)
    connection.execute("PRAGMA foreign_keys = ON")


def _write_ahead(connection: Any) -> None:
    """Sets WAL. To change the mode, SQLite needs the file alone for a moment, and it does not wait for that."""
    import sqlite3

    deadline = time.monotonic() + WAIT
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
