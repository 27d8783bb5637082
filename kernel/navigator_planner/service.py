"""Operations on projects, tasks, notes and links; each function takes the database session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, and_, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError

from navigator_planner.errors import ChangedMeanwhile, DefaultProject, NoSuchEntry
from navigator_planner.schemas import (
    NoteCreate,
    NoteLinkCreate,
    NoteSearch,
    TaskCreate,
    TaskId,
    TaskList,
    TaskSnooze,
    TaskUpdate,
)
from navigator_planner.tables import DEFAULT_PROJECT, Note, NoteLink, Project, Task

NEAR = 2000  # newest notes that a search reads
LINKS = 200  # newest links of one note


class TaskPlace(NamedTuple):
    """The position of a task in the order of a list."""

    start_time: datetime | None
    priority: int
    id: int


def task_get(db: Session, wanted: TaskId) -> Task:
    """Returns a task; NoSuchEntry if there is none."""
    return _task(db, wanted.task_id)


def task_list(db: Session, wanted: TaskList) -> list[Task]:
    """Lists tasks by start time; those without one come last."""
    return list(db.scalars(_tasks(wanted).limit(wanted.limit)))


def task_page(db: Session, wanted: TaskList, after: TaskPlace | None) -> tuple[list[Task], TaskPlace | None]:
    """The tasks of a list after `after`, at most `wanted.limit`, and the place of the last one if more follow."""
    query = _tasks(wanted) if after is None else _tasks(wanted).where(_behind(after))
    found = list(db.scalars(query.limit(wanted.limit + 1)))
    held = found[: wanted.limit]
    last = held[-1] if len(found) > len(held) else None
    return held, None if last is None else TaskPlace(last.start_time, last.priority, last.id)


def _tasks(wanted: TaskList) -> Select[Any]:
    query = select(Task)
    if wanted.status is not None:
        query = query.where(Task.status == wanted.status)
    if wanted.project_id is not None:
        query = query.where(Task.project_id == wanted.project_id)
    if wanted.before is not None:
        query = query.where(Task.start_time < wanted.before)
    for word in wanted.words.split():
        query = query.where(
            or_(Task.title.icontains(word, autoescape=True), Task.description.icontains(word, autoescape=True))
        )
    return query.order_by(Task.start_time.is_(None), Task.start_time, Task.priority.desc(), Task.id)


def _behind(place: TaskPlace) -> ColumnElement[bool]:
    """The condition for tasks that come after `place` in the order of `_tasks`."""
    same = or_(Task.priority < place.priority, and_(Task.priority == place.priority, Task.id > place.id))
    if place.start_time is None:
        return and_(Task.start_time.is_(None), same)
    at = place.start_time
    return or_(Task.start_time.is_(None), Task.start_time > at, and_(Task.start_time == at, same))


def task_create(db: Session, task: TaskCreate) -> Task:
    _project(db, task.project_id)
    made = Task(**task.model_dump())
    db.add(made)
    return _written(db, made)


def task_update(db: Session, update: TaskUpdate) -> Task:
    """Changes only the named fields. NoSuchEntry, or ValueError if none is named (JIT-13)."""
    task, changes = _task(db, update.task_id), update.changes.model_dump(exclude_unset=True)
    if not changes:
        raise ValueError("changes: name the fields to change")
    for name in ("title", "description", "project_id", "priority", "status"):
        if name in changes and changes[name] is None:
            raise ValueError(f"changes.{name}: it cannot be empty")
    if "project_id" in changes:
        _project(db, changes["project_id"])
    for name, value in changes.items():
        setattr(task, name, value)
    if task.start_time and task.end_time and task.end_time < task.start_time:
        raise ValueError("end_time is before start_time")
    return _written(db, task)


def task_snooze(db: Session, snooze: TaskSnooze) -> Task:
    """Moves the start of a task to `until` and keeps its duration."""
    task = _task(db, snooze.task_id)
    if task.start_time and task.end_time:
        try:
            task.end_time = snooze.until + (task.end_time - task.start_time)
        except OverflowError:
            raise ValueError("until: the task would end after the year 9999") from None
    task.start_time = snooze.until
    return _written(db, task)


def task_delete(db: Session, wanted: TaskId) -> dict[str, Any]:
    task = _task(db, wanted.task_id)
    told = {"id": task.id, "title": task.title, "deleted": True}
    db.delete(task)
    with _alone():
        db.flush()
    return told


def project_list(db: Session, after: int, limit: int) -> list[Project]:
    """Lists projects with an id above `after`, by id."""
    return list(db.scalars(select(Project).where(Project.id > after).order_by(Project.id).limit(limit)))


def project_get(db: Session, project_id: int) -> Project:
    """Returns a project; NoSuchEntry if there is none."""
    return _project(db, project_id)


def project_create(db: Session, name: str) -> Project:
    made = Project(name=name)
    db.add(made)
    db.flush()
    return made


def project_delete(db: Session, project_id: int) -> None:
    """Deletes a project; its tasks move to the default project, which cannot be deleted (JIT-13)."""
    if project_id == DEFAULT_PROJECT:
        raise DefaultProject(f"project {DEFAULT_PROJECT} is the default project and cannot be deleted")
    project = _project(db, project_id)
    for task in db.scalars(select(Task).where(Task.project_id == project_id)):
        task.project_id = DEFAULT_PROJECT
    with _alone():
        db.flush()
        db.delete(project)
        db.flush()


def note_list(db: Session, before: int | None, limit: int) -> list[dict[str, Any]]:
    """Lists notes with an id below `before`, newest first, each with the beginning of its content."""
    query = select(Note) if before is None else select(Note).where(Note.id < before)
    return [_beginning(note) for note in db.scalars(query.order_by(Note.id.desc()).limit(limit))]


def note_get(db: Session, note_id: int) -> dict[str, Any]:
    """Returns a note; NoSuchEntry if there is none."""
    note = db.get(Note, note_id)
    if note is None:
        raise NoSuchEntry(f"there is no note {note_id}")
    return {"id": note.id, "title": note.title, "content": note.content}


def note_links(db: Session, note_id: int) -> list[dict[str, Any]]:
    """`[{id, note_id, title, relation, outgoing}]`: the notes at the other ends of its links, newest link first."""
    note_get(db, note_id)
    query = select(NoteLink).where(or_(NoteLink.source_id == note_id, NoteLink.target_id == note_id))
    found = []
    for link in db.scalars(query.order_by(NoteLink.id.desc()).limit(LINKS)):
        outgoing = link.source_id == note_id
        other = note_get(db, link.target_id if outgoing else link.source_id)
        told = {"id": link.id, "note_id": other["id"], "title": other["title"]}
        found.append({**told, "relation": link.relation, "outgoing": outgoing})
    return found


class Notes(Struct, frozen=True):
    """Notes, searched by meaning if there is an encoder: `encode(texts, kind)` returns rows of length 1."""

    encoder: Callable[[], Any] = lambda: None

    def create(self, db: Session, note: NoteCreate) -> dict[str, Any]:
        made = Note(**note.model_dump())
        self._remember([made])
        db.add(made)
        db.flush()
        return note_get(db, made.id)

    def search(self, db: Session, wanted: NoteSearch) -> list[dict[str, Any]]:
        """`[{id, title, content, score}]`, best first."""
        notes = list(db.scalars(select(Note).order_by(Note.id.desc()).limit(NEAR)))
        scored = self._by_meaning(notes, wanted.query) or [(_by_words(note, wanted.query), note) for note in notes]
        best = sorted(scored, key=lambda one: (-one[0], one[1].id))[: wanted.limit]
        return [{**_beginning(note), "score": round(score, 3)} for score, note in best if score > 0]

    def link(self, db: Session, link: NoteLinkCreate) -> NoteLink:
        if link.source_id == link.target_id:
            raise ValueError("a note is not linked with itself")
        for note in (link.source_id, link.target_id):
            note_get(db, note)
        made = NoteLink(**link.model_dump())
        db.add(made)
        db.flush()
        return made

    def _by_meaning(self, notes: Sequence[Note], query: str) -> list[tuple[float, Note]]:
        """Scores notes by meaning; empty without an encoder. Vectors of another encoder are computed again."""
        encoder = self.encoder()
        if encoder is None or not notes:
            return []
        return self._nearest(encoder, notes, query)

    def _nearest(self, encoder: Any, notes: Sequence[Note], query: str) -> list[tuple[float, Note]]:
        import numpy as np

        self._remember([note for note in notes if note.encoder != encoder.id])
        rows = np.stack([np.frombuffer(note.vector or b"", dtype=np.float32) for note in notes])
        scores = rows @ encoder.encode([query], "query")[0]
        return [(float(score), note) for score, note in zip(scores, notes, strict=True)]

    def _remember(self, notes: Sequence[Note]) -> None:
        encoder = self.encoder() if notes else None
        if encoder is None:
            return
        rows = encoder.encode([f"{note.title}\n{note.content}" for note in notes], "document")
        for note, row in zip(notes, rows, strict=True):
            note.encoder, note.vector = encoder.id, row.astype("float32").tobytes()


def _beginning(note: Note) -> dict[str, Any]:
    return {"id": note.id, "title": note.title, "content": note.content[:500]}


def _by_words(note: Note, query: str) -> float:
    """The share of the query's words that the note has; of its characters for non-ASCII text without spaces."""
    words = query.lower().split() if " " in query or query.isascii() else [letter for letter in query if letter.strip()]
    text = f"{note.title}\n{note.content}".lower()
    return sum(word in text for word in words) / len(words) if words else 0.0


def _task(db: Session, number: int) -> Task:
    task = db.get(Task, number)
    if task is None:
        raise NoSuchEntry(f"there is no task {number}")
    return task


def _written(db: Session, task: Task) -> Task:
    """Writes the task and reads it back, with times in UTC. ChangedMeanwhile after a conflict."""
    with _alone():
        db.flush()
    db.refresh(task)
    return task


@contextmanager
def _alone() -> Iterator[None]:
    """Raises ChangedMeanwhile if a row has changed since it was read, or if a row that it refers to is gone."""
    try:
        yield
    except (StaleDataError, IntegrityError):
        raise ChangedMeanwhile("somebody else changed it at the same time; look at it again") from None


def _project(db: Session, number: int) -> Project:
    project = db.get(Project, number)
    if project is None:
        raise NoSuchEntry(f"there is no project {number}")
    return project
