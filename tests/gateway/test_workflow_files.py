"""Stored workflows are read, checked, written and removed over HTTP, which approves nothing."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import pytest

from gateway.served import Person, Served
from workflows.project import SKILLS, put_skill

pytestmark = pytest.mark.wide  # documents and their edits are tested without a server

PLACE = "/api/workflows/greet"
STEP = '## Step {at}: shout\n\n- skill: shout-loud\n- input: "/shout-loud text=\\"$ARGUMENTS\\""\n'


def text(name: str = "greet", steps: int = 1, more: str = "") -> str:
    head = f"---\nname: {name}\nversion: 1.0.0\ndescription: greets\ndepends_on: [shout-loud]\n---\n{more}\n"
    return head + "\n".join(STEP.format(at=at) for at in range(1, steps + 1))


@pytest.fixture(autouse=True)
def skill(person: Person) -> None:
    put_skill(person.here.root, "shout-loud", SKILLS["shout-loud"])


def file_of(person: Person, name: str = "greet") -> Path:
    return person.here.root / "mybox" / "workflows" / f"{name}.md"


def written(client: httpx2.Client, body: str = "", **headers: str) -> httpx2.Response:
    return client.put(PLACE, json={"text": body or text()}, headers=headers)


def test_a_workflow_is_written_read_changed_and_removed(person: Person, served: Served) -> None:
    with served.client() as client:
        made = written(client, **{"If-None-Match": "*"})
        assert made.status_code == 200 and file_of(person).read_text() == text()
        read = client.get(PLACE)
        assert (read.json(), read.headers["etag"]) == (made.json(), made.headers["etag"])
        assert read.json() == {"name": "greet", "text": text(), "redacted": False}
        assert client.get(PLACE, headers={"If-None-Match": read.headers["etag"]}).status_code == 304
        changed = written(client, text(steps=2), **{"If-Match": read.headers["etag"]})
        assert changed.status_code == 200 and changed.headers["etag"] != read.headers["etag"]
        assert (
            next(one for one in client.get("/api/workflows").json()["workflows"] if one["name"] == "greet")["steps"]
            == 2
        )
        assert client.delete(PLACE, headers={"If-Match": changed.headers["etag"]}).status_code == 204
        assert not file_of(person).exists()
        assert client.get(PLACE).status_code == client.delete(PLACE).status_code == 404


@pytest.mark.requirement("WFL-3")
def test_a_plan_of_four_steps_is_refused_with_the_kernels_message_and_nothing_is_written(
    person: Person, served: Served
) -> None:
    with served.client() as client:
        written(client)
        answer = written(client, text(steps=4))
        checked = client.post("/api/workflows/check", json={"text": text(steps=4)}).json()
        assert file_of(person).read_text() == text()
    assert answer.status_code == 409 and "4 steps; a workflow has 1 to 3" in answer.json()["detail"]
    assert [one["message"] for one in checked["problems"]] == ["4 steps; a workflow has 1 to 3"]
    assert checked["problems"] == answer.json()["data"]["problems"] and checked["steps"] == []


def test_a_check_names_every_problem_with_its_line_and_writes_nothing(person: Person, served: Served) -> None:
    before = sorted(file_of(person).parent.glob("*"))
    with served.client("chat") as client:
        good = client.post("/api/workflows/check", json={"text": text("other")}).json()
        wrong = client.post(
            "/api/workflows/check", json={"text": text("other", more="## No step"), "name": "else"}
        ).json()
        bad_name = client.post("/api/workflows/check", json={"text": text("../x")}).json()
        long = client.post("/api/workflows/check", json={"text": text() + "x" * 70_000}).json()
    assert (good["name"], good["problems"], [one["skill"] for one in good["steps"]]) == ("other", [], ["shout-loud"])
    assert {one["line"] for one in wrong["problems"]} >= {2, 7} and len(wrong["problems"]) > 2
    assert "is not a workflow name" in bad_name["problems"][0]["message"]
    assert "64 KiB" in long["problems"][0]["message"]
    assert sorted(file_of(person).parent.glob("*")) == before


def test_a_write_over_a_state_that_was_not_seen_is_refused(person: Person, served: Served) -> None:
    with served.client() as client:
        tag = written(client).headers["etag"]
        file_of(person).write_text(text(steps=3))
        for method, headers in (
            ("PUT", {"If-Match": tag}),
            ("PUT", {"If-None-Match": "*"}),
            ("DELETE", {"If-Match": tag}),
        ):
            body = {"text": text(steps=2)} if method == "PUT" else None
            answer = client.request(method, PLACE, headers=headers, json=body)
            assert (answer.status_code, answer.json()["code"]) == (412, "precondition")
        assert file_of(person).read_text() == text(steps=3)
        client.delete(PLACE)
        assert written(client, **{"If-Match": tag}).status_code == 412


@pytest.mark.parametrize("name", ["README", "-x", ".hidden", "a%00b", "a" * 81, "a.b"])
def test_an_invalid_workflow_name_is_refused_and_writes_no_file(person: Person, served: Served, name: str) -> None:
    before = sorted(person.here.root.rglob("*.md"))
    with served.client() as client:
        answer = client.put(f"/api/workflows/{name}", json={"text": text(name)})
    assert answer.status_code == 400 and sorted(person.here.root.rglob("*.md")) == before


@pytest.mark.parametrize("path", ["..%2fx", "..%2f..%2f.claude%2fskills%2fsong-writer%2fSKILL", "%2fetc%2fpasswd"])
def test_a_path_in_place_of_a_workflow_name_is_not_found(served: Served, path: str) -> None:
    with served.client() as client:
        for method in ("GET", "PUT", "DELETE"):
            body = {"text": text()} if method == "PUT" else None
            assert client.request(method, f"/api/workflows/{path}", json=body).status_code == 404


def test_a_link_is_not_followed(person: Person, served: Served, tmp_path: Path) -> None:
    target = tmp_path / "secret.md"
    target.write_text("hidden")
    file_of(person).parent.mkdir(exist_ok=True)
    file_of(person, "linked").symlink_to(target)
    with served.client() as client:
        answer = client.get("/api/workflows/linked")
        assert answer.status_code >= 400 and "hidden" not in answer.text
        client.delete("/api/workflows/linked")
    file_of(person, "linked").unlink(missing_ok=True)
    assert target.read_text() == "hidden"


@pytest.mark.parametrize("role", ["read", "chat", "approve"])
def test_only_an_administrator_writes(served: Served, role: str) -> None:
    with served.client(role) as client:
        for answer in (written(client), client.delete(PLACE)):
            assert (answer.status_code, answer.json()["code"]) == (403, "role")


@pytest.mark.requirement("SAF-8")
def test_a_secret_in_a_file_is_not_shown(person: Person, served: Served) -> None:
    secret = "AKIA" + "ABCDEFGHIJKLMNOP"
    file_of(person, "keyed").parent.mkdir(exist_ok=True)
    file_of(person, "keyed").write_text(text("keyed").replace("greets", f"greets {secret}"))
    with served.client() as client:
        held = client.get("/api/workflows/keyed")
    assert secret not in held.text and held.json()["redacted"]


# A stored workflow is data: writing one must allow nothing
@pytest.mark.requirement("SAF-1")
def test_a_workflow_that_was_written_is_still_asked_for(served: Served) -> None:
    with served.client() as client:
        written(client)
        begun = client.post(f"{PLACE}/runs", json={"session": "asked", "arguments": "hello"}).json()
        with client.stream("GET", f"/api/runs/{begun['run']}/events", params={"events": "all"}) as stream:
            kinds = [json.loads(line[6:])["type"] for line in stream.iter_lines() if line.startswith("data: {")]
        waiting = [one for one in client.get("/api/approvals").json()["approvals"] if one["session"] == "asked"]
        run = client.get(f"/api/workflow-runs/{begun['run']}").json()
    assert "ApprovalRequested" in kinds and len(waiting) == 1
    assert "shout-loud" in waiting[0]["question"] and "hello" in waiting[0]["question"]
    assert run["state"] == "waiting"
