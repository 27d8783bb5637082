"""Helpers for tests of the page: a turn, a pending approval, and logs of runs that never took place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.served import Person, Served, sent
from models.wire_server import HELLO, Said, WireServer
from specialist.turns import says

NOTES = "one\ntwo\nthree\n"


def run_of(served: Served, message: str, session: str, role: str = "admin") -> str:
    """Runs a turn; returns the id of its run."""
    return str(served.chat(message, session, role, events="all")[0].data["run"])


def ask_to_edit(served: Served, person: Person, model: WireServer, session: str, new: str = "2", **more: str) -> str:
    """The id of the pending approval for a change of `notes.txt`."""
    (person.here.root / "notes.txt").write_text(NOTES)
    change = {"file_path": "notes.txt", "old_string": "two", "new_string": new}
    model.requests.clear()
    says(model, Said(calls=[("edit", json.dumps(change))]), HELLO)
    events = served.chat("/song-writer change notes.txt", session, events="all", **more)
    return next(str(one.data["payload"]["id"]) for one in events if one.event == "ApprovalRequested")


def accept_over_http(served: Served, approval: str) -> str:
    """Approves over HTTP; returns the run that continued, once it has ended."""
    with served.client() as client:
        run = str(client.post(f"/api/approvals/{approval}", json={"answer": "yes"}).json()["run"])
        with client.stream("GET", f"/api/runs/{run}/events") as stream:
            assert [one.event for one in sent(stream)][-1] == "RunCompleted"
    return run


def logs_of(person: Person) -> Path:
    return person.here.root / "mybox" / "logs" / "runs"


def write_log(person: Person, run: str, bodies: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Writes the log of an old run, one second per event; adds the first event and the last."""
    every = [
        ("RunStarted", {"session": "old", "message": f"message of {run}", "language": "en"}),
        *bodies,
        ("RunCompleted", {"state": "success", "summary": "done", "sections": {}}),
    ]
    head = {"v": 1, "run": run, "turn": 0, "step": None, "parent": None}
    lines = [
        json.dumps({**head, "seq": seq, "ts": f"2020-01-01T00:00:{seq:02d}.000Z", "type": kind, "data": data})
        for seq, (kind, data) in enumerate(every)
    ]
    logs_of(person).mkdir(parents=True, exist_ok=True)
    (logs_of(person) / f"{run}.jsonl").write_text("\n".join(lines) + "\n")
