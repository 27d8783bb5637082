"""How a server ends: SIGTERM drains it, SIGKILL loses nothing acknowledged, and the next start continues."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.served import Person, Served, sent, serving
from models.wire_server import HELLO, Said, WireServer
from specialist.turns import says


def held_until(free: threading.Event, begun: threading.Event) -> Any:
    def answer(_messages: Any, _number: int) -> Said:
        begun.set()
        free.wait(30)
        return HELLO

    return answer


@pytest.mark.wide
def test_sigterm_lets_a_turn_end_and_its_stream_with_it(person: Person, model: WireServer) -> None:
    free, begun = threading.Event(), threading.Event()
    model.scripts["worker"] = held_until(free, begun)
    with serving(person, "--patience", "15") as served, served.client() as client:
        with client.stream("POST", "/api/chat/term", json={"message": "/song-writer the moon"}) as stream:
            assert begun.wait(20)
            served.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            free.set()
            events = [one.event for one in sent(stream)]
        assert events[-1] == "RunCompleted"
        assert served.process.wait(10) in {0, -signal.SIGTERM}
    assert person.json("session", "show", "term")["turns"] == 1


@pytest.mark.wide
def test_a_turn_that_does_not_end_in_time_is_stopped_and_the_server_ends(person: Person, model: WireServer) -> None:
    free, begun = threading.Event(), threading.Event()
    model.scripts["worker"] = held_until(free, begun)
    with serving(person, "--patience", "0.5") as served, served.client() as client:
        with client.stream("POST", "/api/chat/late", json={"message": "/song-writer the moon"}) as stream:
            assert begun.wait(20)
            served.process.send_signal(signal.SIGTERM)
            events = [one.event for one in sent(stream)]
        assert events[-1] == "RunError"
        assert served.process.wait(10) in {0, -signal.SIGTERM}
    free.set()
    waiting = {one["id"]: one["waiting"] for one in person.json("session", "list")["sessions"]}
    assert waiting["late"] == "interrupted"


@pytest.mark.wide
def test_a_server_that_is_not_asked_anything_ends_at_once(person: Person) -> None:
    with serving(person, "--patience", "60") as served:
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(30) in {0, -signal.SIGTERM}


def talking(served: Served, names: Iterator[str], done: list[str], stop: threading.Event) -> None:
    """Sends one message after another, each in its own session; `done` gets the sessions whose end was seen."""
    with served.client() as client:
        while not stop.is_set():
            path, body = f"/api/chat/{(name := next(names))}", {"message": "/song-writer the moon"}
            with suppress(httpx2.HTTPError, json.JSONDecodeError), client.stream("POST", path, json=body) as stream:
                if [one.event for one in sent(stream)][-1:] == ["RunCompleted"]:
                    done.append(name)


@pytest.mark.ci
@pytest.mark.timeout(900)
def test_fifty_kills_under_load_lose_nothing_that_was_acknowledged(person: Person, model: WireServer) -> None:
    says(model, HELLO)
    chance, acknowledged, tokens = random.Random(30), list[str](), {"admin": person.token("--role", "admin")}
    for number in range(50):
        done, stop = list[str](), threading.Event()
        with serving(person, "--patience", "2", roles=()) as served:
            served.tokens = tokens
            names = [iter([f"k{number}-{thread}-{at}" for at in range(10_000)]) for thread in range(4)]
            threads = [threading.Thread(target=talking, args=(served, held, done, stop)) for held in names]
            for thread in threads:
                thread.start()
            end = time.monotonic() + 60
            while number % 10 == 1 and not done and time.monotonic() < end:
                time.sleep(0.02)
            time.sleep(chance.uniform(0.05, 1.5))
            served.process.send_signal(signal.SIGKILL if number % 2 else signal.SIGTERM)
            served.process.wait(20)
            stop.set()
            for thread in threads:
                thread.join(20)
        acknowledged += done
    kept = {one["id"] for one in person.json("session", "list")["sessions"]}
    assert len(acknowledged) >= 5 and set(acknowledged) <= kept
    for file in Path(person.env["XDG_STATE_HOME"]).rglob("*.sqlite"):
        with sqlite3.connect(file) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
