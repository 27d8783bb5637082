"""The real client of AG-UI, @ag-ui/client from npm, against a real server (marker ci)."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.ag_ui import Event, kinds, of_kind, text
from gateway.ag_ui_turns import calls, prepared, recorded, turn
from gateway.served import Person, Served
from models.wire_server import HELLO, Said, WireServer
from specialist.turns import says

pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]

CLIENT = "@ag-ui/client@1.0.0"
SCRIPT = Path(__file__).with_name("ag_ui_client.mjs")


@pytest.fixture(scope="module")
def person(person: Person) -> Person:
    return prepared(person)


@pytest.fixture(scope="module")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the client is installed."""
    folder = tmp_path_factory.mktemp("npm")
    (folder / "package.json").write_text("{}")
    argv = ["npm", "install", "--silent", "--no-fund", "--no-audit", CLIENT]
    subprocess.run(argv, cwd=folder, check=True, timeout=300)
    return folder


class Client:
    """Runs the script for one scenario."""

    def __init__(self, npm: Path, served: Served, role: str = "admin") -> None:
        self._npm, self._served, self._role = npm, served, role

    def __call__(self, scenario: str, **given: Any) -> dict[str, Any]:
        given = {"url": self._served.url, "token": self._served.tokens[self._role], **given}
        done = subprocess.run(
            ["node", SCRIPT, scenario],
            cwd=self._npm,
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        held: dict[str, Any] = json.loads(done.stdout)
        assert held["warnings"] == [], held["warnings"]
        return held


@pytest.fixture
def client(npm: Path, served: Served, model: WireServer) -> Client:
    return Client(npm, served)


def events_of(held: Mapping[str, Any]) -> list[list[Event]]:
    assert [run["error"] for run in held["runs"]] == [""] * len(held["runs"])
    return [run["events"] for run in held["runs"]]


def slowly(model: WireServer, seconds: float) -> threading.Event:
    """Makes the model answer after `seconds`, or once the event is set."""
    free = threading.Event()

    def answer(_messages: Any, _number: int) -> Said:
        free.wait(seconds)
        return HELLO

    model.scripts["worker"] = answer
    return free


def test_the_clients_verification_passes_every_recorded_stream(
    client: Client, served: Served, model: WireServer
) -> None:
    streams = recorded(served, model)
    held = client("verify", streams=streams)
    assert {run["name"]: run["error"] for run in held["runs"]} == dict.fromkeys(streams, "")
    assert all(run["events"][0] == streams[run["name"]][-1] for run in held["runs"])


def test_a_turn_streams_text_and_shows_its_tool_call(client: Client, model: WireServer) -> None:
    says(model, calls("task_create", title="会议准备"), Said(text="I have made it for you."))
    held = client("say", messages=["/task_manager 创建一个会议准备任务"])
    (events,) = events_of(held)
    assert kinds(events)[0] == "RUN_STARTED" and kinds(events)[-1] == "RUN_FINISHED"
    assert len(of_kind(events, "TEXT_MESSAGE_CONTENT")) > 1
    said = [(one["role"], one.get("content")) for one in held["messages"]]
    assert [role for role, _ in said] == ["user", "activity", "assistant", "tool", "assistant"]
    assert said[-1][1] == "I have made it for you."
    call = held["messages"][2]["toolCalls"][0]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == (
        "task_create", {"title": "会议准备"},
    )  # fmt: skip
    assert held["messages"][3]["toolCallId"] == call["id"]
    assert [one["name"] for one in of_kind(events, "CUSTOM")].count("UICommand") == 2


def test_a_thread_continues_over_several_messages(client: Client, model: WireServer) -> None:
    held = client("say", messages=["/shout-loud", "/song-writer the moon", "你好"])
    first, second, third = events_of(held)
    assert first[-1]["outcome"] == {"type": "success"} and "needs" in text(first)
    assert text(second) == HELLO.text and text(third)


@pytest.mark.parametrize(
    ("response", "result"),
    [
        ({"status": "resolved", "payload": {"approved": True}}, '"deleted": true'),
        ({"status": "resolved", "payload": {"approved": False}}, "not done"),
        ({"status": "cancelled"}, "not done"),
    ],
    ids=["yes", "no", "cancelled"],
)
def test_an_approval_is_an_interrupt_that_the_client_resumes(
    client: Client, served: Served, model: WireServer, response: dict[str, Any], result: str
) -> None:
    made = turn(served, model, "/task_manager create it", calls("task_create", title="old"), Said(text="done"))
    task = json.loads(of_kind(made, "TOOL_CALL_RESULT")[0]["content"])["id"]
    model.requests.clear()
    says(model, calls("task_delete", task_id=task), Said(text="deleted"), HELLO)
    held = client("approve", message=f"/task_manager delete {task}", response=response, then="hello")
    asked, answered, after = events_of(held)
    waits = asked[-1]["outcome"]["interrupts"][0]
    assert asked[-1]["outcome"]["type"] == "interrupt"
    assert answered[-1]["outcome"] == {"type": "success"} == after[-1]["outcome"]
    results = [one for one in held["messages"] if one["role"] == "tool"]
    assert [one["toolCallId"] for one in results] == [waits["toolCallId"]] and result in results[0]["content"]
    assert held["pendingInterrupts"] == []


def test_a_model_that_fails_in_the_middle_is_an_error_of_the_run(client: Client, model: WireServer) -> None:
    says(model, calls("task_create", "I make it.", title="half"), Said(finish="content_filter"))
    held = client("say", messages=["/task_manager create it"])
    (events,) = events_of(held)
    assert kinds(events)[-1] == "RUN_ERROR" and events[-1]["code"] == "error" and events[-1]["message"]
    assert [one["content"] for one in held["messages"] if one["role"] == "assistant" and one.get("content")] == [
        "I make it."
    ]


def test_a_client_that_aborts_ends_nothing_on_the_server(client: Client, served: Served, model: WireServer) -> None:
    free = slowly(model, 20)
    held = client("abort", message="/song-writer the moon")
    run = held["runs"][0]["events"][0]["metadata"]["navigator"]["run"]
    with served.client() as http:
        assert http.get(f"/api/runs/{run}").json()["state"] == "running"
        free.set()
        for _ in range(600):
            if (state := http.get(f"/api/runs/{run}").json()["state"]) != "running":
                break
            time.sleep(0.05)
    assert state == "success"


def test_a_run_that_is_stopped_ends_as_cancelled(client: Client, model: WireServer) -> None:
    free = slowly(model, 20)
    (events,) = events_of(client("cancel", message="/song-writer the moon"))
    free.set()
    assert events[-1]["type"] == "RUN_FINISHED" and events[-1]["outcome"] == {"type": "cancelled"}


def test_a_client_that_lost_its_stream_connects_and_gets_the_whole_thread(client: Client, model: WireServer) -> None:
    slowly(model, 2)
    held = client("reconnect", first="/song-writer the sun", message="/song-writer the moon")
    _, lost, again = (run["events"] for run in held["runs"])
    assert "RUN_FINISHED" not in kinds(lost)
    assert again[-1]["outcome"] == {"type": "success"} and text(again) == HELLO.text
    said = [(one["role"], one["content"]) for one in held["messages"] if one["role"] in {"user", "assistant"}]
    assert said == [
        ("user", "/song-writer the sun"), ("assistant", HELLO.text),
        ("user", "/song-writer the moon"), ("assistant", HELLO.text),
    ]  # fmt: skip


def test_a_refusal_reaches_the_client_with_its_status(npm: Path, served: Served, model: WireServer) -> None:
    held = Client(npm, served, "read")
    with pytest.raises(AssertionError, match="HTTP 403"):
        held("say", messages=["hello"])


def test_the_lines_of_the_guide_do_what_they_say(npm: Path, served: Served, model: WireServer) -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "http.md"
    lines = guide.read_text("utf-8").partition('title="agent.mjs"\n')[2].partition("```")[0]
    (npm / "agent.mjs").write_text(lines.replace("http://127.0.0.1:8766", served.url))
    made = turn(served, model, "/task_manager create it", calls("task_create", title="old"), Said(text="done"))
    task = json.loads(of_kind(made, "TOOL_CALL_RESULT")[0]["content"])["id"]
    model.requests.clear()
    says(model, calls("task_delete", task_id=task), Said(text="deleted"))
    env = {**os.environ, "TOKEN": served.tokens["admin"]}
    argv = ["node", "agent.mjs"]
    done = subprocess.run(argv, cwd=npm, env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "task_delete" in done.stdout and done.stdout.endswith("deleted")
