"""AG-UI over plain HTTP: the order of the events, interrupts and their answers, and reading a thread again."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from gateway.ag_ui import Event, asked, events, in_order, interrupts, kinds, of_kind, read, resumed, text
from gateway.ag_ui_turns import answered, calls, prepared, recorded, resume, turn, waiting_task
from gateway.served import Person, Served, edit_of
from models.wire_server import HELLO, Said, WireServer
from specialist.turns import says
from tables import cases


@pytest.fixture(scope="module")
def person(person: Person) -> Person:
    return prepared(person)


@pytest.fixture
def streams(served: Served, model: WireServer) -> Mapping[str, list[Event]]:
    return recorded(served, model)


def custom(held: list[Event]) -> list[str]:
    return [str(one["name"]) for one in of_kind(held, "CUSTOM")]


@pytest.mark.wide
def test_the_events_of_every_kind_of_turn_are_in_order(streams: Mapping[str, list[Event]]) -> None:
    for name, held in streams.items():
        assert held, name
        in_order(held)
    assert len(streams) >= 20
    failed = {name for name, held in streams.items() if kinds(held)[-1] == "RUN_ERROR"}
    assert failed == {
        "a skill that is not there",
        "a model that fails",
        "a model that fails in the middle",
        "a command that fails, after a yes",
    }
    steps = of_kind(streams["a plan of three steps, after a yes"], "STEP_STARTED")
    assert [step["stepName"] for step in steps] == ["skill:shout-loud", "skill:count-terms", "skill:shout-loud"]


@pytest.mark.requirement("EVT-4", "EVT-5")
def test_a_page_gets_text_tool_calls_skills_commands_and_the_funnel(served: Served, model: WireServer) -> None:
    body = asked("/task_manager 创建一个会议准备任务")
    held = turn(served, model, body, calls("task_create", title="会议准备"), Said(text="已创建"))
    assert text(held) == "已创建"
    assert custom(held) == [
        "SkillsOffered", "SkillChosen", "SkillLoaded", "Progress", "UICommand", "UICommand", "SkillUsed",
    ]  # fmt: skip
    assert of_kind(held, "ACTIVITY_SNAPSHOT")[0]["content"]["text"] == "正在加载 task_manager 模块…"
    assert of_kind(held, "TOOL_CALL_ARGS")[0]["delta"] == '{"title": "会议准备"}'
    assert '"title": "会议准备"' in of_kind(held, "TOOL_CALL_RESULT")[0]["content"]
    assert {"type": "refresh", "payload": {"target": "tasks"}} in [one["value"] for one in of_kind(held, "CUSTOM")]
    ended = held[-1]
    assert (ended["threadId"], ended["runId"]) == (body["threadId"], body["runId"])
    assert ended["outcome"] == {"type": "success"} and ended["usage"][0]["model"] == "worker"


def test_a_question_is_answered_by_the_next_message_of_the_thread(served: Served, model: WireServer) -> None:
    body = asked("/shout-loud")
    held = turn(served, model, body)
    assert "ClarificationAsked" in custom(held) and held[-1]["outcome"] == {"type": "success"}
    more = turn(served, model, asked("hello you", body["threadId"]))
    assert interrupts(more)[0]["reason"] == "confirmation"


def test_an_interrupt_names_the_approval_its_call_and_how_to_answer(served: Served, model: WireServer) -> None:
    _, held = waiting_task(served, model, "chat")
    waits = interrupts(held)[0]
    call = of_kind(held, "TOOL_CALL_START")[0]["toolCallId"]
    assert (waits["reason"], waits["toolCallId"]) == ("tool_call", call) and not of_kind(held, "TOOL_CALL_RESULT")
    assert waits["responseSchema"]["required"] == ["approved"] and "task_delete" in waits["message"]
    with served.client("chat") as client:
        kept = client.get("/api/approvals").json()["approvals"]
    mine = next(one for one in kept if one["id"] == waits["id"])
    assert (mine["expires"], mine["subject"]) == (waits["expiresAt"], waits["metadata"]["navigator"]["subject"])


@pytest.mark.wide
@pytest.mark.parametrize(("payload", "result"), [(True, '"deleted": true'), ({"approved": False}, "not done")])
def test_a_resume_gives_the_call_that_waited_its_result(
    served: Served, model: WireServer, payload: Any, result: str
) -> None:
    thread, held = waiting_task(served, model)
    more = resume(served, model, answered(held, thread, payload=payload))
    in_order(more)
    results = of_kind(more, "TOOL_CALL_RESULT")
    assert [one["toolCallId"] for one in results] == [interrupts(held)[0]["toolCallId"]]
    assert result in results[0]["content"] and not of_kind(more, "TOOL_CALL_START")
    assert more[-1]["outcome"] == {"type": "success"}


@pytest.mark.requirement("JIT-12")
def test_an_edit_of_a_file_that_nobody_named_ends_after_one_yes(
    person: Person, served: Served, model: WireServer
) -> None:
    file = person.here.root / "unnamed-too.txt"
    body = asked("/song-writer a song")
    held = turn(served, model, body, Said(calls=[("edit", edit_of(file))]), Said(text="It is longer."))
    more = resume(served, model, answered(held, body["threadId"], payload=True))
    assert more[-1]["outcome"] == {"type": "success"} and file.read_text() == "first\nsecond\n"


@pytest.mark.wide
def test_an_answer_counts_once_and_the_thread_continues(served: Served, model: WireServer) -> None:
    thread, held = waiting_task(served, model)
    body = answered(held, thread, payload=True)
    assert '"deleted": true' in of_kind(resume(served, model, body), "TOOL_CALL_RESULT")[0]["content"]
    again = events(served, body)
    in_order(again)
    assert "Nothing waits" in text(again) and again[-1]["outcome"] == {"type": "success"}
    assert not of_kind(again, "TOOL_CALL_RESULT")


@cases("entry, status")
def test_an_invalid_or_forbidden_answer_is_refused_and_the_approval_stays_pending(
    served: Served, model: WireServer, entry: dict[str, Any], status: int
) -> None:
    thread, held = waiting_task(served, model)
    with served.client() as client:
        refused = client.post("/ag-ui", json=answered(held, thread, **entry))
        assert (refused.status_code, refused.headers["content-type"]) == (status, "application/problem+json")
        kept = {one["id"] for one in client.get("/api/approvals").json()["approvals"]}
    assert interrupts(held)[0]["id"] in kept


def test_only_a_token_that_may_approve_says_yes_and_any_says_no(served: Served, model: WireServer) -> None:
    thread, held = waiting_task(served, model, "chat")
    with served.client("chat") as client:
        assert client.post("/ag-ui", json=answered(held, thread, payload=True)).status_code == 403
    more = events(served, answered(held, thread, status="cancelled"), role="chat")
    assert "not done" in of_kind(more, "TOOL_CALL_RESULT")[0]["content"]


def test_a_message_before_the_answer_is_not_taken_for_one(served: Served, model: WireServer) -> None:
    thread, held = waiting_task(served, model)
    for word in ("yes", "no", "something else"):
        more = events(served, asked(word, thread))
        in_order(more)
        assert interrupts(more)[0]["id"] == interrupts(held)[0]["id"]
    unknown = events(served, resumed(thread, "another", True))
    assert interrupts(unknown)[0]["id"] == interrupts(held)[0]["id"]


def test_an_answer_to_nothing_does_not_keep_a_message_from_its_turn(served: Served, model: WireServer) -> None:
    says(model, HELLO)
    held = events(served, asked("/song-writer the moon", resume=[{"interruptId": "gone", "status": "cancelled"}]))
    in_order(held)
    assert text(held) == HELLO.text


def test_clients_before_1_0_are_sent_what_they_know(served: Served, model: WireServer) -> None:
    body = {**asked("/song-writer the moon"), "protocolVersion": None, "resume": None}
    held = turn(served, model, body)
    in_order(held)
    assert not [kind for kind in kinds(held) if kind.startswith("SUBAGENT")] and "subagentRunId" not in str(held)


@pytest.mark.parametrize(
    "body",
    [
        {},
        asked(),
        asked("hello", "a/b"),
        asked("hello", "x" * 300),
        {**asked("hello"), "messages": "hello"},
        {**asked(), "messages": [{"id": "1", "role": "assistant", "content": "hello"}]},
        {**asked(), "messages": [{"id": "1", "role": "user", "content": [{"type": "image"}]}]},
    ],
)
def test_a_request_without_a_message_is_refused(served: Served, body: dict[str, Any]) -> None:
    with served.client("chat") as client:
        refused = client.post("/ag-ui", json=body)
    assert refused.status_code in {400, 422} and refused.headers["content-type"] == "application/problem+json"


def test_the_text_of_a_message_in_parts_is_read(served: Served, model: WireServer) -> None:
    parts = [{"type": "text", "text": "/song-writer"}, {"type": "image"}, {"type": "text", "text": "the moon"}]
    said = [{"id": "1", "role": "user", "content": parts}, {"id": "2", "role": "activity", "content": {}}]
    assert text(turn(served, model, {**asked(), "messages": said})) == HELLO.text


def test_a_thread_is_read_again_with_its_messages_and_its_last_run(served: Served, model: WireServer) -> None:
    body = asked("/song-writer the moon")
    turn(served, model, body, Said(text="Moon."))
    last = turn(served, model, asked("/song-writer the sun", body["threadId"]), Said(text="Sun."))
    again = events(served, asked(thread=body["threadId"]), "/ag-ui/connect")
    in_order(again)
    snapshot = of_kind(again, "MESSAGES_SNAPSHOT")[0]["messages"]
    assert [(one["role"], one["content"]) for one in snapshot] == [
        ("user", "/song-writer the moon"), ("assistant", "Moon."), ("user", "/song-writer the sun"),
    ]  # fmt: skip
    assert text(again) == "Sun."
    assert [one for one in kinds(again) if one != "MESSAGES_SNAPSHOT"] == kinds(last)


def test_a_thread_that_waits_is_read_again_with_its_interrupt(served: Served, model: WireServer) -> None:
    thread, held = waiting_task(served, model)
    again = events(served, asked(thread=thread), "/ag-ui/connect")
    in_order(again)
    assert interrupts(again) == interrupts(held)
    assert events(served, asked(thread=thread), "/ag-ui/connect", role="approve") == []  # another token's thread
    assert events(served, asked(), "/ag-ui/connect") == []


def test_a_client_that_connects_later_can_follow_a_run_and_cancel_it(served: Served, model: WireServer) -> None:
    begun, free = threading.Event(), threading.Event()

    def slow(_messages: Any, _number: int) -> Said:
        begun.set()
        free.wait(20)
        return HELLO

    model.scripts["worker"] = slow
    body = asked("/song-writer the moon")
    with served.client() as client:
        with client.stream("POST", "/ag-ui", json=body) as gone:
            run = gone.headers["x-run-id"]
        assert begun.wait(20)
        assert client.post("/ag-ui", json=asked("more", body["threadId"])).status_code == 409
        with client.stream("POST", "/ag-ui/connect", json=asked(thread=body["threadId"])) as again:
            assert again.headers["x-run-id"] == run
            assert client.delete(f"/api/runs/{run}").status_code == 204
            data = again.read().decode()
        free.set()
    held = read(data)
    in_order(held)
    assert held[-1]["outcome"] == {"type": "cancelled"}
