"""Opens the planner's database: SQLite in `mybox/state`, or what NAVIGATOR_DATABASE_URL names."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from navigator_kernel.errors import KernelError, NotLoadable

URL = "NAVIGATOR_DATABASE_URL"


def open_sessions(file: Path, prepare: Callable[[], None]) -> Callable[[], Any]:
    """Makes a session of SQLAlchemy; the tables are made with the first one. `prepare` makes the file's folder.

    NotLoadable without SQLAlchemy or the database's driver, KernelError where it cannot be reached.
    """

    @cache
    def factory() -> Any:
        try:
            from sqlalchemy import create_engine, event
            from sqlalchemy.exc import ArgumentError, SQLAlchemyError
            from sqlalchemy.orm import Session, sessionmaker

            from navigator_kernel.planner.tables import DEFAULT_PROJECT, Base, Project
        except ImportError as error:
            raise NotLoadable(
                "the planner needs the extra `planner`", hint="pip install 'navigator-kernel[planner]'"
            ) from error
        url = os.environ.get(URL, "")
        try:
            if url:
                engine = create_engine(
                    url.replace("postgres://", "postgresql+psycopg://", 1).replace(
                        "postgresql://", "postgresql+psycopg://", 1
                    )
                )
            else:
                prepare()
                engine = create_engine("sqlite://", creator=lambda: _connected(file))
                event.listen(engine, "connect", _prepared)
            Base.metadata.create_all(engine)
            with Session(engine) as session:
                if session.get(Project, DEFAULT_PROJECT) is None:
                    session.add(Project(id=DEFAULT_PROJECT, name="Default"))
                    session.commit()
        except ImportError as error:
            raise NotLoadable(
                f"the driver for that database is missing: {error}", hint="pip install 'navigator-kernel[postgres]'"
            ) from error
        except (SQLAlchemyError, ArgumentError) as error:
            hint = f"check {URL}" if url else f"mend or move {str(file)!r}"
            raise KernelError(f"the planner's database cannot be used: {type(error).__name__}", hint=hint) from None
        return sessionmaker(engine, expire_on_commit=False)

    return lambda: factory()()


def _connected(file: Path) -> Any:
    import sqlite3

    if file.is_symlink():  # a stranger's repository may bring one
        raise sqlite3.OperationalError("it is a link")
    return sqlite3.connect(file, timeout=30.0, check_same_thread=False)


def _prepared(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA foreign_keys = ON")
