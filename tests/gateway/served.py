"""A real server of a project in its own process, and clients that speak plain HTTP to it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import httpx2

from cli.support import Place, environment

LIMIT = 30.0  # seconds


class Sent(NamedTuple):
    """A server-sent event as received."""

    id: str
    event: str
    data: Any


@dataclass
class Served:
    """A running server; `tokens` are keyed by role."""

    url: str
    process: subprocess.Popen[str]
    tokens: Mapping[str, str] = field(default_factory=dict)

    def client(self, role: str = "admin", **headers: str) -> httpx2.Client:
        said = {"Authorization": f"Bearer {self.tokens[role]}", **headers}
        return httpx2.Client(base_url=self.url, headers=said, timeout=LIMIT)

    def chat(self, message: str, session: str = "s", role: str = "admin", events: str = "page") -> list[Sent]:
        with (
            self.client(role) as client,
            client.stream(
                "POST", f"/api/chat/{session}", params={"events": events}, json={"message": message}
            ) as answer,
        ):
            assert answer.status_code == 200, answer.read()
            return list(sent(answer))


def sent(answer: httpx2.Response) -> Iterator[Sent]:
    """The events of a stream, by the standard's rules, without comments."""
    held: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(":")
            if name:
                held[name] = value.removeprefix(" ")
        elif held:
            yield Sent(held.get("id", ""), held.get("event", "message"), json.loads(held.get("data", "null")))
            held = {}


class Person(NamedTuple):
    """A project, and the environment that its person works in."""

    here: Place
    env: Mapping[str, str]

    def json(self, *words: str) -> Any:
        return self.here.json(*words, env=self.env)

    def token(self, *options: str) -> str:
        return str(self.json("serve", "--new-token", *options)["token"])


def edit_of(file: Path) -> str:
    """The arguments of an edit that adds a line to `file`, which no message named."""
    file.write_text("first\n")
    return json.dumps({"file_path": str(file), "old_string": "first", "new_string": "first\nsecond"})


@contextmanager
def serving(
    person: Person, *options: str, roles: Sequence[str] = ("admin",), stderr: IO[bytes] | None = None
) -> Iterator[Served]:
    """Runs a server until the end of the block, then stops it with SIGTERM."""
    here, tokens = person.here, {role: person.token("--role", role) for role in roles}
    argv = [*here.program, "serve", "--port", "0", "--json", *options]
    held = environment(person.env)
    with subprocess.Popen(argv, cwd=here.root, env=held, stdout=subprocess.PIPE, stderr=stderr, text=True) as process:
        assert process.stdout is not None
        try:
            url = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")["url"]
            yield Served(url, process, tokens)
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                assert process.wait(20) in {0, -signal.SIGTERM}
        finally:
            process.kill()
