"""No stream and no answer of the server shows a secret that a message or a model contains (SAF-8)."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from gateway.ag_ui import asked
from gateway.openai_clients import until
from gateway.served import Person, Served
from models.wire_server import Said, WireServer
from specialist.turns import of_phase_two, says

PASSWORD = "Tr0ub4dor&3" + "zz"
LINE = "Ab1x" * 16
SECRETS = (PASSWORD, "AKIA" + "A1B2" * 4, "sk-ant-api03-" + "aB3" * 31, "npm_" + "aB3x" * 9, LINE, "swordfish9")
KEY = f"-----BEGIN PRIVATE KEY-----\n{LINE}\n-----END PRIVATE KEY-----"
TEXT = f"password: {PASSWORD}\n{SECRETS[1]}\n{SECRETS[2]}\n{SECRETS[3]}\n{KEY}\nlast"
ENCODED = f"{quote(PASSWORD)} {base64.b64encode(PASSWORD.encode()).decode()} {json.dumps(json.dumps(TEXT))}"
ARGUMENTS = {"file_path": "missing.txt", "note": json.dumps({"inner": TEXT}), "password": "swordfish9"}
STREAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "page": ("/api/chat/s1?events=page", {"message": f"/song-writer {TEXT}"}),
    "events": ("/api/chat/s2", {"message": f"/song-writer {TEXT}"}),
    "AG-UI": ("/ag-ui", asked(f"/song-writer {TEXT}")),
    "chat": (
        "/v1/chat/completions",
        {"model": "navigator", "stream": True, "messages": [{"role": "user", "content": f"/song-writer {TEXT}"}]},
    ),
    "responses": ("/v1/responses", {"model": "navigator", "stream": True, "input": f"/song-writer {TEXT}"}),
}


def shown_in(text: str | bytes) -> list[str]:
    data = text if isinstance(text, bytes) else text.encode()
    forms = (*SECRETS, quote(PASSWORD), base64.b64encode(PASSWORD.encode()).decode())
    return [form for form in forms if form.encode() in data]


def shown_by_files(person: Person) -> list[tuple[str, list[str]]]:
    """The files of the project and of the person that hold a secret."""
    home = Path(person.env["HOME"])
    files = [path for place in (person.here.root, home) for path in place.rglob("*") if path.is_file()]
    return [(str(path), held) for path in files if (held := shown_in(path.read_bytes()))]


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_and_all_that_is_kept_of_its_turn_show_no_secret_and_the_model_gets_it(
    served: Served, person: Person, model: WireServer, stream: str
) -> None:
    path, body = STREAMS[stream]
    says(model, Said(text=f"I see. {TEXT}", calls=[("read", json.dumps(ARGUMENTS))]), Said(text=f"{ENCODED} {TEXT} ok"))
    with served.client("admin") as client:
        with client.stream("POST", path, json=body) as answer:
            data = answer.read()
            assert answer.status_code == 200, data
        assert b"[redacted]" in data and b"ok" in data and shown_in(data) == []
        runs = client.get("/api/runs").json()["runs"]
        run = runs[0]["run"] if "run" in runs[0] else runs[0]["id"]
        for what in ("", "/log", "/steps", "/why", "/events"):
            kept = client.get(f"/api/runs/{run}{what}")
            assert (kept.status_code, shown_in(kept.content)) == (200, []), what
        for what in ("/api/sessions", "/api/sessions/s1", "/api/approvals"):
            assert shown_in(client.get(what).content) == []
    assert shown_by_files(person) == []
    given = json.dumps(of_phase_two(model))
    assert PASSWORD in given and LINE in given


@pytest.mark.requirement("SAF-8")
def test_an_approval_is_shown_without_the_secrets_of_its_arguments_and_keeps_none_after_the_answer(
    served: Served, person: Person, model: WireServer
) -> None:
    says(
        model,
        Said(calls=[("run", json.dumps({"command": f"echo --password {PASSWORD} {SECRETS[1]}"}))]),
        Said(text="ok"),
    )
    with served.client("admin") as client:
        client.post("/api/chat/asks", params={"events": "page"}, json={"message": "/song-writer go"}).read()
        answer = client.get("/api/approvals")
        (waiting,) = [one for one in answer.json()["approvals"] if one["session"] == "asks"]
        assert "echo" in waiting["question"] and shown_in(answer.content) == []
        assert client.post(f"/api/approvals/{waiting['id']}", json={"answer": "cancel"}).status_code == 202
    served.chat("/song-writer thanks", session="asks")
    until(lambda: shown_by_files(person) == [])  # while another connection is open, SQLite keeps its write-ahead log
