"""A real Open WebUI on this machine uses the kernel as an OpenAI server: models, answers, approvals."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.openai_clients import CREATE, DELETE, SONG, TASKS, conversation
from gateway.served import Served
from models.wire_server import HELLO, Said, WireServer
from ports import free_port
from specialist.turns import says

pytestmark = [pytest.mark.open_webui, pytest.mark.timeout(600)]

START = 300.0  # seconds, on a busy machine
PERSON = {"name": "A Person", "email": "person@example.com", "password": "made-up"}
SLIM = {"USE_SLIM_DOCKER": "true", "OFFLINE_MODE": "true", "ENABLE_OLLAMA_API": "false", "WEBUI_SECRET_KEY": "made-up"}


@pytest.fixture(scope="module")
def web_ui(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """The client of a person who signed up at a new Open WebUI, which has the kernel's address and an approve token."""
    program = os.environ.get("OPEN_WEBUI") or pytest.fail("say make test-open-webui")
    folder, port = tmp_path_factory.mktemp("open-webui"), free_port()
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "DATA_DIR": str(folder / "data"), **SLIM}
    env |= {"STATIC_DIR": str(folder / "static")}
    env |= {"OPENAI_API_BASE_URLS": f"{served.url}/v1", "OPENAI_API_KEYS": served.tokens["approve"]}
    argv = [str(Path(program).absolute()), "serve", "--host", "127.0.0.1", "--port", str(port)]
    log = folder / "log"
    with log.open("wb") as out, subprocess.Popen(argv, cwd=folder, env=env, stdout=out, stderr=out) as process:
        try:
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
                until_up(client, process, log)
                token = client.post("/api/v1/auths/signup", json=PERSON).json()["token"]
                client.headers["authorization"] = f"Bearer {token}"
                yield client
        finally:
            process.kill()


def until_up(client: httpx2.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START
    while time.monotonic() < end and process.poll() is None:
        try:
            if client.get("/health").status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(0.5)
    pytest.fail(f"Open WebUI did not start:\n{log.read_text(errors='replace')[-4_000:]}")


def asked(client: httpx2.Client, *said: str, model: str = "navigator") -> str:
    """The text of an answer that is not streamed."""
    body = {"model": model, "messages": conversation(*said), "stream": False}
    answer = client.post("/api/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["message"]["content"])


def streamed(client: httpx2.Client, *said: str, model: str = "navigator") -> list[dict[str, Any]]:
    """The deltas of a streamed answer, in order."""
    body = {"model": model, "messages": conversation(*said), "stream": True}
    with client.stream("POST", "/api/chat/completions", json=body) as answer:
        assert answer.status_code == 200, answer.read()
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [choice["delta"] for line in lines[:-1] for choice in json.loads(line)["choices"]]


def test_the_router_and_the_skills_are_its_models(web_ui: httpx2.Client) -> None:
    names = [one["id"] for one in web_ui.get("/api/models").json()["data"]]
    assert {"navigator", SONG, TASKS} <= set(names)


def test_an_answer_comes_whole(web_ui: httpx2.Client, model: WireServer) -> None:
    assert asked(web_ui, "why is the sky blue?") == HELLO.text


def test_a_streamed_answer_has_kernel_tool_calls_as_reasoning_not_as_tool_calls(
    web_ui: httpx2.Client, model: WireServer
) -> None:
    says(model, CREATE, Said(text="It is done."))
    deltas = streamed(web_ui, "create it", model=TASKS)
    assert "".join(delta.get("content") or "" for delta in deltas) == "Let me see.\n\nIt is done."
    assert "task_create" in "".join(delta.get("reasoning_content") or "" for delta in deltas)
    assert not any(delta.get("tool_calls") for delta in deltas)


def test_a_pending_approval_is_a_message_that_the_next_one_answers(web_ui: httpx2.Client, model: WireServer) -> None:
    says(model, CREATE, Said(text="Done."))
    asked(web_ui, "create it", model=TASKS)
    model.requests.clear()
    says(model, DELETE, Said(text="It is gone."))
    question = asked(web_ui, "delete task 1", model=TASKS)
    assert "Really delete the task 1?" in question and "Answer `yes` or `no`." in question
    assert asked(web_ui, "delete task 1", question, "yes", model=TASKS) == "It is gone."
