"""What a token's turns can see of the files that other tokens' sessions and the terminal made: nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.served import Person, Sent, Served, sent, serving
from models.wire_server import Said, WireServer
from person_state import accept
from sandbox.world import RUNGS, use
from specialist.turns import says, song

SECRET = "salary 12345"
NAME = "payroll.txt"
TOOLS = "allowed-tools: read, list, glob, grep, write, edit, run\n"
WORKFLOW = """---
name: count
version: 1.0.0
description: counts
depends_on: [log-summary]
sandbox:
  file_access:
    read: [mybox/workspace]
---

## Step 1: log-summary

- skill: log-summary
- input: "/log-summary @{path}"
"""


class Files(NamedTuple):
    """Files of one owner, relative to the project: one that was attached, and one that a run wrote."""

    attached: str
    written: str

    @property
    def names(self) -> tuple[str, ...]:
        return (NAME, *(Path(path).parent.name for path in self))


@pytest.fixture(scope="module", params=[RUNGS[0], pytest.param(RUNGS[1], marks=pytest.mark.wide)])
def served(person: Person, request: pytest.FixtureRequest) -> Iterator[Served]:
    """A server on each sandbox. The role `chat` is token A, the role `approve` token B; the administrator is the person
    at the terminal."""
    person.here.write({".claude/skills/song-writer/SKILL.md": song(TOOLS)})
    with pytest.MonkeyPatch.context() as patch:
        for name, value in person.env.items():
            patch.setenv(name, value)
        accept(person.here.root, "song-writer")
        use(request.param)
    with serving(person, roles=("admin", "approve", "chat")) as held:
        yield held


def _made(served: Served, model: WireServer, role: str) -> Files:
    call = ("write", json.dumps({"file_path": NAME, "content": SECRET}))
    model.requests.clear()
    says(model, Said(calls=[call]), Said(text="Done."))
    with served.client(role) as client:
        body = {"name": NAME, "data": base64.b64encode(SECRET.encode()).decode()}
        attached = client.post("/api/sessions/mine/files", json=body).json()["path"]
        run = served.chat("/song-writer a list", "mine", role)[0].data["run"]
        assert client.get(f"/api/runs/{run}/files").json()["files"][0]["path"] == NAME
    model.requests.clear()
    return Files(attached, f"mybox/workspace/{run}/{NAME}")


@pytest.fixture(scope="module")
def of_a(served: Served, model_server: WireServer) -> Files:
    return _made(served, model_server, "chat")


@pytest.fixture(scope="module", params=["chat", "admin"])
def others(request: pytest.FixtureRequest, served: Served, of_a: Files, model_server: WireServer) -> Files:
    """The files of token A, or of the person."""
    return of_a if request.param == "chat" else _made(served, model_server, "admin")


def _taken(served: Served, message: str, session: str = "b", role: str = "approve") -> list[Sent]:
    """The events of a turn of token B, and of the one after it if it asks and B says yes."""
    events = served.chat(message, session, role, events="all")
    asked = [one.data["payload"]["id"] for one in events if one.event == "ApprovalRequested"]
    if not asked:
        return events
    with served.client(role) as client:
        run = client.post(f"/api/approvals/{asked[0]}", json={"answer": "yes"}).json()["run"]
        client.get(f"/api/runs/{run}/events")
        return [*events, *(Sent("", one["type"], one) for one in client.get(f"/api/runs/{run}/log").json()["events"])]


def _seen(served: Served, events: list[Sent], model: WireServer, role: str = "approve") -> str:
    """All that the token, and the model that works for it, got from its turns."""
    with served.client(role) as client:
        steps = [client.get(f"/api/runs/{run}/steps").text for run in {one.data["run"] for one in events}]
    return str([one.data for one in events]) + str([one.body for one in model.requests]) + str(steps)


def _asked(calls: list[tuple[str, Any]], model: WireServer) -> None:
    says(model, *(Said(calls=[(name, json.dumps(given))]) for name, given in calls), Said(text="Done."))


def test_a_file_of_others_is_not_read_by_its_mark(served: Served, others: Files, model: WireServer) -> None:
    for path in others:
        events = _taken(served, f"/song-writer @{path}")
        assert SECRET not in _seen(served, events, model)
        assert "belongs to somebody else" in str(events[-1].data)


def test_a_token_still_reads_what_its_own_sessions_made(served: Served, of_a: Files, model: WireServer) -> None:
    for at, path in enumerate(of_a):
        _asked([("read", {"file_path": NAME})], model)
        events = _taken(served, f"/song-writer read @{path}", f"later-{at}", "chat")
        assert events[-1].data["payload"]["state"] == "success"
        assert str([one.body for one in model.requests]).count(SECRET) >= 2  # in the message, and by the tool
        model.requests.clear()
    events = _taken(served, f"/log-summary {of_a.written}", "later", "chat")
    assert events[-1].data["payload"]["state"] == "success"


def test_the_person_reads_the_files_of_all(served: Served, of_a: Files, model: WireServer) -> None:
    says(model, Said(text="Done."))
    served.chat(f"/song-writer @{of_a.attached}", "theirs", "admin")
    assert SECRET in str([one.body for one in model.requests])


@pytest.mark.parametrize("folder", ["mybox/workspace", "mybox", "", "mybox/workspace/{run}"])
def test_a_skill_that_reads_the_project_lists_no_file_of_others(
    served: Served, others: Files, model: WireServer, folder: str
) -> None:
    run = Path(others.written).parent.name
    said = folder.format(run=run)
    seen = _seen(served, _taken(served, f"/folder-inventory {said}".strip()), model).replace(said, "")
    assert not any(name in seen for name in others.names if name not in said)  # an error may repeat what was asked for


def test_a_skill_that_takes_a_file_takes_none_of_others(served: Served, others: Files, model: WireServer) -> None:
    for path in others:
        events = _taken(served, f"/log-summary {path}")
        assert events[-1].data["payload"]["state"] == "error"
        assert "belongs to somebody else" in str(events[-1].data)
        assert "12345" not in _seen(served, events, model)


@pytest.mark.parametrize("tool", ["read", "list", "glob", "grep", "edit"])
def test_a_models_tools_see_no_file_of_others_that_the_message_names(
    served: Served, person: Person, others: Files, model: WireServer, tool: str
) -> None:
    path, root = others.written, person.here.root
    given = {
        "read": [{"file_path": path}, {"file_path": str(root / path)}, {"file_path": NAME}],
        "list": [{"path": "mybox/workspace"}, {"path": str((root / path).parent)}],
        "glob": [{"pattern": f"**/{NAME}", "path": "mybox"}, {"pattern": f"**/{NAME}", "path": str(root)}],
        "grep": [{"pattern": "salary", "path": path}, {"pattern": "salary", "path": str(root / "mybox")}],
        "edit": [{"file_path": path, "old_string": "salary", "new_string": "x"}],
    }
    _asked([(tool, one) for one in given[tool]], model)
    _taken(served, f"/song-writer look at {path}", f"tools-{tool}")
    results = [one for body in model.requests for one in body.body["messages"] if one["role"] == "tool"]
    assert results and "12345" not in str(results) and (root / path).read_text() == SECRET


def test_a_command_in_the_sandbox_reads_no_file_of_others(
    served: Served, person: Person, others: Files, model: WireServer
) -> None:
    path = person.here.root / others.written
    _asked([("run", {"command": f"cat {path}; ls {path.parent}; ls {path.parents[1]}; true"})], model)
    events = _taken(served, f"/song-writer look at {others.written}", "runs")
    results = [one["content"] for body in model.requests for one in body.body["messages"] if one["role"] == "tool"]
    assert results, events
    assert "exit code" in str(results) and "12345" not in str(results) and f"\n{NAME}" not in str(results)


def test_a_command_that_a_token_types_lists_no_file_of_others(served: Served, others: Files, model: WireServer) -> None:
    events = _taken(served, "!ls mybox/workspace; cat mybox/workspace/*/*; true", "shell")
    seen = _seen(served, events, model)
    assert "12345" not in seen and not any(name in seen for name in others.names)


def test_a_step_of_a_stored_workflow_takes_no_file_of_others(served: Served, of_a: Files) -> None:
    text = WORKFLOW.format(path=of_a.attached)
    with served.client() as admin:
        assert admin.put("/api/workflows/count", json={"text": text}).status_code == 200
    states = {}
    for role in ("chat", "approve"):
        with served.client(role) as client:
            run = client.post("/api/workflows/count/runs", json={"session": "flow"}).json()["run"]
            with client.stream("GET", f"/api/runs/{run}/events") as stream:
                states[role] = list(sent(stream))[-1].data["payload"]
    assert states["chat"]["state"] == "success", states
    assert states["approve"]["state"] == "error" and "belongs to somebody else" in str(states["approve"])


def test_no_file_of_others_decides_a_route(served: Served, others: Files) -> None:
    with served.client("approve") as client:
        answers = [
            client.post("/api/route", json={"message": f"/song-writer {word}"}).json()
            for word in (f"@{others.attached}", f"@{others.attached}x")
        ]
    assert [SECRET in str(one) for one in answers] == [False, False]
