"""`navigator mcp` and `bin/mcp_manager.py` as a person uses them: add, approve, call, import, remove."""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cli.support import SOURCE, Place, place_in
from tables import cases

MANAGER = (sys.executable, str(SOURCE / "bin" / "mcp_manager.py"))
SERVER = str(SOURCE / "tests" / "mcp_client" / "hostile_server.py")
TOKEN = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
OF_NODE = """
import { createInterface } from "node:readline";
const answers = {
  initialize: (asked) => ({ protocolVersion: asked.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "g", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "grow", description: "Grows.", inputSchema: { type: "object" } }] }),
  "tools/call": () => {
    const pages = new WebAssembly.Memory({ initial: 2 }).buffer.byteLength / 65536;
    return { content: [{ type: "text", text: `${pages} pages` }] };
  },
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method](params) }));
});
"""

pytestmark = [pytest.mark.requirement("AGT-4"), pytest.mark.ci]


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path, program=MANAGER)


@pytest.fixture
def added(here: Place) -> Place:
    here.said("add", "there", "--", sys.executable, SERVER, "good")
    return here


def own_file() -> Any:
    return json.loads((Path(os.environ["XDG_CONFIG_HOME"]) / "navigator" / "mcp.json").read_text())


def test_a_server_is_added_approved_called_and_removed(added: Place) -> None:
    assert own_file()["mcpServers"]["there"] == {"command": sys.executable, "args": [SERVER, "good"]}
    refused = added.run("call", "there", "echo", "words=hello")
    assert (refused.code, "mcp approve there" in refused.err) == (9, True)
    added.said("approve", "there")
    assert added.said("call", "there", "echo", "words=hello") == "hello\n"
    assert added.json("list")["servers"][0]["approved"] is True
    assert added.said("read", "there").splitlines()[1].split() == ["note://one", "one"]
    added.said("remove", "there")
    assert (own_file(), added.json("list")["servers"]) == ({"mcpServers": {}}, [])
    added.said("add", "there", "--", sys.executable, SERVER, "good")
    assert added.run("tools", "there").code == 9, "what was removed has to be agreed to again"


def test_an_argument_is_what_the_schema_says_it_is(here: Place) -> None:
    here.said("add", "there", "--", sys.executable, SERVER, "typed")
    words = ["many=7", "sure=yes", "list=[1, 2]", "text=7", "other=7"]
    told = json.loads(here.said("call", "there", "echo", *words, "--yes"))
    assert told == {"many": 7, "sure": True, "list": [1, 2], "text": "7", "other": "7"}
    told = json.loads(here.said("call", "there", "echo", "--args", '{"other": 7, "many": 8}', "--yes"))
    assert told == {"other": 7, "many": 8}


def test_an_error_of_a_server_is_shown_without_links_for_programmers(here: Place) -> None:
    here.said("add", "there", "--", sys.executable, SERVER, "pydantic")
    done = here.run("call", "there", "echo", "words=x", "--yes")
    assert (done.code, done.out) == (1, "1 validation error for echo\nwords\n  Field required\n")


def test_another_command_line_is_another_thing_to_agree_to(added: Place) -> None:
    added.said("approve", "there")
    added.said("add", "there", "--force", "--", sys.executable, SERVER, "good", "more")
    assert added.run("tools", "there").code == 9


def test_approval_leaves_out_suspicious_tools_until_they_are_named(here: Place) -> None:
    here.said("add", "bad", "--", sys.executable, SERVER, "injection")
    (tool,) = here.json("approve", "bad")["tools"]
    assert (tool["state"], bool(tool["why"])) == ("suspicious", True)
    assert here.run("call", "bad", "echo", "words=x", "--yes").code == 9
    here.said("approve", "bad", "echo")
    assert here.said("call", "bad", "echo", "words=x") == "x\n"


def test_all_tools_of_a_list_too_long_for_a_report_are_approved(here: Place) -> None:
    here.said("add", "My Server", "--", sys.executable, SERVER, "large_tools")
    assert len(here.json("approve", "My Server")["tools"]) == 2_001
    assert here.said("call", "My Server", "echo", "words=x") == "x\n"
    assert len(here.json("remove", "My Server")["distrusted"]) == 2_002


def test_a_tool_that_changed_is_off_until_it_is_approved_again(here: Place) -> None:
    here.said("add", "bad", "--", sys.executable, SERVER, "changed_tool")
    here.said("approve", "bad")
    assert here.said("call", "bad", "echo", "words=x") == "x\n"  # the server reports the change just before its answer
    here.said("add", "bad", "--force", "--", sys.executable, SERVER, "good")
    tools = here.json("approve", "bad", "echo")["tools"]
    assert tools[0]["state"] == "approved"
    here.said("add", "bad", "--force", "--", sys.executable, SERVER, "changed_from_the_start")
    (told,) = here.json("tools", "bad", "--yes")["tools"]
    assert (told["state"], told["why"]) == ("changed", "it has changed since it was approved")
    assert here.run("call", "bad", "echo", "words=x", "--yes").code == 9
    here.said("approve", "bad", "bad__echo")
    assert here.said("call", "bad", "echo", "words=x") == "x\n"


