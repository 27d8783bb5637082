"""Tasks, notes and links, on SQLite and on Postgres: the same answers, the same refusals."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.errors import KernelError
from navigator_kernel.tools.factory import FunctionTool
from navigator_planner.errors import ChangedMeanwhile
from navigator_planner.schemas import NoteCreate, NoteSearch, TaskChange, TaskId, TaskList, TaskUpdate
from navigator_planner.service import (
    Notes,
    project_create,
    project_delete,
    task_delete,
    task_get,
    task_page,
    task_update,
)
from navigator_planner.tables import Task
from navigator_planner.toolkit import URL, open_sessions
from planner.conftest import both
from tables import cases

WHEN, LATER = "2026-11-23T15:00:00+08:00", "2026-11-24T09:30:00+08:00"
Planner = dict[str, FunctionTool]
# Twelve processes that have imported what they need and begin at the same moment, when the pipe is closed
BEGIN = r"""
import os, sys
from pathlib import Path
import psycopg
from navigator_planner.toolkit import open_sessions
from navigator_planner.tables import Project

ready, opened = os.pipe()
for _ in range(12):
    if not os.fork():
        os.close(opened)
        os.read(ready, 1)
        name = open_sessions(Path(sys.argv[1]), lambda: None)().get(Project, 1).name
        os.write(1, f"{name}\n".encode())
        os._exit(0)
os.close(opened)
for _ in range(12):
    os.wait()
