"""The inputs of the planner's tools and of its HTTP API."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

LARGEST = 2**31 - 1  # the largest integer of a column in every database
LONGEST = 100_000  # characters of a description or a note
_ISO = r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d"


def _without_nul(text: str) -> str:
    """Refuses the character NUL, which Postgres cannot store."""
    if "\0" in text:
        raise ValueError("it holds the character NUL")
    return text


def _iso(said: Any) -> Any:
    """Parses an ISO 8601 time; a number of seconds is refused, because a person cannot check it."""
    if isinstance(said, datetime):
        return said
    try:
        if isinstance(said, str) and re.match(_ISO, said):
            return datetime.fromisoformat(said.upper())
    except ValueError:
        pass
    raise ValueError("it is not an ISO 8601 time, as 2026-01-31T15:00:00+08:00")


def _in_range(moment: datetime) -> datetime:
    """Refuses a time that is out of range in UTC."""
    try:
        moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("it is outside the years 1 to 9999 in UTC") from None
    return moment


Id = Annotated[int, Field(ge=1, le=LARGEST)]
Text = Annotated[str, StringConstraints(max_length=LONGEST), AfterValidator(_without_nul)]
Title = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), AfterValidator(_without_nul)
]
Priority = Annotated[int, Field(ge=1, le=5, description="1 to 5")]
Status = Literal["open", "done"]
Moment = Annotated[
    AwareDatetime,
    BeforeValidator(_iso),
    AfterValidator(_in_range),
    Field(description="ISO 8601 with its zone, as 2026-01-31T15:00:00+08:00"),
]


class Said(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TaskCreate(Said):
    title: Title
    description: Text = ""
    project_id: Id = 1
    priority: Priority = 3
    start_time: Moment | None = None
    end_time: Moment | None = None

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> TaskCreate:
        if self.start_time and self.end_time and self.end_time < self.start_time:
            raise ValueError("end_time is before start_time")
        return self


class TaskChange(Said):
    """Only the named fields are changed."""

    title: Title | None = None
    description: Text | None = None
    project_id: Id | None = None
    priority: Priority | None = None
    status: Status | None = None
    start_time: Moment | None = None
    end_time: Moment | None = None


class TaskId(Said):
    task_id: Id


class TaskChanges(Said):
    changes: TaskChange


class TaskUpdate(TaskChanges, TaskId):
    pass


class TaskList(Said):
    status: Status | None = None
    project_id: Id | None = None
    words: Annotated[Text, StringConstraints(max_length=500)] = Field(
        default="", description="words of its title or description"
    )
    before: Moment | None = None
    limit: int = Field(default=50, ge=1, le=200)


class TaskUntil(Said):
    until: Moment


class TaskSnooze(TaskUntil, TaskId):
    pass


class NoteCreate(Said):
    title: Title
    content: Text = ""


class NoteSearch(Said):
    query: Title
    limit: int = Field(default=5, ge=1, le=50)


class NoteLinkCreate(Said):
    source_id: Id
    target_id: Id
    relation: Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(_without_nul)] = "related"


class ProjectCreate(Said):
    name: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(_without_nul)
    ]
