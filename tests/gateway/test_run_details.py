"""What a page shows of a run: why, why not, steps as YAML, changed files; and a list of runs with filters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.served import Person, Served, sent
from models.wire_server import HELLO, Said, WireServer
from navigator_kernel.values.packet import packet_from
from specialist.turns import says

pytestmark = pytest.mark.wide  # other tests check `why` and the run log without a server

NOTES = "one\ntwo\nthree\n"
EDIT = '{"file_path": "notes.txt", "old_string": "two", "new_string": "2"}'
SONG = "please write me a cheerful song about boats"


def run_of(served: Served, message: str, session: str, role: str = "admin") -> str:
    return str(served.chat(message, session, role, events="all")[0].data["run"])


def get(served: Served, path: str, role: str = "admin", **query: Any) -> Any:
    with served.client(role) as client:
        answer = client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()


def reasons_of(person: Person, run: str) -> list[str]:
    """The sentences of `navigator why`."""
    lines = person.here.run("why", run, env=person.env).out.splitlines()
    return [line.removeprefix("  why").strip() for line in lines if line.startswith("  why")]


def test_the_reasons_come_in_the_language_that_is_asked_for(person: Person, served: Served, model: WireServer) -> None:
    run = run_of(served, SONG, "why")
    english = get(served, f"/api/runs/{run}/why")
    chinese = get(served, f"/api/runs/{run}/why", language="zh")
    assert english["decided"].startswith("a clear leader: song-writer") and english["missed"] is None
    assert chinese["decided"].startswith("明显领先：song-writer") and chinese["shortlisted"] == chinese["decided"]
    assert [*english["why"], "因为" in chinese["why"][0]] == [*reasons_of(person, run), True]


def test_why_not_another_skill_is_what_navigator_why_not_says(
    person: Person, served: Served, model: WireServer
) -> None:
    run = run_of(served, SONG, "whynot")
    for skill in ("rust-dev", "no-such-skill", "song-writer"):
        held = get(served, f"/api/runs/{run}/why", **{"not": skill})["missed"]
        told = person.json("why", run, "--not", skill)
        assert {"run": run, **held} == {name: told[name] for name in ("run", *held)}
    assert "没有" in get(served, f"/api/runs/{run}/why", **{"not": "x", "language": "zh"})["missed"]["why"]
    with served.client() as client:
        assert client.get(f"/api/runs/{run}/why", params={"skill": "x"}).status_code == 400


def test_a_skill_is_learned_for_the_message_of_a_run(person: Person, served: Served, model: WireServer) -> None:
    run = run_of(served, "hum something for the harbour", "learn")
    with served.client("chat") as client:
        assert client.post(f"/api/runs/{run}/learn", json={"skill": "song-writer"}).status_code == 403
    with served.client() as client:
        assert client.post(f"/api/runs/{run}/learn", json={"skill": "song-writr"}).json()["code"] == "skill_not_found"
        said = [client.post(f"/api/runs/{run}/learn", json={"skill": "song-writer"}).json() for _ in range(2)]
        named = run_of(served, "/song-writer the moon", "learn")
        refused = client.post(f"/api/runs/{named}/learn", json={"skill": "song-writer"})
        assert refused.status_code == 400 and "names its skill" in refused.json()["detail"]
    assert [one["learned"] for one in said] == [True, False]
    assert person.json("route", "song-writer", "--lessons")["lessons"]["song-writer"] == [
        "hum something for the harbour"
    ]
    assert person.json("route", "hum something for the harbour")["entity"] == "song-writer"


def test_the_steps_of_a_run_are_its_packets_and_reports_as_yaml(served: Served, model: WireServer) -> None:
    run = run_of(served, "/song-writer 月亮", "steps")
    (step,) = get(served, f"/api/runs/{run}/steps")["steps"]
    packet, report = yaml.safe_load(step["packet"]), yaml.safe_load(step["report"])
    assert packet_from(packet).to_yaml() == step["packet"]
    assert (step["target"], step["state"]) == ("skill:song-writer", "success") and step["ended"] >= step["started"]
    assert report["state"] == "success" and report["raw"] == HELLO.text


def test_an_approval_has_the_change_as_a_diff_and_the_run_that_made_it_can_be_undone(
    person: Person, served: Served, model: WireServer
) -> None:
    notes = person.here.root / "notes.txt"
    notes.write_text(NOTES)
    says(model, Said(calls=[("edit", EDIT)]), HELLO)
    run_of(served, "/song-writer change notes.txt", "undo")
    with served.client() as client:
        waits = next(one for one in client.get("/api/approvals").json()["approvals"] if one["session"] == "undo")
        assert (waits["facts"]["tool"], waits["facts"]["skill"]) == ("edit", "song-writer")
        assert yaml.safe_load(waits["orders"][0]) == waits["packets"][0]
        assert waits["facts"]["diff"].endswith("-two\n+2\n three\n")
        run = client.post(f"/api/approvals/{waits['id']}", json={"answer": "yes"}).json()["run"]
        with client.stream("GET", f"/api/runs/{run}/events") as stream:
            assert [one.event for one in sent(stream)][-1] == "RunCompleted"
        (made,) = client.get(f"/api/runs/{run}/changes").json()["changes"]
        assert (made["path"], made["new"], made["diff"]) == ("notes.txt", False, waits["facts"]["diff"])
        assert notes.read_text() == NOTES.replace("two", "2")
        notes.write_text("mine\n")
        undo = f"/api/runs/{run}/undo"
        assert client.post(undo, json={}).json()["files"] == [{"path": "notes.txt", "state": "changed since"}]
        assert notes.read_text() == "mine\n"
        assert client.post(undo, json={"force": True}).json()["files"] == [{"path": "notes.txt", "state": "undone"}]
        assert notes.read_text() == NOTES
    with served.client("approve") as client:
        assert client.post(undo, json={}).status_code == 403
    other = run_of(served, "/song-writer the moon", "undo")
    assert get(served, f"/api/runs/{other}/changes")["changes"] == []


def test_the_details_of_a_run_of_another_token_are_not_found(served: Served, model: WireServer) -> None:
    run = run_of(served, "/song-writer the moon", "own", "approve")
    with served.client("chat") as client:
        for path in ("steps", "changes", "why"):
            assert client.get(f"/api/runs/{run}/{path}").status_code == 404, path
            assert client.get(f"/api/runs/..%2F{run}/{path}").status_code == 404, path


@pytest.fixture
def many(person: Person) -> Path:
    """The folder of logs, with 2,500 old runs, one of which asks for a whale."""
    folder = person.here.root / "mybox" / "logs" / "runs"
    for number in range(2_500):
        write_log(folder, f"20200101-{number:09d}-aaaaaa", "a whale" if number == 3 else f"message {number}")
    return folder


def write_log(folder: Path, run: str, message: str) -> None:
    bodies = [
        ("RunStarted", {"session": "old", "message": message, "language": "en"}),
        ("RunCompleted", {"state": "success", "summary": "done", "sections": {}}),
    ]
    head = {"v": 1, "run": run, "turn": 0, "step": None, "parent": None}
    times = ("2020-01-01T00:00:00.000Z", "2020-01-01T00:00:01.500Z")
    lines = [
        json.dumps({**head, "seq": seq, "ts": times[seq], "type": kind, "data": data})
        for seq, (kind, data) in enumerate(bodies)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{run}.jsonl").write_text("\n".join(lines) + "\n")


def test_runs_are_found_by_words_skill_and_state_however_many_there_are(
    served: Served, model: WireServer, many: Path
) -> None:
    run = run_of(served, "/song-writer the moon", "find")
    found: list[dict[str, Any]] = []
    cursor, pages = "", 0
    while not pages or cursor:
        held = get(served, "/api/runs", q="WHALE", cursor=cursor, limit=10)
        found, cursor, pages = [*found, *held["runs"]], held["next"], pages + 1
    assert [(one["message"], one["elapsed"]) for one in found] == [("a whale", 1.5)] and pages == 2
    assert run in [one["run"] for one in get(served, "/api/runs", skill="song-writer", state="success")["runs"]]
    assert get(served, "/api/runs", session="find", state="failed")["runs"] == []
    seen: list[str] = []
    while len(seen) < 2_500 or cursor:
        held = get(served, "/api/runs", session="old", cursor=cursor, limit=500)
        seen, cursor = [*seen, *(one["run"] for one in held["runs"])], held["next"]
    assert len(set(seen)) == len(seen) == 2_500 and seen == sorted(seen, reverse=True)