def test_a_server_that_node_runs_has_web_assembly(here: Place, tmp_path: Path) -> None:
    (tmp_path / "server.mjs").write_text(OF_NODE)
    here.said("add", "grower", "--", "node", str(tmp_path / "server.mjs"))
    assert here.said("call", "grower", "grow", "--yes") == "2 pages\n"


@pytest.mark.requirement("SAF-1")
def test_a_server_of_the_project_is_listed_and_asked_about_and_has_no_network(here: Place) -> None:
    servers = {"there": {"command": sys.executable, "args": [SERVER], "network": True}, "bad name!": {"command": "x"}}
    here.write({".mcp.json": json.dumps({"mcpServers": servers})})
    told = here.json("list")
    (server,) = told["servers"]
    assert (server["origin"], server["approved"], server.get("network")) == ("project", False, None)
    assert ["bad name!" in text for text in told["notes"]].count(True) == 1
    assert any("network" in text for text in told["notes"])
    assert here.run("tools", "there").code == 9
    assert here.run("remove", "there").code == 4
    here.said("remove", "there", "--project")
    assert "there" not in json.loads((here.root / ".mcp.json").read_text())["mcpServers"]


def test_a_secret_is_not_written_and_its_reference_is_filled_in(here: Place) -> None:
    refused = here.run("add", "there", "--env", f"A_TOKEN={TOKEN}", "--", sys.executable, SERVER, "environment")
    assert (refused.code, "${A_TOKEN}" in refused.err, TOKEN in refused.err) == (3, True, False)
    here.said("add", "there", "--env", "A_TOKEN=${MINE}", "--", sys.executable, SERVER, "environment")
    missing = here.run("call", "there", "echo", "words=A_TOKEN", "--yes")
    assert (missing.code, "MINE is not set" in missing.err) == (2, True)
    given = here.run("call", "there", "echo", "words=A_TOKEN", "--yes", env={"MINE": "s3same"})
    assert given.out == "s3same\n"
    held = [path for path in here.root.parent.rglob("*") if path.is_file() and b"s3same" in path.read_bytes()]
    assert held == []


def test_a_secret_that_stands_in_the_persons_own_file_all_the_same_is_not_shown(here: Place) -> None:
    """A value from a project's file is shown: no name makes its value a secret (`sandbox/test_server_questions`)."""
    env = {"A_TOKEN": "hush-hush", "LD_PRELOAD": "/x.so"}
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "navigator" / "mcp.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": {"there": {"command": sys.executable, "args": [SERVER], "env": env}}}))
    done = here.run("tools", "there")
    told = done.out + done.err + here.run("tools", "there", "--json").out + here.run("list", "--json").out
    told += Place(root=here.root).run("log", "--json").out
    assert (done.code, "hush-hush" in told, "LD_PRELOAD=/x.so" in done.err) == (9, False, True)


