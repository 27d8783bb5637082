"""Tasks, notes, links and projects over HTTP: the functions of chat's tools, with ETags, cursors and typed refusals."""

from __future__ import annotations

import json
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cli.support import SOURCE
from gateway.served import Person, Served, serving
from models.wire_server import Said, WireServer
from navigator_planner.toolkit import URL
from specialist.turns import says
from tables import cases

WHEN, END, LATER = "2026-11-27T15:00:00+08:00", "2026-11-27T16:30:00+08:00", "2026-11-28T09:30:00+08:00"

pytestmark = pytest.mark.requirement("TOL-13")


def create(client: httpx2.Client, title: str = "x", **more: Any) -> dict[str, Any]:
    answer = client.post("/api/tasks", json={"title": title, **more})
    assert answer.status_code == 201, answer.text
    held: dict[str, Any] = answer.json()
    return held


def entries(client: httpx2.Client, path: str, name: str, **query: Any) -> list[dict[str, Any]]:
    """All entries of a list, page by page."""
    found: list[dict[str, Any]] = []
    while True:
        page = client.get(path, params=query).json()
        found += page[name]
        if not page["next"]:
            return found
        query["cursor"] = page["next"]


def project(client: httpx2.Client) -> int:
    return int(client.post("/api/projects", json={"name": "Garden"}).json()["id"])


# TOL-13, JIT-13: "priority 1-5 default 3", "all times ISO 8601", the default project is 1
def test_a_task_is_created_read_changed_postponed_and_deleted(served: Served) -> None:
    with served.client() as client:
        made = client.post("/api/tasks", json={"title": " 会议准备 ", "start_time": WHEN, "end_time": END})
        task = made.json()
        place = f"/api/tasks/{task['id']}"
        assert (made.status_code, made.headers["location"]) == (201, place)
        assert (task["title"], task["priority"], task["project_id"], task["status"]) == ("会议准备", 3, 1, "open")
        assert datetime.fromisoformat(task["start_time"]) == datetime.fromisoformat(WHEN)
        read = client.get(place)
        assert (read.json(), read.headers["etag"]) == (task, made.headers["etag"])
        changed = client.patch(place, json={"changes": {"priority": 5, "status": "done"}}).json()
        assert (changed["priority"], changed["status"], changed["title"]) == (5, "done", "会议准备")
        later = client.post(f"{place}/snooze", json={"until": LATER}).json()
        assert datetime.fromisoformat(later["start_time"]) == datetime.fromisoformat(LATER)
        assert datetime.fromisoformat(later["end_time"]) == datetime.fromisoformat("2026-11-28T11:00:00+08:00")
        assert client.delete(place).status_code == 204
        gone = client.get(place)
    assert (gone.status_code, gone.headers["content-type"]) == (404, "application/problem+json")


