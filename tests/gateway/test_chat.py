"""Chat over HTTP: the seed's events in their order, following, stopping, and one turn at a time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.served import Sent, Served, sent
from models.wire_server import Said, WireServer
from specialist.turns import says

SEED = {
    "RunStarted", "SkillActivated", "ToolCallStarted", "ToolCallCompleted", "RunContent", "UICommand", "RunCompleted",
    "RunError",
}  # fmt: skip
TASK = '{"title": "会议准备", "start_time": "2026-11-27T15:00:00+08:00"}'


def kinds(events: list[Any]) -> list[str]:
    return [one.event for one in events]


# "RunStarted … RunContent, UICommand, RunCompleted — RunCompleted: conversation ends"
@pytest.mark.requirement("EVT-1", "EVT-6")
def test_a_run_streams_the_seeds_events_in_order_and_ends_once(served: Served, model: WireServer) -> None:
    says(model, Said(calls=[("task_create", TASK)]), Said(text="已为您创建任务「会议准备」"))
    events = served.chat("/task_manager 创建一个明天下午3点的会议准备任务")
    assert kinds(events) == [
        "RunStarted", "SkillActivated", "ToolCallStarted", "ToolCallCompleted", "RunContent",
        "UICommand", "UICommand", "RunCompleted",
    ]  # fmt: skip
    assert set(kinds(events)) <= SEED
    numbers = [one.data["seq"] for one in events]
    assert numbers == sorted(set(numbers))
    assert all(one.id == f"{one.data['run']}:{one.data['seq']}" for one in events)


# "text stream, command stream, skill status (正在加载xxx模块...)"
@pytest.mark.requirement("EVT-4")
def test_the_text_the_commands_and_the_skills_status_come_as_events(served: Served, model: WireServer) -> None:
    says(model, Said(calls=[("task_create", TASK)]), Said(text="已创建"))
    held = {one.event: one.data["payload"] for one in served.chat("/task_manager 创建任务")}
    assert held["SkillActivated"]["text"] == "正在加载 task_manager 模块…"
    assert held["RunContent"]["text"] == "已创建"
    assert held["ToolCallStarted"]["args"]["title"] == "会议准备"
    assert json.loads(held["ToolCallCompleted"]["result"])["title"] == "会议准备"


# "toast -> message by payload.type; refresh tasks -> fetchTasks"
@pytest.mark.requirement("EVT-2", "EVT-5")
def test_a_page_can_act_on_the_commands_as_the_seed_does(served: Served, model: WireServer) -> None:
    says(model, Said(calls=[("task_create", TASK)]), Said(text="done"))
    commands = [one.data["payload"] for one in served.chat("/task_manager create it") if one.event == "UICommand"]
    by_type = {command["type"]: command["payload"] for command in commands}
    assert by_type["refresh"] == {"target": "tasks"}
    assert by_type["toast"]["type"] == "success" and by_type["toast"]["message"]


def test_a_run_whose_model_fails_ends_once_with_the_error_and_the_way_to_retry(
    served: Served, model: WireServer
) -> None:
    del model.scripts["worker"]
    events = served.chat("/song-writer the moon")
    assert sum(one.event in {"RunCompleted", "RunError"} for one in events) == 1
    ended = events[-1].data["payload"]
    assert (events[-1].event, ended["state"]) == ("RunCompleted", "error")
    assert ended["summary"] == "model 'there:worker': the connection broke before the answer was complete"
    assert 'it failed; "retry" tries it again' in ended["sections"]["state_update"]


def test_a_client_resumes_behind_the_event_that_it_saw_last(served: Served) -> None:
    events = served.chat("/song-writer the moon")
    run = events[0].data["run"]
    with served.client() as client:
        for at, event in enumerate(events):
            with client.stream("GET", f"/api/runs/{run}/events", headers={"Last-Event-ID": event.id}) as answer:
                assert list(sent(answer)) == events[at + 1 :]


@pytest.mark.parametrize("last", ["20260101-000000000-abcdef:1", "x", ":", "a:b", "é:1"])
def test_a_position_of_another_run_is_refused(served: Served, last: str) -> None:
    run = served.chat("/song-writer the moon")[0].data["run"]
    with served.client() as client:
        answer = client.get(f"/api/runs/{run}/events", headers=[(b"Last-Event-ID", last.encode())])
    assert answer.status_code == 400 and answer.headers["content-type"] == "application/problem+json"


def test_all_events_of_the_log_come_where_they_are_asked_for(served: Served) -> None:
    events = served.chat("/song-writer the moon", events="all")
    assert [one.data["seq"] for one in events] == list(range(len(events)))
    assert {"RouteDecided", "SkillChosen", "Usage"} <= set(kinds(events))


def test_one_stream_follows_all_runs_and_continues_where_it_stopped(served: Served, model: WireServer) -> None:
    says(model, Said(text="hello"))
    with served.client() as client, client.stream("GET", "/api/events") as stream:
        runs = {served.chat("/song-writer the moon", f"all{number}")[0].data["run"] for number in range(3)}
        seen: list[Sent] = []
        for one in sent(stream):
            seen.append(one)
            if {end.data["run"] for end in seen if end.event == "RunCompleted"} == runs:
                break
    assert [one.event for one in seen].count("RunStarted") == 3
    with (
        served.client() as client,
        client.stream("GET", "/api/events", headers={"Last-Event-ID": seen[3].id}) as stream,
    ):
        again = sent(stream)
        assert [next(again) for _ in seen[4:]] == seen[4:]


def test_one_stream_of_another_process_says_that_events_were_missed(served: Served) -> None:
    with (
        served.client() as client,
        client.stream("GET", "/api/events", headers={"Last-Event-ID": "00000000:5"}) as stream,
    ):
        assert next(sent(stream)).event == "Reset"


def test_another_token_does_not_hear_of_a_run(served: Served, model: WireServer) -> None:
    says(model, Said(text="hello"))
    with served.client("approve") as client, client.stream("GET", "/api/events") as stream:
        served.chat("/song-writer the moon", "hidden", "chat")
        served.chat("/song-writer the moon", "mine", "approve")
        assert next(sent(stream)).data["session"] == "mine"


LINE = Said(calls=[("run", '{"command": "echo hello | tee said.txt"}')])


@pytest.mark.requirement("JIT-12")
def test_a_token_that_may_approve_gives_rights_with_a_message_and_for_it_alone(
    served: Served, model: WireServer
) -> None:
    def asked(allow: list[str], role: str = "approve") -> tuple[Any, Any]:
        model.requests.clear()
        says(model, LINE, Said(text="Done."))
        body = {"message": "/song-writer a song", "allow": allow}
        with served.client(role) as client:
            answer = client.post("/api/sessions/rights/runs", json=body)
            if answer.status_code != 202:
                return answer.status_code, answer.json()
            events = list(sent(client.get(f"/api/runs/{answer.json()['run']}/events")))
            return events[-1].event, client.get("/api/approvals").json()["approvals"]

    refused = asked(["run"], "chat")
    assert (refused[0], refused[1]["code"], "role approve" in refused[1]["hint"]) == (403, "role", True)
    unknown = asked(["everything"])
    assert (unknown[0], "edit:FOLDER/" in unknown[1]["hint"]) == (400, True)
    assert asked(["run", "edit:docs/"]) == ("RunCompleted", [])
    assert [one["session"] for one in asked([])[1]] == ["rights"]  # the next message asks again