"""

pytestmark = pytest.mark.requirement("TOL-7")


def do(planner: Planner, name: str, **arguments: Any) -> Any:
    """The value that the tool returns; its error is raised as a ValueError."""
    result = asyncio.run(planner[name].run(arguments))
    if result.error:
        raise ValueError(result.error)
    return result.value


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@both()
@pytest.mark.requirement("JIT-13")
def test_a_task_is_created_found_changed_postponed_and_deleted(planner: Planner) -> None:
    made = do(planner, "task_create", title=" 会议准备 ", start_time=WHEN, end_time="2026-11-23T16:30:00+08:00")
    assert (made["title"], made["priority"], made["project_id"], made["status"]) == ("会议准备", 3, 1, "open")
    assert moment(made["start_time"]) == moment(WHEN)
    changed = do(planner, "task_update", task_id=made["id"], changes={"priority": 5, "end_time": None})
    assert (changed["priority"], changed["end_time"], changed["title"]) == (5, None, "会议准备")
    do(planner, "task_update", task_id=made["id"], changes={"end_time": "2026-11-23T16:30:00+08:00"})
    later = do(planner, "task_snooze", task_id=made["id"], until=LATER)
    assert (moment(later["start_time"]), moment(later["end_time"])) == (
        moment(LATER),
        moment("2026-11-24T11:00:00+08:00"),
    )
    assert do(planner, "task_get", task_id=made["id"])["start_time"] == later["start_time"]
    assert do(planner, "task_delete", task_id=made["id"]) == {"id": made["id"], "title": "会议准备", "deleted": True}
    with pytest.raises(ValueError, match="there is no task"):
        do(planner, "task_get", task_id=made["id"])


@both()
def test_a_list_is_by_time_and_narrowed_down(planner: Planner) -> None:
    for title, start in (("Water the plants", None), ("Call 100% of Bob", LATER), ("Call Ann", WHEN)):
        do(planner, "task_create", title=title, start_time=start)
    do(planner, "task_update", task_id=2, changes={"status": "done"})

    def titles(**wanted: Any) -> list[str]:
        return [task["title"] for task in do(planner, "task_list", **wanted)]

    assert titles() == ["Call Ann", "Call 100% of Bob", "Water the plants"]
    assert titles(words="call", status="open") == ["Call Ann"]
    assert titles(words="100%") == ["Call 100% of Bob"]
    assert titles(before="2026-11-24T00:00:00Z") == ["Call Ann"]
    assert (titles(limit=1), titles(project_id=2)) == (["Call Ann"], [])


@pytest.mark.requirement("JIT-13")
@cases("tool, arguments, words")
def test_an_invalid_tool_call_names_its_problem_and_changes_nothing(
    planner: Planner, tool: str, arguments: dict[str, Any], words: str
) -> None:
    do(planner, "task_create", title="first")
    with pytest.raises(ValueError, match=words):
        do(planner, tool, **arguments)
    assert [task["title"] for task in do(planner, "task_list")] == ["first"]


@both()
@pytest.mark.requirement("JIT-13")
def test_the_default_project_stays_and_takes_in_the_tasks_of_others(planner: Planner) -> None:
    sessions = planner["task_get"].sessions
    assert sessions is not None
    with sessions() as session:
        other = project_create(session, "Garden")
        session.add(Task(title="x", project_id=other.id))
        session.commit()
        project_delete(session, other.id)
        session.commit()
        with pytest.raises(ValueError, match="cannot be deleted"):
            project_delete(session, 1)
    assert [task["project_id"] for task in do(planner, "task_list")] == [1]


@both()
@pytest.mark.requirement("TOL-13")
def test_a_change_or_deletion_of_a_task_that_changed_meanwhile_is_refused(planner: Planner) -> None:
    number = do(planner, "task_create", title="x")["id"]
    sessions = planner["task_get"].sessions
    assert sessions is not None
    for work in (
        lambda db: task_update(db, TaskUpdate(task_id=number, changes=TaskChange(title="mine"))),
        lambda db: task_delete(db, TaskId(task_id=number)),
    ):
        with sessions() as session:
            held, before = task_get(session, TaskId(task_id=number)), do(planner, "task_get", task_id=number)
            theirs = do(planner, "task_update", task_id=number, changes={"title": f"theirs {work}"})
            assert theirs["updated_at"] > before["updated_at"] == held.updated_at.isoformat()
            with pytest.raises(ChangedMeanwhile):
                work(session)
        assert do(planner, "task_get", task_id=number) == theirs


@both()
def test_pages_hold_every_task_once(planner: Planner) -> None:
    for at, start in enumerate((None, WHEN, LATER, WHEN, None, WHEN)):
        do(planner, "task_create", title=str(at), start_time=start, priority=1 + at % 5)
    whole = [task["title"] for task in do(planner, "task_list")]
    sessions = planner["task_get"].sessions
    assert sessions is not None
    with sessions() as session:
        for limit in range(1, 7):
            found, place = task_page(session, TaskList(limit=limit), None)
            while place is not None:
                more, place = task_page(session, TaskList(limit=limit), place)
                found += more
            assert [task.title for task in found] == whole


@both()
def test_notes_are_found_by_their_words_and_linked(planner: Planner) -> None:
    for title, content in (("Bread", "flour, water and salt"), ("Boats", "oars and sails"), ("面包", "面粉和盐")):
        do(planner, "note_create", title=title, content=content)
    assert do(planner, "note_search", query="flour and salt")[0]["title"] == "Bread"
    assert [note["title"] for note in do(planner, "note_search", query="面粉")] == ["面包"]
    link = do(planner, "link_create", source_id=1, target_id=3, relation="same as")
    assert (link["source_id"], link["target_id"], link["relation"]) == (1, 3, "same as")


@pytest.mark.wide
def test_notes_are_found_by_meaning(tmp_path: Path) -> None:
    from navigator_kernel.adapters.files.writer import FolderWriter
    from navigator_kernel.adapters.index.use_encoder import UseEncoder

    kept = tmp_path / "encoders"
    encoder = UseEncoder(kept, lambda: FolderWriter([kept]))
    notes = Notes(lambda: encoder)
    with open_sessions(tmp_path / "planner.sqlite", lambda: None)() as session:
        for title, content in (("Baking", "flour, yeast, an oven"), ("Sailing", "wind, oars and a harbour")):
            notes.create(session, NoteCreate(title=title, content=content))
        found = notes.search(session, NoteSearch(query="how do I make bread?"))
        assert found[0]["title"] == "Baking"
        assert notes.search(session, NoteSearch(query="怎么划船出海"))[0]["title"] == "Sailing"


def test_many_at_once_lose_nothing(planner: Planner) -> None:
    do(planner, "task_list")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: do(planner, "task_create", title=f"task {at}"), range(40)))
    assert len(do(planner, "task_list", limit=200)) == 40


@pytest.mark.wide
@both()
@pytest.mark.usefixtures("planner")
def test_processes_that_begin_at_once_all_get_in(tmp_path: Path) -> None:
    begun = subprocess.run(
        [sys.executable, "-c", BEGIN, str(tmp_path / "planner.sqlite")], capture_output=True, text=True, timeout=60
    )
    assert begun.stdout.splitlines() == ["Default"] * 12, begun.stderr


def test_times_are_kept_in_utc(planner: Planner) -> None:
    made = do(planner, "task_create", title="x", start_time=WHEN)
    assert moment(made["start_time"]).astimezone(UTC).hour == 7


def test_a_symbolic_link_is_not_opened_as_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL, raising=False)
    (tmp_path / "outside").write_bytes(b"")
    (tmp_path / "planner.sqlite").symlink_to(tmp_path / "outside")
    with pytest.raises(KernelError):
        open_sessions(tmp_path / "planner.sqlite", lambda: None)()
    assert (tmp_path / "outside").read_bytes() == b""


@pytest.mark.parametrize("url", ["postgresql://ann@127.0.0.1:9/x", "nonsense", "sqlite:////no/such/folder/x.sqlite"])
def test_an_unusable_database_is_reported_with_a_hint_and_without_its_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv(URL, url)
    with pytest.raises(KernelError) as caught:
        open_sessions(tmp_path / "x", lambda: None)()
    assert caught.value.hint and url not in caught.value.message
