"""Endpoints for notes and the links between them, with the same functions as the tools of chat (TOL-13)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from navigator_kernel.values.http.conditions import IF_NONE_MATCH, tag_of, tagged
from navigator_kernel.values.http.cursors import Page
from navigator_kernel.values.http.endpoint import Answer, Call, Endpoint
from navigator_planner import schemas
from navigator_planner.api.answers import (
    FoundNotes,
    KeptLink,
    KeptNote,
    LinkedNotes,
    NoteQuery,
    Notes,
    Number,
)
from navigator_planner.api.calls import (
    ERRORS,
    arguments,
    created,
    in_session,
    numbered,
    place_in,
    worked,
)

if TYPE_CHECKING:
    from navigator_planner.toolkit import OpenToolkit


async def list_notes(planner: OpenToolkit, call: Call) -> Answer:
    """Lists notes, newest first."""
    before, limit = place_in(call.query.cursor, Number), call.query.limit

    def listed(db: Any) -> dict[str, Any]:
        from navigator_planner.service import note_list

        return numbered("notes", note_list(db, before, limit + 1), limit)

    return tagged(await in_session(planner, listed), call.headers)


async def read_note(planner: OpenToolkit, call: Call) -> Answer:
    def read(db: Any) -> dict[str, Any]:
        from navigator_planner.service import note_get

        return note_get(db, call.path["note"])

    return tagged(await in_session(planner, read), call.headers)


async def list_links(planner: OpenToolkit, call: Call) -> Answer:
    """Lists the notes that a note is linked with, in both directions."""

    def listed(db: Any) -> dict[str, Any]:
        from navigator_planner.service import note_links

        return {"links": note_links(db, call.path["note"])}

    return tagged(await in_session(planner, listed), call.headers)


async def create_note(planner: OpenToolkit, call: Call) -> Answer:
    made = await worked(planner, lambda kit: kit.tools["note_create"].call(call.body))
    return created(made, f"/api/notes/{made['id']}")


async def search_notes(planner: OpenToolkit, call: Call) -> Answer:
    """Searches notes by meaning, best first; without an encoder by words."""
    wanted = arguments(schemas.NoteSearch, **msgspec.structs.asdict(call.query))
    found = await worked(planner, lambda kit: kit.tools["note_search"].call(wanted))
    return tagged({"notes": found}, call.headers)


async def create_link(planner: OpenToolkit, call: Call) -> Answer:
    made = await worked(planner, lambda kit: kit.tools["link_create"].call(call.body))
    return Answer(value=made, status=201, headers={"etag": tag_of(made)})


_read = partial(Endpoint, "GET", role="read", tag="notes", headers=(IF_NONE_MATCH,), sends=("ETag",), errors=ERRORS)
_create = partial(Endpoint, "POST", role="chat", tag="notes", status=201)
_one: Any = {"parts": {"note": Number}, "errors": (404, *ERRORS)}
_note: Any = {"sends": ("ETag", "Location"), "answer": KeptNote, "errors": ERRORS}
_link: Any = {"sends": ("ETag",), "answer": KeptLink, "errors": (404, 409, *ERRORS)}

ENDPOINTS = (
    _read("/api/notes", "List notes, newest first", list_notes, query=Page, answer=Notes),
    _create("/api/notes", "Write a note", create_note, body=schemas.NoteCreate, **_note),
    _read("/api/notes/search", "Search notes by what they mean", search_notes, query=NoteQuery, answer=FoundNotes),
    _read("/api/notes/{note}", "Read a note", read_note, answer=KeptNote, **_one),
    _read(
        "/api/notes/{note}/links", "List the notes that a note is linked with", list_links, answer=LinkedNotes, **_one
    ),
    _create("/api/links", "Link two notes", create_link, body=schemas.NoteLinkCreate, **_link),
)
