"""The real client `acpx` from npm: plan, tool call, permission, text, cancel, a loaded session, a failing model."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.support import MODULE, Place, environment
from editors.test_turns import STEPS, WRITE
from models.wire_server import Said, WireServer
from navigator_kernel import Kernel
from processes import working_in
from specialist.turns import says, settings

pytestmark = [pytest.mark.ci, pytest.mark.timeout(300)]
PACKAGE = "acpx@0.19.1"
AGENT = shlex.join([*MODULE, "acp"])
OWNER = "2"  # seconds that acpx keeps the agent of a session after a prompt


class Done(NamedTuple):
    code: int
    out: str

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages that went over the wire, from the output of `--format json`."""
        return [json.loads(line) for line in self.out.splitlines()]

    def updates(self, kind: str) -> list[dict[str, Any]]:
        told = [one["params"]["update"] for one in self.messages if one.get("method") == "session/update"]
        return [one for one in told if one["sessionUpdate"] == kind]


Acpx = Callable[..., Done]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`acpx`, installed once from the registry that npm is set to; its scripts are not run."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("acpx")
    argv = [npm, "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", "--silent", PACKAGE]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return folder / "node_modules" / ".bin" / "acpx"


@pytest.fixture
def acpx(program: Path, place: Place) -> Acpx:
    def run(*words: str) -> Done:
        argv = [str(program), "--agent", AGENT, "--ttl", OWNER, "--timeout", "60", *words]
        done = subprocess.run(argv, cwd=place.root, env=environment(), capture_output=True, text=True, timeout=120)
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout)

    return run


def test_a_skill_that_runs_is_named_and_its_result_is_text(acpx: Acpx) -> None:
    done = acpx("exec", "/shout hello")
    assert done.code == 0
    assert "[thinking] skill shout (written as an instruction)" in done.out
    assert "shout done\n\n```\nHELLO\n```" in done.out and done.out.rstrip().endswith("[done] end_turn")


def test_a_workflow_is_a_plan_that_a_permission_starts(acpx: Acpx) -> None:
    done = acpx("--format", "json", "--approve-all", "exec", STEPS)
    states = [[entry["status"] for entry in one["entries"]] for one in done.updates("plan")]
    assert states[0] == ["pending", "pending"] and states[-1] == ["completed", "completed"] and len(states) == 5
    asked = [one["params"] for one in done.messages if one.get("method") == "session/request_permission"]
    assert [option["kind"] for option in asked[0]["options"]] == ["allow_once", "reject_once"] and len(asked) == 1
    assert done.code == 0


@pytest.mark.requirement("JIT-12")
@pytest.mark.parametrize(("policy", "code"), [("--approve-all", 0), ("--deny-all", 5)])
def test_an_edit_of_a_model_is_a_tool_call_with_a_permission(
    with_model: Kernel, place: Place, server: WireServer, acpx: Acpx, policy: str, code: int
) -> None:
    says(server, WRITE, Said(text="All done."))
    before = (place.root / "notes.txt").read_text()
    done = acpx("--format", "json", policy, "exec", "/song-writer a song")
    (call,) = done.updates("tool_call")
    assert (call["kind"], call["title"]) == ("edit", "write notes.txt")
    assert call["locations"] == [{"path": str(place.root / "notes.txt")}]
    ended = done.updates("tool_call_update")[-1]
    shown = ended.pop("content", [])
    assert ended == {"sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"], "status": ended["status"]}
    text = "".join(one["content"]["text"] for one in done.updates("agent_message_chunk"))
    yes = policy == "--approve-all"
    assert not yes or "notes.txt" in shown[0]["content"]["text"]
    assert ended["status"] == ("completed" if yes else "failed") and ("All done." in text) == yes
    assert ((place.root / "notes.txt").read_text() == before) != yes
    assert done.code == code


def test_a_model_failure_in_the_middle_of_an_answer_is_shown(
    place: Place, home: Path, server: WireServer, acpx: Acpx
) -> None:
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings(server, default="there:cut"))
    done = acpx("exec", "/song-writer a song")
    assert "Hello, all is" in done.out
    assert "navigator model use" in done.out and done.out.rstrip().endswith("[done] end_turn")


def test_a_session_is_cancelled_and_continues_in_another_process(acpx: Acpx, place: Place, program: Path) -> None:
    assert acpx("sessions", "new").out.startswith("acp-")
    argv = [str(program), "--agent", AGENT, "--ttl", OWNER, "prompt", "/doze now"]
    prompt = subprocess.Popen(argv, cwd=place.root, env=environment(), stdout=subprocess.PIPE, text=True)
    for _ in range(600):
        if any(place.root.glob("mybox/workspace/**/begun")):
            break
        time.sleep(0.05)
    assert "cancel requested" in acpx("cancel").out
    out, _ = prompt.communicate(timeout=60)
    assert out.rstrip().endswith("[done] cancelled")
    assert place.runs()[0][-1]["type"] == "RunCancelled"
    assert "HELLO" in acpx("prompt", "/shout hello").out
    end = time.monotonic() + 60
    while working_in(place.root) and time.monotonic() < end:  # until the agent's process ends
        time.sleep(0.1)
    assert working_in(place.root) == set()
    again = acpx("--verbose", "prompt", "/shout again")
    assert "session/load" in again.out and "AGAIN" in again.out
    (kept,) = place.json("session", "list")["sessions"]
    assert kept["turns"] == 2
