"""A workflow run continues over HTTP only while it can: one that has ended, or is under way, stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.served import Person, Served, sent
from navigator_kernel.adapters.files.database import file_lock
from workflows.project import SKILLS, put_skill

TEXT = '---\nname: {name}\nversion: 1.0.0\ndescription: {name}\ndepends_on: [{skill}]\n---\n\n## Step 1: {skill}\n\n- skill: {skill}\n- input: "/{skill} text=hello"\n'


@pytest.fixture(autouse=True)
def skill(person: Person) -> None:
    put_skill(person.here.root, "shout-loud", SKILLS["shout-loud"])


def begun(client: httpx2.Client, name: str, skill: str, session: str) -> str:
    """The path of a run whose turn has ended; a step of an untrusted skill waits for approval."""
    made = client.put(f"/api/workflows/{name}", json={"text": TEXT.format(name=name, skill=skill)})
    assert made.status_code == 200, made.text
    run = client.post(f"/api/workflows/{name}/runs", json={"session": session}).json()["run"]
    with client.stream("GET", f"/api/runs/{run}/events") as stream:
        assert list(sent(stream))[-1].event == "RunCompleted"
    return f"/api/workflow-runs/{run}"


def everything(client: httpx2.Client, path: str, session: str) -> Mapping[str, Any]:
    """The state that a resume would change."""
    places = (path, "/api/runs", f"/api/sessions/{session}", "/api/approvals")
    return {place: client.get(place).json() for place in places}


@pytest.mark.wide
@pytest.mark.parametrize("state", ["done", "aborted"])
def test_a_run_that_has_ended_is_not_resumed(served: Served, state: str) -> None:
    skill = {"done": "word-count", "aborted": "shout-loud"}[state]
    with served.client() as client:
        path = begun(client, f"once-{state}", skill, state)
        if state == "aborted":
            assert client.delete(path).status_code == 204
        before = everything(client, path, state)
        answer = client.post(f"{path}/resume", json={})
        assert everything(client, path, state) == before and before[path]["state"] == state
    held = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json")
    assert (held["type"], held["code"]) == ("urn:navigator:problem:ended", "ended")
    assert held["detail"] == f"workflow run {path.rpartition('/')[2]!r} has ended: {state}"


@pytest.mark.wide
def test_a_run_that_another_process_follows_is_not_resumed(served: Served, person: Person) -> None:
    with served.client() as client:
        path = begun(client, "elsewhere", "shout-loud", "elsewhere")
        token = path.rpartition("/")[2]
        (lock,) = Path(person.env["XDG_STATE_HOME"]).rglob(f"workflows/{token}.lock")
        before = everything(client, path, "elsewhere")
        with file_lock(lock):
            answer = client.post(f"{path}/resume", json={})
        assert everything(client, path, "elsewhere") == before and before[path]["state"] == "waiting"
        assert (answer.status_code, answer.json()["code"]) == (409, "busy")
        assert answer.json()["detail"] == f"workflow run {token!r} is under way elsewhere"
        assert client.post(f"{path}/resume", json={}).status_code == 202
