"""Sessions, runs and approvals over HTTP: who owns them, who may answer, and that an answer counts once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from gateway.served import Person, Served, edit_of, sent
from models.wire_server import HELLO, Said, WireServer
from specialist.turns import says

WRITE = Said(calls=[("write", '{"file_path": "a.txt", "content": "x"}')])
DELETE = '{"task_id": %d}'


@pytest.fixture
def task(served: Served, model: WireServer) -> int:
    """The id of an existing task."""
    says(model, Said(calls=[("task_create", '{"title": "old"}')]), Said(text="done"))
    done = next(one for one in served.chat("/task_manager create it", "make") if one.event == "ToolCallCompleted")
    import json

    return int(json.loads(done.data["payload"]["result"])["id"])


def asks(served: Served, model: WireServer, task: int, session: str, role: str = "admin") -> str:
    """The id of an approval that a run of `session` waits for."""
    model.requests.clear()
    says(model, Said(calls=[("task_delete", DELETE % task)]), Said(text="deleted"))
    events = served.chat(f"/task_manager delete task {task}", session, role, events="all")
    asked = next(one for one in events if one.event == "ApprovalRequested")
    return str(asked.data["payload"]["id"])


def answer(client: httpx2.Client, approval: str, word: str = "yes") -> httpx2.Response:
    return client.post(f"/api/approvals/{approval}", json={"answer": word})


def waiting(client: httpx2.Client) -> set[str]:
    """The ids of the approvals that wait for an answer."""
    return {one["id"] for one in client.get("/api/approvals").json()["approvals"]}


def events_of(client: httpx2.Client, run: str) -> Sequence[Any]:
    with client.stream("GET", f"/api/runs/{run}/events") as stream:
        return [one.event for one in sent(stream)]


def test_an_approval_is_listed_in_full_and_counts_once(served: Served, model: WireServer, task: int) -> None:
    approval = asks(served, model, task, "once")
    with served.client("admin") as client:
        held = next(one for one in client.get("/api/approvals").json()["approvals"] if one["id"] == approval)
        assert str(task) in held["question"] and held["session"] == "once" and held["expires"] > held["asked"]
        first = answer(client, approval)
        assert first.status_code == 202 and events_of(client, first.json()["run"])[-1] == "RunCompleted"
        again = answer(client, approval)
        assert again.status_code == 404 and again.json()["code"] == "not_found"
        assert approval not in waiting(client)


@pytest.mark.wide
def test_after_the_last_event_of_a_turn_its_approval_is_listed_and_a_next_run_is_accepted(
    served: Served, model: WireServer, task: int
) -> None:
    for number in range(10):
        approval = asks(served, model, task, f"ends-{number}")
        with served.client() as client:
            assert approval in waiting(client)
            assert client.post(f"/api/sessions/ends-{number}/runs", json={"message": "no"}).status_code == 202


@pytest.mark.requirement("JIT-12")
def test_an_edit_of_a_file_that_nobody_named_ends_after_one_yes(
    person: Person, served: Served, model: WireServer
) -> None:
    file = person.here.root / "unnamed.txt"
    model.requests.clear()
    says(model, Said(calls=[("edit", edit_of(file))]), Said(text="It is longer."))
    with served.client() as client:
        before = waiting(client)
        served.chat("/song-writer a song", "edits")
        (approval,) = waiting(client) - before
        assert events_of(client, answer(client, approval).json()["run"])[-1] == "RunCompleted"
        assert waiting(client) == before
    assert file.read_text() == "first\nsecond\n"


def test_a_no_does_nothing(served: Served, model: WireServer, task: int) -> None:
    approval = asks(served, model, task, "no")
    with served.client("approve") as client, served.client() as admin:
        assert answer(client, approval, "no").status_code == 404  # the approval belongs to another token
        run = answer(admin, approval, "no").json()["run"]
        assert events_of(admin, run)[-1] == "RunCompleted"
        assert approval not in waiting(admin)
    model.requests.clear()
    says(model, Said(calls=[("task_get", DELETE % task)]), Said(text="it is there"))
    done = [one for one in served.chat("/task_manager show it", "look") if one.event == "ToolCallCompleted"]
    assert [one.data["payload"]["state"] for one in done] == ["success"]


def test_a_no_may_give_the_model_a_reason(served: Served, model: WireServer, task: int) -> None:
    approval = asks(served, model, task, "reason")
    with served.client() as client:
        said = client.post(f"/api/approvals/{approval}", json={"answer": "no", "reason": "I still need it"})
        assert said.status_code == 202 and events_of(client, said.json()["run"])[-1] == "RunCompleted"
    assert "I still need it" in str(model.requests[-1].body)


def test_a_lasting_approval_is_given_at_the_terminal_only(served: Served, model: WireServer, task: int) -> None:
    approval = asks(served, model, task, "always")
    with served.client() as client:
        refused = answer(client, approval, "always")
        said = client.post("/api/chat/always", json={"message": "always"})
    assert (refused.status_code, said.status_code) == (403, 403)


def test_a_token_that_may_not_approve_cannot_do_so_by_a_message(served: Served, model: WireServer, task: int) -> None:
    approval = asks(served, model, task, "mine", "chat")
    with served.client("chat") as client:
        assert answer(client, approval).status_code == 403
        said = client.post("/api/chat/mine", json={"message": "yes"})
        assert said.status_code == 403 and said.json()["code"] == "refused"
        assert [one["id"] for one in client.get("/api/approvals").json()["approvals"]] == [approval]


def test_a_token_sees_its_own_sessions_and_the_administrator_all(served: Served, model: WireServer) -> None:
    says(model, HELLO)
    run = served.chat("/song-writer the moon", "private", "chat")[0].data["run"]
    with served.client("approve") as other, served.client("chat") as mine, served.client() as admin:
        for path in (f"/api/runs/{run}", f"/api/runs/{run}/events", f"/api/runs/{run}/why", "/api/sessions/private"):
            assert other.get(path).status_code == 404, path
            assert mine.get(path).status_code == 200, path
        assert other.delete(f"/api/runs/{run}").status_code == 404
        assert run not in {one["run"] for one in other.get("/api/runs").json()["runs"]}
        assert run in {one["run"] for one in admin.get("/api/runs").json()["runs"]}
        assert "private" in {one["id"] for one in mine.get("/api/sessions").json()["sessions"]}


@pytest.mark.wide
def test_a_session_of_the_terminal_continues_in_a_page(person: Person, served: Served, model: WireServer) -> None:
    says(model, HELLO)
    person.json("ask", "--session", "both", "/song-writer the moon")
    served.chat("/song-writer the sun", "both")
    with served.client() as client:
        held = client.get("/api/sessions/both").json()
    assert held["turns"] == 2 and [one["role"] for one in held["history"]] == ["user", "assistant"] * 2


def test_a_run_is_stopped_and_its_stream_ends(served: Served, model: WireServer) -> None:
    import threading

    begun, free = threading.Event(), threading.Event()

    def slow(_messages: Any, _number: int) -> Said:
        begun.set()
        free.wait(20)
        return HELLO

    model.scripts["worker"] = slow
    with served.client() as client:
        run = client.post("/api/sessions/slow/runs", json={"message": "/song-writer the moon"}).json()["run"]
        assert begun.wait(20)
        assert client.post("/api/chat/slow", json={"message": "more"}).json()["code"] == "busy"
        assert client.get(f"/api/runs/{run}").json()["state"] == "running"
        assert client.delete(f"/api/runs/{run}").status_code == 204
        assert events_of(client, run)[-1] == "RunError"
        free.set()
        assert client.get(f"/api/runs/{run}").json()["state"] == "cancelled"
        assert client.delete(f"/api/runs/{run}").status_code == 404


def test_a_run_that_is_stopped_or_fails_after_some_work_names_the_files_and_goes_on(
    served: Served, model: WireServer
) -> None:
    import threading

    begun, done = threading.Event(), Said(text="All of it is done.")
    answers = iter([WRITE, Said(mode="hangs"), Said(mode="failed"), done])

    def scripted(_messages: Any, _number: int) -> Said:
        if (said := next(answers)).mode == "hangs":
            begun.set()
        return said

    model.scripts["worker"] = scripted
    with served.client() as client:
        run = client.post("/api/sessions/halted/runs", json={"message": "/song-writer a file"}).json()["run"]
        assert begun.wait(20)
        assert client.delete(f"/api/runs/{run}").status_code == 204
        with client.stream("GET", f"/api/runs/{run}/events") as stream:
            ended = list(sent(stream))[-1]
        assert client.get(f"/api/runs/{run}").json()["state"] == "cancelled"
        error = ended.data["payload"]["error"]
        assert (ended.event, error["type"]) == ("RunError", "Cancelled")
        assert error["files"] == [f"mybox/workspace/{run}/a.txt"] and error["hint"].startswith("say continue")
    failed = served.chat("continue", "halted")[-1].data["payload"]
    assert (failed["state"], failed["data"]["files"]) == ("error", error["files"])
    assert failed["data"]["hint"].startswith("say continue")
    assert not any(line.startswith("say continue") for line in failed["sections"]["state_update"])
    assert served.chat("continue", "halted")[-1].data["payload"]["summary"] == done.text


def test_a_reader_that_goes_away_ends_nothing(served: Served, model: WireServer) -> None:
    import threading

    free = threading.Event()

    def slow(_messages: Any, _number: int) -> Said:
        free.wait(20)
        return HELLO

    model.scripts["worker"] = slow
    with served.client() as client:
        with client.stream("POST", "/api/chat/gone", json={"message": "/song-writer the moon"}) as stream:
            run = stream.headers["x-run-id"]
        free.set()
        assert events_of(client, run)[-1] == "RunCompleted"


@pytest.mark.wide
def test_lists_come_in_pages(served: Served, model: WireServer) -> None:
    says(model, HELLO)
    for number in range(3):
        served.chat("/song-writer the moon", f"page{number}")
    seen: list[str] = []
    with served.client() as client:
        cursor = ""
        for _ in range(50):
            held = client.get("/api/runs", params={"limit": 1, "cursor": cursor}).json()
            seen += [one["run"] for one in held["runs"]]
            if not (cursor := held["next"]):
                break
        every = [one["run"] for one in client.get("/api/runs", params={"limit": 500}).json()["runs"]]
    assert seen == every == sorted(every, reverse=True)
