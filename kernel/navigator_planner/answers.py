"""Tasks, notes, links and projects as the HTTP API returns them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from navigator_kernel.values.http.cursors import Page

Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"}, description="ISO 8601, in UTC")]
Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Status = Literal["open", "done"]


class KeptTask(Struct, frozen=True, kw_only=True):
    """Each change makes `updated_at` later."""

    id: Number
    title: str
    description: str
    project_id: Number
    priority: Annotated[int, Meta(ge=1, le=5)]
    status: Status
    start_time: Moment | None
    end_time: Moment | None
    created_at: Moment
    updated_at: Moment


class Tasks(Struct, frozen=True, kw_only=True):
    """`next` is the cursor of the next page, empty at the end."""

    tasks: list[KeptTask]
    next: str


class TaskFilter(Page, frozen=True, forbid_unknown_fields=True):
    """`words` are searched for in titles and descriptions; `before` is an ISO 8601 time with its zone."""

    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    status: Status | None = None
    project_id: Number | None = None
    words: Annotated[str, Meta(max_length=500)] = ""
    before: Annotated[str, Meta(extra_json_schema={"format": "date-time"})] | None = None


class KeptNote(Struct, frozen=True, kw_only=True):
    id: Number
    title: str
    content: str


class Notes(Struct, frozen=True, kw_only=True):
    notes: list[KeptNote]
    next: str


class NoteQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Searches by meaning if there is an encoder, otherwise by words."""

    query: Annotated[str, Meta(min_length=1, max_length=500)]
    limit: Annotated[int, Meta(ge=1, le=50)] = 5


class FoundNote(Struct, frozen=True, kw_only=True):
    """`content` is the beginning of the note, 500 characters at most."""

    id: Number
    title: str
    content: str
    score: float


class FoundNotes(Struct, frozen=True, kw_only=True):
    """The best note first."""

    notes: list[FoundNote]


class KeptLink(Struct, frozen=True, kw_only=True):
    id: Number
    source_id: Number
    target_id: Number
    relation: str


class LinkedNote(Struct, frozen=True, kw_only=True):
    """The note at the other end of a link; `outgoing` says that the link starts at the requested note."""

    id: Number
    note_id: Number
    title: str
    relation: str
    outgoing: bool


class LinkedNotes(Struct, frozen=True, kw_only=True):
    """The newest link first."""

    links: list[LinkedNote]


class KeptProject(Struct, frozen=True, kw_only=True):
    id: Number
    name: str


class Projects(Struct, frozen=True, kw_only=True):
    projects: list[KeptProject]
    next: str
