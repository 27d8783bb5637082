"""The tables of the planner, the same in SQLite and Postgres; every time in them is UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import CheckConstraint, DateTime, ForeignKey, Identity, LargeBinary, String, Text, TypeDecorator
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

DEFAULT_PROJECT = 1  # the project that cannot be deleted (JIT-13)


class Moment(TypeDecorator[datetime]):
    """A time with its zone. SQLite stores no zone, so times are stored and returned in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Any) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time needs its zone: 2026-01-31T15:00:00+08:00")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Any) -> datetime | None:
        return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)


def _later(before: datetime | None) -> datetime:
    """The current time, or if `before` is later, the first moment after it."""
    now = datetime.now(UTC)
    return now if before is None else max(now, before + timedelta(microseconds=1))


class Base(DeclarativeBase):
    pass


class Project(Base):
    """The default project always exists; the numbers of others begin after it."""

    __tablename__ = "projects"

    id: Mapped[int] = mapped_column(Identity(start=DEFAULT_PROJECT + 1), primary_key=True)
    name: Mapped[str] = mapped_column(String(200))


class Task(Base):
    """`updated_at` is its version: a task changed meanwhile is neither changed nor deleted (StaleDataError)."""

    __tablename__ = "tasks"
    __table_args__ = (CheckConstraint("priority BETWEEN 1 AND 5", name="priority_1_to_5"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(500))
    description: Mapped[str] = mapped_column(Text, default="")
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"), default=DEFAULT_PROJECT)
    priority: Mapped[int] = mapped_column(default=3)
    status: Mapped[str] = mapped_column(String(20), default="open")
    start_time: Mapped[datetime | None] = mapped_column(Moment)
    end_time: Mapped[datetime | None] = mapped_column(Moment)
    created_at: Mapped[datetime] = mapped_column(Moment, default=lambda: datetime.now(UTC))
    updated_at: Mapped[datetime] = mapped_column(Moment)

    __mapper_args__ = {"version_id_col": updated_at, "version_id_generator": _later}  # noqa: RUF012 - SQLAlchemy's


class Note(Base):
    """`vector` is the vector of its text by the encoder `encoder`, as float32."""

    __tablename__ = "notes"

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(500))
    content: Mapped[str] = mapped_column(Text, default="")
    encoder: Mapped[str] = mapped_column(String(200), default="")
    vector: Mapped[bytes | None] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(Moment, default=lambda: datetime.now(UTC))


class NoteLink(Base):
    __tablename__ = "note_links"

    id: Mapped[int] = mapped_column(primary_key=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("notes.id"))
    target_id: Mapped[int] = mapped_column(ForeignKey("notes.id"))
    relation: Mapped[str] = mapped_column(String(100), default="related")
