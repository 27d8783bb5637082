"""What can be done with tasks, notes and links; a function each, with the session that it works in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from navigator_kernel.planner.schemas import (
    NoteCreate,
    NoteLinkCreate,
    NoteSearch,
    TaskCreate,
    TaskId,
    TaskList,
    TaskSnooze,
    TaskUpdate,
)
from navigator_kernel.planner.tables import DEFAULT_PROJECT, Note, NoteLink, Project, Task

NEAR = 2000  # notes that a search looks at, the newest


def task_get(db: Session, wanted: TaskId) -> Task:
    """ValueError where there is none."""
    return _task(db, wanted.task_id)


def task_list(db: Session, wanted: TaskList) -> list[Task]:
    """By their time, those without one last."""
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
    order = Task.start_time.is_(None), Task.start_time, Task.priority.desc(), Task.id
    return list(db.scalars(query.order_by(*order).limit(wanted.limit)))


def task_create(db: Session, task: TaskCreate) -> Task:
    _project(db, task.project_id)
    made = Task(**task.model_dump())
    db.add(made)
    return _written(db, made)


def task_update(db: Session, update: TaskUpdate) -> Task:
    """Only the fields that are named; ValueError where the task is not there, or nothing is named (JIT-13)."""
    task, changes = _task(db, update.task_id), update.changes.model_dump(exclude_unset=True)
    if not changes:
        raise ValueError("changes: name what is to be different")
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
    """Begins at `until`, and takes as long as before."""
    task = _task(db, snooze.task_id)
    if task.start_time and task.end_time:
        task.end_time = snooze.until + (task.end_time - task.start_time)
    task.start_time = snooze.until
    return _written(db, task)


def task_delete(db: Session, wanted: TaskId) -> dict[str, Any]:
    task = _task(db, wanted.task_id)
    told = {"id": task.id, "title": task.title, "deleted": True}
    db.delete(task)
    db.flush()
    return told


def project_create(db: Session, name: str) -> Project:
    made = Project(name=name)
    db.add(made)
    db.flush()
    return made


def project_delete(db: Session, project_id: int) -> None:
    """Its tasks go to the default project, which itself cannot be deleted (JIT-13)."""
    if project_id == DEFAULT_PROJECT:
        raise ValueError(f"project {DEFAULT_PROJECT} is the default project and cannot be deleted")
    project = _project(db, project_id)
    for task in db.scalars(select(Task).where(Task.project_id == project_id)):
        task.project_id = DEFAULT_PROJECT
    db.flush()
    db.delete(project)


class Notes(Struct, frozen=True):
    """Notes, found by what they mean where there is an encoder: `encode(texts, kind)` gives rows of length 1."""

    encoder: Callable[[], Any] = lambda: None

    def create(self, db: Session, note: NoteCreate) -> dict[str, Any]:
        made = Note(**note.model_dump())
        self._remember([made])
        db.add(made)
        db.flush()
        return {"id": made.id, "title": made.title, "content": made.content}

    def search(self, db: Session, wanted: NoteSearch) -> list[dict[str, Any]]:
        """`[{id, title, content, score}]`, best first."""
        notes = list(db.scalars(select(Note).order_by(Note.id.desc()).limit(NEAR)))
        scored = self._by_meaning(notes, wanted.query) or [(_by_words(note, wanted.query), note) for note in notes]
        best = sorted(scored, key=lambda one: (-one[0], one[1].id))[: wanted.limit]
        return [
            {"id": note.id, "title": note.title, "content": note.content[:500], "score": round(score, 3)}
            for score, note in best
            if score > 0
        ]

    def link(self, db: Session, link: NoteLinkCreate) -> NoteLink:
        if link.source_id == link.target_id:
            raise ValueError("a note is not linked with itself")
        for note in (link.source_id, link.target_id):
            if db.get(Note, note) is None:
                raise ValueError(f"there is no note {note}")
        made = NoteLink(**link.model_dump())
        db.add(made)
        db.flush()
        return made

    def _by_meaning(self, notes: Sequence[Note], query: str) -> list[tuple[float, Note]]:
        """Empty without an encoder; vectors of another one are made again."""
        encoder = self.encoder()
        if encoder is None or not notes:
            return []
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


def _by_words(note: Note, query: str) -> float:
    """The share of the query's words, or of its characters where it is Chinese, that the note has."""
    words = query.lower().split() if " " in query or query.isascii() else [letter for letter in query if letter.strip()]
    text = f"{note.title}\n{note.content}".lower()
    return sum(word in text for word in words) / len(words) if words else 0.0


def _task(db: Session, number: int) -> Task:
    task = db.get(Task, number)
    if task is None:
        raise ValueError(f"there is no task {number}")
    return task


def _written(db: Session, task: Task) -> Task:
    """As the database has it, times in UTC."""
    db.flush()
    db.refresh(task)
    return task


def _project(db: Session, number: int) -> Project:
    project = db.get(Project, number)
    if project is None:
        raise ValueError(f"there is no project {number}")
    return project