@pytest.fixture
def hosts(here: Place, home: Path) -> Path:
    """A home with the configurations of four hosts, and a project with one."""
    user = Path(os.environ["HOME"])
    of = {"mcpServers": {"notes": {"command": "notes", "env": {"NOTES_TOKEN": TOKEN, "PLACE": "here"}}}}
    files = {
        user / ".claude.json": json.dumps({"projects": {}, **of}),
        user / ".codex" / "config.toml": 'model = "x"\n[mcp_servers.tides]\ncommand = "tides"\nargs = ["--now"]\n',
        user / ".gemini" / "settings.json": json.dumps({"mcpServers": {"maps": {"httpUrl": "https://m.example/mcp"}}}),
        user / ".cursor" / "mcp.json": json.dumps(
            {"mcpServers": {"mail": {"url": "https://a.example/mcp", "headers": {"Authorization": f"Bearer {TOKEN}"}}}}
        ),
        here.root / ".vscode" / "mcp.json": json.dumps(
            {"servers": {"old": {"type": "sse", "url": "https://o.example"}}}
        ),
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return user


@pytest.mark.usefixtures("hosts")
def test_the_servers_of_other_hosts_are_taken_over_and_their_secrets_are_not(here: Place) -> None:
    before = here.json("import", "--dry-run")
    assert sorted(before["added"]) == ["mail", "maps", "notes", "tides"]
    assert any("SSE" in text for text in before["notes"])
    assert here.json("list")["servers"] == []
    done = here.run("import")
    assert (done.code, TOKEN in done.out + done.err) == (0, False)
    assert own_file()["mcpServers"] == {
        "notes": {"command": "notes", "env": {"NOTES_TOKEN": "${NOTES_TOKEN}", "PLACE": "here"}},
        "tides": {"command": "tides", "args": ["--now"]},
        "maps": {"type": "http", "url": "https://m.example/mcp"},
        "mail": {
            "type": "http", "url": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${MAIL_AUTHORIZATION}"},
        },
    }  # fmt: skip
    assert "already exists" in here.run("import").err


@pytest.mark.usefixtures("hosts")
def test_one_server_of_one_host_is_taken_over(here: Place) -> None:
    assert list(here.json("import", "codex")["added"]) == ["tides"]
    assert list(here.json("import", "--server", "maps")["added"]) == ["maps"]


def test_other_entries_in_mcp_json_and_a_broken_file_are_left_unchanged(here: Place) -> None:
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "navigator" / "mcp.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('{"$schema": "x", "mcpServers": {"other": {"command": "o", "mine": [1]}}}')
    here.said("add", "time")
    assert own_file()["$schema"] == "x"
    assert own_file()["mcpServers"]["other"] == {"command": "o", "mine": [1]}
    file.write_text("{ broken")
    assert here.run("add", "fetch").code == 6
    assert file.read_text() == "{ broken"


@pytest.mark.parametrize(
    ("words", "server"),
    [
        (["time"], {"command": "uvx", "args": ["mcp-server-time"], "network": True}),
        (["g", "--preset", "git", "/r"], {"command": "uvx", "args": ["mcp-server-git", "--repository", "/r"], "network": True}),
        (["deepwiki"], {"type": "http", "url": "https://mcp.deepwiki.com/mcp"}),
        (["time", "--", "mine"], {"command": "mine"}),
        (["x", "--network", "--env", "A=b", "--", "p"], {"command": "p", "env": {"A": "b"}, "network": True}),
    ],
)  # fmt: skip
def test_presets_and_commands(here: Place, words: list[str], server: dict[str, Any]) -> None:
    here.said("add", *words)
    assert own_file()["mcpServers"] == {words[0]: server}


@pytest.fixture
def asking(here: Place) -> Place:
    here.said("add", "there", "--", sys.executable, SERVER, "asks")
    here.said("approve", "there")
    return Place(root=here.root)


def said(place: Place, text: str) -> Any:
    return place.json("ask", "--session", "talk", text)["report"]


@pytest.mark.requirement("RTE-29", "RTE-30")
@pytest.mark.parametrize(
    ("second", "told"),
    [
        ("7, yes", [{"name": "Ann Lee"}, {"age": 7, "sure": True}]),
        ("sure=no age=7", [{"name": "Ann Lee"}, {"age": 7, "sure": False}]),
        ('{"age": 7, "sure": true}', [{"name": "Ann Lee"}, {"age": 7, "sure": True}]),
    ],
)
def test_questions_of_a_server_are_asked_and_answered_in_the_conversation(
    asking: Place, second: str, told: list[dict[str, Any]]
) -> None:
    first = said(asking, "mcp call there echo words=tea")
    assert (first["state"], first["data"]["required"], "Question 1 about tea" in first["summary"]) == (
        "pending", ["name"], True,
    )  # fmt: skip
    then = said(asking, "Ann Lee")
    assert (then["state"], then["data"]["required"], "Question 2" in then["summary"]) == (
        "pending",
        ["age", "sure"],
        True,
    )
    last = said(asking, second)
    assert (last["state"], json.loads(last["raw"])) == ("success", told)


@pytest.mark.requirement("RTE-29")
def test_a_no_to_a_servers_question_reaches_it_as_decline_and_ends_the_questions(asking: Place) -> None:
    said(asking, "mcp call there echo words=tea")
    last = said(asking, "no")
    assert (last["state"], json.loads(last["raw"])) == ("success", ["decline"])


def test_outside_of_a_conversation_the_question_is_the_answer(asking: Place) -> None:
    done = asking.run("mcp", "call", "there", "echo", "words=tea")
    assert (done.code, "Question 1 about tea" in done.err, "name" in done.err) == (9, True, True)


@pytest.mark.requirement("SEN-5")
def test_a_resource_is_named_with_its_server_in_a_message(asking: Place) -> None:
    report = said(asking, "summarise @there:note://two, please")
    assert (report["data"]["type"], report["data"]["available"]) == ("ResourceNotFound", ["note://one"])
    report = said(asking, "@elsewhere:note://two")
    assert (report["data"]["exit_code"], report["data"]["available"]) == (4, ["there"])


def test_the_kernel_registered_with_a_host_is_not_listed_as_a_server(here: Place) -> None:
    Place(root=here.root).said("host", "install", "generic")
    assert (here.root / ".mcp.json").exists()
    assert here.json("list")["servers"] == []


class Refusing(BaseHTTPRequestHandler):
    """Answers every request with one status."""

    status = 401

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.mark.requirement("AGT-9")
@cases("status, kind, code")
def test_an_http_error_of_a_server_is_reported_by_type_and_status(
    here: Place, status: int, kind: str, code: int
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Refusing,), {"status": status})) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here.said("add", "there", "--url", f"http://127.0.0.1:{server.server_port}/mcp")
        error = here.json("test", "there", "--yes")["error"]
        server.shutdown()
    assert (error["type"], error["exit_code"], str(status) in error["msg"]) == (kind, code, True)


@pytest.mark.requirement("AGT-9")
def test_an_address_where_nobody_is_is_a_failed_connection(here: Place) -> None:
    here.said("add", "there", "--url", "http://127.0.0.1:9/mcp")
    assert here.json("test", "there", "--yes")["error"]["type"] == "ConnectionFailed"
