"""What a model may say to the planner's tools."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
Priority = Annotated[int, Field(ge=1, le=5, description="1 to 5")]
Status = Literal["open", "done"]
Moment = Annotated[AwareDatetime, Field(description="ISO 8601 with its zone, as 2026-01-31T15:00:00+08:00")]


class Said(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TaskCreate(Said):
    title: Title
    description: str = ""
    project_id: int = Field(1, ge=1)
    priority: Priority = 3
    start_time: Moment | None = None
    end_time: Moment | None = None

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> TaskCreate:
        if self.start_time and self.end_time and self.end_time < self.start_time:
            raise ValueError("end_time is before start_time")
        return self


class TaskChange(Said):
    """Only what is named is changed."""

    title: Title | None = None
    description: str | None = None
    project_id: int | None = Field(None, ge=1)
    priority: Priority | None = None
    status: Status | None = None
    start_time: Moment | None = None
    end_time: Moment | None = None


class TaskUpdate(Said):
    task_id: int
    changes: TaskChange


class TaskId(Said):
    task_id: int


class TaskList(Said):
    status: Status | None = None
    project_id: int | None = None
    words: str = Field("", description="words of its title or description")
    before: Moment | None = None
    limit: int = Field(50, ge=1, le=200)


class TaskSnooze(Said):
    task_id: int
    until: Moment


class NoteCreate(Said):
    title: Title
    content: str = ""


class NoteSearch(Said):
    query: Title
    limit: int = Field(5, ge=1, le=50)


class NoteLinkCreate(Said):
    source_id: int
    target_id: int
    relation: Annotated[str, StringConstraints(min_length=1, max_length=100)] = "related"
