"""The `ai` package of npm talks to the kernel through its own providers for OpenAI's API (marker ci)."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.openai_clients import CREATE, DELETE, SONG, TASKS, conversation, seen, until
from gateway.served import Served
from models.wire_server import HELLO, MODES, Said, WireServer
from specialist.turns import of_phase_two, says

pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]

PACKAGES = ("ai@7.0.173", "@ai-sdk/openai-compatible@3.0.92", "@ai-sdk/openai@4.0.118")
SCRIPT = Path(__file__).with_name("ai_sdk.mjs")
KINDS = ("chat", "responses")

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of the script, beside the installed packages."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("node")
    install = ["npm", "install", "--silent", "--no-fund", "--no-audit", *PACKAGES]
    subprocess.run(install, cwd=folder, check=True, timeout=300)
    return Path(shutil.copy(SCRIPT, folder))


@pytest.fixture(params=KINDS)
def ask(request: pytest.FixtureRequest, node: Path, served: Served) -> Ask:
    def asked(way: str, name: str, messages: Sequence[Any]) -> Any:
        words = [request.param, way, served.url, served.tokens["approve"], name, json.dumps(messages)]
        done = subprocess.run(["node", node, *words], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return asked


def test_an_answer_comes_whole(ask: Ask, model: WireServer) -> None:
    told = ask("whole", "navigator", conversation("why is the sky blue?"))
    assert (told["text"], told["finish"], told["error"], told["calls"]) == (HELLO.text, "stop", None, 0)
    assert (told["usage"]["inputTokens"], told["usage"]["outputTokens"]) == (120, 12)


def test_a_stream_has_reasoning_and_text_and_no_calls(ask: Ask, model: WireServer) -> None:
    says(model, CREATE, Said(text="It is done."))
    told = ask("stream", TASKS, conversation("create it"))
    assert (told["text"], told["finish"], told["error"]) == ("Let me see.\n\nIt is done.", "stop", None)
    assert told["reasoning"].startswith('Loading task_manager…\ntask_create {"title": "Buy milk"}\n')
    assert not any("tool" in part for part in told["parts"])
    assert told["usage"]["inputTokens"] == 240


def test_a_conversation_continues_with_the_messages_that_the_package_keeps(ask: Ask, model: WireServer) -> None:
    first = ask("whole", "navigator", conversation("why is the sky blue?"))
    ask("whole", "navigator", [*first["messages"], *conversation("and the sea?")])
    assert seen(model) == ["why is the sky blue?", HELLO.text, "and the sea?"]


def test_a_pending_approval_is_answered_by_the_next_turn(ask: Ask, model: WireServer) -> None:
    says(model, CREATE, DELETE, Said(text="It is gone."))
    question = ask("whole", TASKS, conversation("create it and delete task 1"))
    assert "Really delete the task 1?" in question["text"]
    answer = ask("stream", TASKS, [*question["messages"], *conversation("yes")])
    assert answer["text"] == "It is gone."


@pytest.mark.parametrize("way", ["whole", "stream"])
def test_an_error_in_the_middle_is_an_error_and_not_repeated(ask: Ask, model: WireServer, way: str) -> None:
    says(model, CREATE)
    model.declines["worker"] = ("messages",)
    try:
        told = ask(way, TASKS, conversation("create it"))
    finally:
        model.declines.clear()
    assert "there:worker" in told["error"]
    assert len(of_phase_two(model)) == 1


def test_a_client_that_aborts_ends_the_run(
    ask: Ask, served: Served, model: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    del model.scripts["worker"]
    monkeypatch.setitem(MODES, "worker", MODES["hangs-between-words"])
    assert "abort" in ask("abort", SONG, conversation("one who leaves"))["parts"]

    def is_cancelled() -> bool:
        with served.client() as plain:
            run = plain.get("/api/runs", params={"limit": 1}).json()["runs"][0]
        return str(run["state"]) == "cancelled"

    until(is_cancelled)


def test_an_unknown_model_is_an_error_with_its_status(ask: Ask) -> None:
    told = ask("whole", "navigator/none", conversation("hello"))
    assert told["status"] == 404 and "there is no model" in told["error"]
