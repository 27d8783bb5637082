"""`navigator acp` as an editor starts it: a process that writes only the protocol to stdout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from cli.support import LIMIT, MODULE, Place, environment
from processes import working_in

FIRST = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


class Started:
    """The started process, which reads and writes one message a line."""

    def __init__(self, place: Place) -> None:
        pipe = subprocess.PIPE
        argv = [*MODULE, "acp"]
        self.process = subprocess.Popen(argv, cwd=place.root, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe)
        self.heard: list[dict[str, Any]] = []

    def say(self, *messages: Mapping[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        for one in messages:
            self.process.stdin.write(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, number: int | None) -> dict[str, Any]:
        """The next answer to this request; checks that every line before it is a message too."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            self.heard.append(message)
            if "method" not in message and message["id"] == number:
                return dict(message)
        raise AssertionError(f"no answer to {number}; stderr: {self.rest()[1]}")

    def opens(self, place: Place) -> str:
        params = {"cwd": str(place.root), "mcpServers": []}
        self.say(FIRST, {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params})
        return str(self.answer(1)["result"]["sessionId"])

    def prompt(self, session: str, text: str, number: int = 2) -> None:
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        self.say({"jsonrpc": "2.0", "id": number, "method": "session/prompt", "params": params})

    def rest(self) -> tuple[list[dict[str, Any]], str]:
        """Closes stdin; returns the remaining messages on stdout, and stderr."""
        process = self.process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.close()
        left = [json.loads(line) for line in process.stdout.read().splitlines()]
        process.wait(LIMIT)
        return left, process.stderr.read().decode()


@contextmanager
def started(place: Place) -> Iterator[Started]:
    held = Started(place)
    try:
        yield held
    finally:
        held.process.kill()
        held.process.wait()
        for stream in (held.process.stdin, held.process.stdout, held.process.stderr):
            if stream is not None:
                stream.close()


def gone(place: Place) -> bool:
    for _ in range(500):
        if not any(working_in(path.parent) for path in place.root.glob("mybox/workspace/**/begun")):
            return True
        time.sleep(0.02)
    return False


def until_it_runs(place: Place) -> None:
    for _ in range(1500):
        if any(place.root.glob("mybox/workspace/**/begun")):
            return
        time.sleep(0.02)
    raise AssertionError("the skill never began")


@pytest.mark.wide
def test_stdout_contains_the_protocol_and_stderr_nothing(place: Place) -> None:
    with started(place) as held:
        held.prompt(held.opens(place), "/shout hello")
        assert held.answer(2)["result"] == {"stopReason": "end_turn"}
        left, errors = held.rest()
    told = [one["params"]["update"]["sessionUpdate"] for one in held.heard + left if "method" in one]
    assert sorted(set(told)) == ["agent_message_chunk", "agent_thought_chunk", "available_commands_update"]
    assert (held.process.returncode, errors) == (0, "")


@pytest.mark.wide
def test_invalid_messages_get_error_responses_and_later_requests_are_answered(place: Place) -> None:
    broken = [b"\n", b"{\n", b"[]\n", b"5\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n", b'{"id": [], "result": 1}\n']
    broken += [b'{"id": 1, "method": 5}\n', b'{"id": 9, "error": "x"}\n', b"{}\n", b'{"method": "session/cancel"}\n']
    with started(place) as held:
        held.say(*broken, {"jsonrpc": "2.0", "id": 3, "method": "nothing/like-it"})
        assert held.answer(3)["error"]["code"] == -32601
        held.say({"jsonrpc": "2.0", "id": 4, "method": "session/prompt", "params": {"sessionId": 5}})
        assert held.answer(4)["error"]["code"] == -32602
        assert held.opens(place).startswith("acp-")
        _, errors = held.rest()
    codes = [one["error"]["code"] for one in held.heard if one.get("id", 0) is None]
    assert set(codes) == {-32700, -32600} and len(codes) == 9
    assert "Traceback" not in errors and held.process.returncode == 0


@pytest.mark.wide
@pytest.mark.parametrize("how", ["eof", "term", "hup"])
def test_its_processes_end_with_it(place: Place, how: str) -> None:
    with started(place) as held:
        held.prompt(held.opens(place), "/doze now")
        until_it_runs(place)
        if how == "eof":
            assert held.process.stdin is not None
            held.process.stdin.close()
        else:
            os.kill(held.process.pid, signal.SIGTERM if how == "term" else signal.SIGHUP)
        assert held.process.wait(LIMIT) == 0
        assert gone(place)
        assert held.process.stderr is not None and held.process.stderr.read() == b""
    assert place.runs()[0][-1]["type"] == "RunCancelled"


@pytest.mark.wide
def test_without_pipes_and_without_the_extra_it_says_what_to_do(place: Place) -> None:
    assert "an editor starts this command" in place.on_terminal("acp")
    done = place.run("acp", "--json")
    assert (done.code, done.document["error"]["code"]) == (2, "usage")
    place.write({"blocked/acp/__init__.py": "raise ImportError\n"})
    hidden = place.run("acp", env={"PYTHONPATH": f"{place.root}/blocked:{environment()['PYTHONPATH']}"})
    assert hidden.code == 1 and "navigator-kernel[acp]" in hidden.err