# TOL-13: "RESTful API (unchanged)", beside the chat endpoint, over the same functions
@pytest.mark.wide
def test_chat_and_http_see_the_same_task(served: Served, model: WireServer) -> None:
    says(model, Said(calls=[("task_create", json.dumps({"title": "同一个", "start_time": WHEN}))]), Said(text="好"))
    events = served.chat("/task_manager 创建任务")
    made = json.loads(next(one.data["payload"]["result"] for one in events if one.event == "ToolCallCompleted"))
    with served.client() as client:
        assert client.get(f"/api/tasks/{made['id']}").json() == made
        client.patch(f"/api/tasks/{made['id']}", json={"changes": {"title": "改了"}})
        model.requests.clear()
        says(model, Said(calls=[("task_get", json.dumps({"task_id": made["id"]}))]), Said(text="好"))
        events = served.chat("/task_manager 看看任务")
        seen = json.loads(next(one.data["payload"]["result"] for one in events if one.event == "ToolCallCompleted"))
        assert seen == client.get(f"/api/tasks/{made['id']}").json()
    assert seen["title"] == "改了"


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", "/api/tasks", {"title": "x", "priority": 6}, 422, "priority"),
        ("POST", "/api/tasks", {"title": "x", "priority": 0}, 422, "priority"),
        ("POST", "/api/tasks", {"title": "x", "priority": "3"}, 422, "priority"),
        ("POST", "/api/tasks", {"title": " "}, 422, "title"),
        ("POST", "/api/tasks", {"title": "a\0b"}, 422, "title"),
        ("POST", "/api/tasks", {"title": "x", "start_time": "2026-11-27T15:00:00"}, 422, "start_time"),
        ("POST", "/api/tasks", {"title": "x", "start_time": "tomorrow"}, 422, "start_time"),
        ("POST", "/api/tasks", {"title": "x", "start_time": "0001-01-01T00:00:00+14:00"}, 422, "start_time"),
        ("POST", "/api/tasks", {"title": "x", "start_time": LATER, "end_time": WHEN}, 422, "end_time"),
        ("POST", "/api/tasks", {"title": "x", "owner": 1}, 422, "owner"),
        ("POST", "/api/tasks", {"title": "x", "project_id": 999_999}, 404, "no project 999999"),
        ("POST", "/api/tasks", ["title"], 422, "body"),
        ("PATCH", "/api/tasks/999999", {"changes": {"title": "x"}}, 404, "no task 999999"),
        ("PATCH", "/api/tasks/one", {"changes": {"title": "x"}}, 404, ""),
        ("PATCH", "/api/tasks/0", {"changes": {"title": "x"}}, 404, ""),
        ("PATCH", f"/api/tasks/{'9' * 5_000}", {"changes": {"title": "x"}}, 404, ""),
        ("PATCH", "/api/tasks/1", {"title": "x"}, 422, "changes"),
        ("POST", "/api/tasks/999999/snooze", {"until": LATER}, 404, "no task 999999"),
        ("DELETE", "/api/tasks/999999", None, 404, "no task 999999"),
        ("GET", "/api/tasks?status=late", None, 400, "status"),
        ("GET", "/api/tasks?before=tomorrow", None, 400, "before"),
        ("GET", "/api/tasks?limit=0", None, 400, "limit"),
        ("GET", "/api/tasks?cursor=MQ", None, 400, "cursor"),
        ("GET", "/api/tasks?cursor=WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzE0OjAwIiwxLDFd", None, 400, "cursor"),
        ("GET", "/api/tasks?owner=1", None, 400, "owner"),
        ("GET", "/api/notes/search", None, 400, "query"),
        ("GET", "/api/notes/999999", None, 404, "no note 999999"),
        ("POST", "/api/links", {"source_id": 999_998, "target_id": 999_999}, 404, "no note 999998"),
        ("POST", "/api/links", {"source_id": 1, "target_id": 1}, 422, "itself"),
        ("POST", "/api/projects", {"name": ""}, 422, "name"),
        ("DELETE", "/api/projects/999999", None, 404, "no project 999999"),
    ],
)
def test_a_request_that_cannot_be_is_a_problem_and_changes_nothing(
    served: Served, method: str, path: str, body: Any, status: int, words: str
) -> None:
    with served.client() as client:
        before = entries(client, "/api/tasks", "tasks")
        answer = client.request(method, path, **({} if body is None else {"json": body}))
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
        assert words in answer.json()["detail"]
        assert entries(client, "/api/tasks", "tasks") == before


def test_a_change_of_nothing_is_refused(served: Served) -> None:
    with served.client() as client:
        place = f"/api/tasks/{create(client)['id']}"
        for changes in ({}, {"title": None}):
            answer = client.patch(place, json={"changes": changes})
            assert answer.status_code == 422 and "changes" in answer.json()["detail"]
        client.patch(
            place, json={"changes": {"start_time": "9999-12-31T00:00:00Z", "end_time": "9999-12-31T20:00:00Z"}}
        )
        assert client.post(f"{place}/snooze", json={"until": "9999-12-31T10:00:00Z"}).status_code == 422
        client.delete(place)


# JIT-13: project 1 "cannot be deleted"


def test_a_cursor_stands_where_a_deleted_task_was(served: Served) -> None:
    with served.client() as client:
        garden = project(client)
        made = [
            create(client, str(at), start_time=f"2026-11-27T0{at}:00:00Z", project_id=garden)["id"] for at in range(4)
        ]
        page = client.get("/api/tasks", params={"project_id": garden, "limit": 2}).json()
        client.delete(f"/api/tasks/{made[1]}")
        create(client, "early", start_time="2026-11-26T00:00:00Z", project_id=garden)
        rest = client.get("/api/tasks", params={"project_id": garden, "cursor": page["next"]}).json()["tasks"]
    assert [task["id"] for task in rest] == made[2:]


