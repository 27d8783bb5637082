"""Shared by the tests of OpenAI's API: clients of the `openai` package, and models that wait or fail."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from openai import OpenAI

from gateway.served import LIMIT, Served
from models.wire_server import Said, WireServer
from specialist.turns import of_phase_two

CREATE = Said(text="Let me see.", calls=[("task_create", '{"title": "Buy milk"}')])
DELETE = Said(calls=[("task_delete", '{"task_id": 1}')])
TASKS = "navigator/task_manager"
SONG = "navigator/song-writer"


def of(served: Served, role: str = "approve") -> OpenAI:
    return OpenAI(base_url=f"{served.url}/v1", api_key=served.tokens[role], max_retries=0)


def conversation(*said: str) -> list[Any]:
    """Messages of the person and the assistant in turn; the person's come first and last."""
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": text} for at, text in enumerate(said)]


def asked(client: OpenAI, *said: str, model: str = "navigator", **more: Any) -> Any:
    return client.chat.completions.create(model=model, messages=conversation(*said), **more)


def text_of(answer: Any) -> str:
    return str(answer.choices[0].message.content)


def seen(model: WireServer) -> list[str]:
    """The texts of the last request to the model that is not the router's, without the kernel's own texts."""
    texts = [str(message["content"]) for message in of_phase_two(model)[-1]["messages"][1:]]
    return [text for text in texts if not text.startswith(("[Environment]", "[Skills that may fit;"))]


def until(holds: Callable[[], bool]) -> None:
    """Waits until another process has made `holds` true."""
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def state_of(served: Served, run: str) -> str:
    with served.client() as client:
        return str(client.get(f"/api/runs/{run}").json()["state"])
