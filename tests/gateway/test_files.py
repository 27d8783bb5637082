"""Files of runs, files of the project for completion, and files attached to messages."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from gateway.served import Person, Served
from models.wire_server import HELLO, Said, WireServer
from person_state import accept
from specialist.turns import says, song

WRITE = Said(calls=[("write", json.dumps({"file_path": "a song.md", "content": "# La\n"}))])
CHANGE = Said(calls=[("edit", json.dumps({"file_path": "notes.txt", "old_string": "two", "new_string": "2"}))])


@pytest.fixture(scope="module", autouse=True)
def writer(person: Person) -> Person:
    """The person, whose skill may change files."""
    text = song("allowed-tools: read, write, edit\n")
    person.here.write({".claude/skills/song-writer/SKILL.md": text, "notes.txt": "one\ntwo\n"})
    with pytest.MonkeyPatch.context() as patch:
        for name, value in person.env.items():
            patch.setenv(name, value)
        accept(person.here.root, "song-writer")
    return person


@pytest.fixture
def run(served: Served, model: WireServer) -> str:
    """A run that wrote one file."""
    says(model, WRITE, Said(text="Done."))
    return str(served.chat("/song-writer a song", "files")[0].data["run"])


@pytest.mark.wide
def test_the_files_that_a_run_wrote_are_listed_and_sent_as_downloads(served: Served, run: str) -> None:
    with served.client() as client:
        files = client.get(f"/api/runs/{run}/files").json()["files"]
        assert files == [{"path": "a song.md", "origin": "workspace", "size": 5, "is_new": True, "is_closed": False}]
        sent = client.get(f"/api/runs/{run}/files/a%20song.md")
    assert (sent.status_code, sent.content) == (200, b"# La\n")
    assert sent.headers["content-type"] == "application/octet-stream"
    assert sent.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20song.md"
    assert sent.headers["x-content-type-options"] == "nosniff"


@pytest.mark.wide
def test_a_changed_file_of_the_project_is_sent_as_the_run_left_it(
    served: Served, writer: Person, model: WireServer
) -> None:
    says(model, CHANGE, Said(text="Done."))
    events = served.chat("/song-writer change @notes.txt", "change", events="all")
    asked = next(one for one in events if one.event == "ApprovalRequested").data["payload"]["id"]
    with served.client() as client:
        run = client.post(f"/api/approvals/{asked}", json={"answer": "yes"}).json()["run"]
        with client.stream("GET", f"/api/runs/{run}/events") as stream:
            stream.read()
        (file,) = client.get(f"/api/runs/{run}/files").json()["files"]
        assert file == {"path": "notes.txt", "origin": "project", "size": 6, "is_new": False, "is_closed": False}
        (writer.here.root / "notes.txt").write_text("later\n")
        sent = client.get(f"/api/runs/{run}/files/notes.txt", params={"origin": "project"})
        other = client.get(f"/api/runs/{run}/files/navigator.toml", params={"origin": "project"})
    assert (sent.content, other.status_code) == (b"one\n2\n", 404)


@pytest.mark.parametrize(
    "path",
    ["../../../navigator.toml", "%2e%2e/x", "a/../../x", "%2Fetc/passwd", "a%00b", "a%20song.md/", "link", "inner", ""],
)
def test_no_path_leads_out_of_a_runs_workspace(served: Served, writer: Person, run: str, path: str) -> None:
    workspace = writer.here.root / "mybox" / "workspace" / run
    (workspace / "inner").mkdir()
    (workspace / "link").symlink_to(writer.here.root / "notes.txt")
    with served.client() as client:
        sent = client.get(f"/api/runs/{run}/files/{path}")
        listed = client.get(f"/api/runs/{run}/files").json()
    assert sent.status_code in {403, 404} or "files" in sent.json()
    assert b"one\n" not in sent.content
    assert [one["path"] for one in listed["files"]] == ["a song.md"]


def test_a_file_of_secrets_is_listed_and_not_sent(served: Served, writer: Person, run: str) -> None:
    (writer.here.root / "mybox" / "workspace" / run / ".env").write_text("KEY=1\n")
    with served.client() as client:
        assert client.get(f"/api/runs/{run}/files/.env").status_code == 403
        files = client.get(f"/api/runs/{run}/files").json()["files"]
        assert [(one["path"], one["is_closed"]) for one in files] == [(".env", True), ("a song.md", False)]


def test_what_was_disarmed_is_listed_after_the_results(served: Served, writer: Person, run: str) -> None:
    folder = writer.here.root / "mybox" / "workspace" / run / ".git.disarmed"
    folder.mkdir()
    (folder / "HEAD.disarmed").write_text("x")
    with served.client() as client:
        files = client.get(f"/api/runs/{run}/files").json()["files"]
    assert [one["path"] for one in files] == ["a song.md", ".git.disarmed/HEAD.disarmed"]


def test_an_attachment_that_programs_obey_unasked_is_refused(served: Served) -> None:
    with served.client() as client:
        session = "attached"
        for name, code in {"CLAUDE.md": 403, "paths.pth": 403, "notes.md": 201}.items():
            sent = client.post(f"/api/sessions/{session}/files", json={"name": name, "data": "eA=="})
            assert (name, sent.status_code) == (name, code)


def test_the_files_of_another_tokens_run_are_not_there(served: Served, run: str) -> None:
    with served.client("chat") as client:
        assert client.get(f"/api/runs/{run}/files").status_code == 404
        assert client.get(f"/api/runs/{run}/files/a%20song.md").status_code == 404
    with served.client("read") as client:
        assert client.get(f"/api/runs/{run}/files").status_code == 403


def test_files_of_the_project_are_completed_a_folder_at_a_time(served: Served, writer: Person) -> None:
    writer.here.write({"docs/one.md": "", "docs/two.md": "", ".hidden/x": "", ".env": "", "node_modules/m/i.js": ""})
    (writer.here.root / "away").symlink_to("/etc")
    with served.client("read") as client:

        def paths(prefix: str) -> list[str]:
            return list(client.get("/api/files", params={"prefix": prefix}).json()["paths"])

        assert {"docs/", "notes.txt"} <= set(paths(""))
        assert not {".hidden/", ".env", "node_modules/", "mybox/", ".claude/", "away/", "away"} & set(paths(""))
        assert paths("docs/") == ["docs/one.md", "docs/two.md"]
        assert paths("DO") == ["docs/"]
        for prefix in ("away/", ".claude/", "mybox/", ".git/", "docs/one.md/", "no/"):
            assert paths(prefix) == [], prefix
        assert client.get("/api/files", params={"prefix": "../"}).status_code == 404


def test_an_attached_file_is_read_where_a_message_names_it(served: Served, writer: Person, model: WireServer) -> None:
    body = {"name": "../my song.txt", "data": base64.b64encode(b"row row row").decode()}
    with served.client("chat") as client:
        held = client.post("/api/sessions/attach/files", json=body)
        assert held.status_code == 201, held.text
        mention = held.json()["mention"]
        assert mention.startswith("@mybox/workspace/attached-") and mention.endswith("/my-song.txt")
        says(model, HELLO)
        served.chat(f"/song-writer {mention}", "attach", "chat")
        assert "row row row" in str(model.requests[-1].body)
        for name, status in ((".env", 403), ("id_rsa", 403), ("…", 201), ("a" * 201, 422)):
            body = {"name": name, "data": ""}
            assert client.post("/api/sessions/attach/files", json=body).status_code == status, name
        large = {"name": "x", "data": base64.b64encode(b"x" * 2_200_000).decode()}
        assert client.post("/api/sessions/attach/files", json=large).status_code == 422
    assert (writer.here.root / mention[1:]).read_bytes() == b"row row row"


def test_a_binary_file_is_named_without_the_mark_that_reads_it(served: Served) -> None:
    body = {"name": "a.png", "data": base64.b64encode(b"\x89PNG\x00").decode()}
    with served.client() as client:
        held = client.post("/api/sessions/attach/files", json=body).json()
    assert held["mention"] == held["path"] and quote(held["path"]) == held["path"]


def test_a_session_is_listed_with_the_beginning_of_its_first_message(served: Served, model: WireServer) -> None:
    says(model, HELLO)
    served.chat("/song-writer the moon", "titled")
    served.chat("/word-count", "asking")
    with served.client() as client:
        titles = {one["id"]: one["title"] for one in client.get("/api/sessions").json()["sessions"]}
    assert (titles["titled"], titles["asking"]) == ("/song-writer the moon", "/word-count")


def test_the_data_of_a_reply_that_no_step_made_is_in_its_last_event(served: Served) -> None:
    asked = served.chat("/word-count", "data")[-1].data["payload"]
    assert asked["data"] == {
        "required": ["text"],
        "optional": ["file", "folder", "endings", "top", "by", "order", "without", "word", "about"],
        "reason": "clarify",
    }
    able = served.chat("what can you do?", "able")[-1].data["payload"]
    assert len(able["data"]["capabilities"]) == 3