@pytest.mark.wide
def test_a_client_that_has_the_state_is_sent_none(served: Served) -> None:
    with served.client() as client:
        place = f"/api/tasks/{create(client)['id']}"
        for path in (place, "/api/tasks", "/api/projects", "/api/projects/1", "/api/notes"):
            tag = client.get(path).headers["etag"]
            for said in (tag, f"W/{tag}", f'"other", {tag}', "*"):
                known = client.get(path, headers={"If-None-Match": said})
                assert (known.status_code, known.headers["etag"], known.content) == (304, tag, b"")
            assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200
        tag = client.get(place).headers["etag"]
        client.patch(place, json={"changes": {"priority": 1}})
        assert client.get(place, headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.wide
def test_a_write_in_another_state_is_refused(served: Served) -> None:
    with served.client() as client:
        place = f"/api/tasks/{create(client)['id']}"
        old = client.get(place).headers["etag"]
        changed = client.patch(place, json={"changes": {"priority": 1}}, headers={"If-Match": old})
        new = changed.headers["etag"]
        assert changed.status_code == 200 and new == client.get(place).headers["etag"] != old
        for said in (old, f"W/{new}", "nonsense", ""):
            headers = {"If-Match": said}
            assert client.patch(place, json={"changes": {"priority": 2}}, headers=headers).status_code == 412
            assert client.post(f"{place}/snooze", json={"until": LATER}, headers=headers).status_code == 412
            assert client.delete(place, headers=headers).status_code == 412
        assert client.get(place).headers["etag"] == new
        assert client.patch(place, json={"changes": {"priority": 2}}, headers={"If-Match": "*"}).status_code == 200
        assert client.delete(place, headers={"If-Match": client.get(place).headers["etag"]}).status_code == 204
        assert client.delete(place, headers={"If-Match": "*"}).status_code == 404
        assert client.delete("/api/projects/1", headers={"If-Match": '"x"'}).status_code == 412


@pytest.mark.wide
def test_exactly_one_of_the_concurrent_writers_with_the_same_etag_succeeds(served: Served) -> None:
    with served.client() as client:
        for _ in range(20):
            made = client.post("/api/tasks", json={"title": "x"})
            place, headers = made.headers["location"], {"If-Match": made.headers["etag"]}

            def write(at: int, place: str = place, headers: dict[str, str] = headers) -> int:
                body = {"changes": {"description": str(at)}}
                return int(client.patch(place, json=body, headers=headers).status_code)

            with ThreadPoolExecutor(8) as pool:
                assert sorted(pool.map(write, range(8))) == [200, *[412] * 7]
            client.delete(place)


def test_writers_without_a_state_never_undo_each_other_unsaid(served: Served) -> None:
    """Each writer changes its own field; a change answered with 200 is there at the end."""
    with served.client() as client:
        place = f"/api/tasks/{create(client)['id']}"
        fields = {"title": "t", "description": "d", "priority": 5, "status": "done", "start_time": WHEN}

        def write(item: tuple[str, Any]) -> int:
            return int(client.patch(place, json={"changes": dict([item])}).status_code)

        with ThreadPoolExecutor(5) as pool:
            codes = dict(zip(fields, pool.map(write, fields.items()), strict=True))
        assert set(codes.values()) <= {200, 409} and 200 in codes.values()
        seen = client.get(place).json()
        held = {**fields, "start_time": datetime.fromisoformat(WHEN)}
        seen["start_time"] = seen["start_time"] and datetime.fromisoformat(seen["start_time"])
        assert all((seen[name] == held[name]) == (codes[name] == 200) for name in fields)


@pytest.mark.wide
@pytest.mark.sample(1)
@pytest.mark.parametrize(("tag", "status"), [(False, 409), (True, 412)])
@pytest.mark.parametrize(
    ("method", "more", "body"),
    [("PATCH", "", {"changes": {"title": "y"}}), ("POST", "/snooze", {"until": LATER}), ("DELETE", "", None)],
)
def test_a_change_between_reading_and_writing_is_a_conflict(
    served: Served, person: Person, method: str, more: str, body: Any, tag: bool, status: int
) -> None:
    """Another writer holds the database until the request has read the task, then changes the task."""
    for seconds in (1, 3, 9):  # seconds that the request has to read the task
        with served.client() as client:
            made = client.post("/api/tasks", json={"title": "x"})
            place, headers = made.headers["location"], {"If-Match": made.headers["etag"]} if tag else {}
            given: dict[str, Any] = {} if body is None else {"json": body}
            (file,) = Path(person.env["HOME"]).rglob("planner.sqlite")
            with closing(sqlite3.connect(file)) as other, ThreadPoolExecutor(1) as pool:
                other.execute("BEGIN IMMEDIATE")
                waiting = pool.submit(client.request, method, place + more, headers=headers, **given)
                time.sleep(seconds)
                assert not waiting.done()
                change = "UPDATE tasks SET title = 'theirs', updated_at = '2030-01-01 00:00:00.000000' WHERE id = ?"
                other.execute(change, (made.json()["id"],))
                other.commit()
                answer = waiting.result(30)
            title = client.get(place).json().get("title")
        if not answer.is_success:
            break
    assert (answer.status_code, title) == (status, "theirs")


@cases("method, path, body")
def test_a_token_that_may_only_read_changes_nothing(served: Served, method: str, path: str, body: Any) -> None:
    with served.client("read") as client:
        answer = client.request(method, path, **({} if body is None else {"json": body}))
        assert (answer.status_code, answer.json()["code"]) == (403, "role")
        assert client.get("/api/tasks").status_code == 200


def test_a_token_for_chat_may_write(served: Served) -> None:
    with served.client("chat") as client:
        assert client.delete(f"/api/tasks/{create(client)['id']}").status_code == 204


# TOL-13: "note_search: semantic search of notes"
def test_notes_are_found_by_meaning_and_linked(served: Served) -> None:
    with served.client() as client:
        ids = []
        for title, content in (("Baking", "flour, yeast, an oven"), ("Sailing", "wind, oars and a harbour")):
            made = client.post("/api/notes", json={"title": title, "content": content})
            ids.append(made.json()["id"])
            assert client.get(made.headers["location"]).json() == made.json()
        found = client.get("/api/notes/search", params={"query": "how do I make bread?"}).json()["notes"]
        assert found[0]["title"] == "Baking" and found[0]["score"] > 0
        assert (
            client.get("/api/notes/search", params={"query": "怎么划船出海", "limit": 1}).json()["notes"][0]["title"]
            == "Sailing"
        )
        link = client.post("/api/links", json={"source_id": ids[0], "target_id": ids[1], "relation": "same week"})
        assert (link.status_code, link.json()["relation"]) == (201, "same week")
        seen = [client.get(f"/api/notes/{number}/links").json()["links"] for number in ids]
        assert [(one["note_id"], one["title"], one["outgoing"]) for (one,) in seen] == [
            (ids[1], "Sailing", True),
            (ids[0], "Baking", False),
        ]
        assert client.get("/api/notes/999999/links").status_code == 404
        listed = [note["id"] for note in entries(client, "/api/notes", "notes", limit=1)]
        assert listed == sorted(listed, reverse=True) and set(ids) <= set(listed)


@pytest.mark.wide
def test_a_missing_package_is_named_with_its_command(person: Person, tmp_path: Path) -> None:
    (tmp_path / "sqlalchemy.py").write_text("raise ImportError('no', name='sqlalchemy')\n")
    held = {**person.env, "PYTHONPATH": f"{tmp_path}:{SOURCE / 'kernel'}"}
    with serving(person._replace(env=held)) as served, served.client() as client:
        answer = client.get("/api/tasks")
        assert client.get("/openapi.json").status_code == 200
    assert (answer.status_code, answer.json()["code"]) == (501, "planner")
    assert "pip install 'navigator-kernel[" in answer.json()["hint"]


@pytest.mark.wide
def test_a_database_that_cannot_be_reached_is_a_problem_without_its_address(person: Person) -> None:
    url = "postgresql://ann@127.0.0.1:9/x"
    with serving(person._replace(env={**person.env, URL: url})) as served, served.client() as client:
        answer = client.get("/api/tasks")
    assert (answer.status_code, answer.json()["code"]) == (503, "database")
    assert "127.0.0.1" not in answer.text
