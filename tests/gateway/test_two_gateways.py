"""Two gateways of one project, with one Postgres: a stream goes on at the other one, and both count requests together."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from typing import NamedTuple

import pytest

from gateway.served import Person, Sent, Served, sent, serving
from gateway.test_ends import held_until
from models.wire_server import WireServer
from navigator_kernel.gateway.access import Buckets
from navigator_postgres.plugin import PROJECT_ID, URL
from navigator_postgres.stores import PostgresStores
from postgres_server import new_project

pytestmark = [pytest.mark.ci, pytest.mark.requirement("X-6")]
LEASE = 2.0  # seconds, as `new_project` sets it
SONG = {"message": "/song-writer the moon"}


class Two(NamedTuple):
    first: Served
    second: Served
    stores: PostgresStores

    def follow(self, served: Served, run: str, last: str = "") -> list[Sent]:
        """The events of the run at one of the gateways behind the position `last`, until the stream ends. The token is
        the first one's."""
        headers = {"Authorization": f"Bearer {self.first.tokens['admin']}", **({"Last-Event-ID": last} if last else {})}
        with served.client() as client, client.stream("GET", f"/api/runs/{run}/events", headers=headers) as stream:
            assert stream.status_code == 200
            return list(sent(stream))


@pytest.fixture
def two(person: Person, monkeypatch: pytest.MonkeyPatch, postgres: str) -> Iterator[Two]:
    stores = new_project(monkeypatch, postgres)
    shared = {name: os.environ[name] for name in (URL, PROJECT_ID, "NAVIGATOR_LEASE")}
    host = person._replace(env={**person.env, **shared})
    host.json("skill", "trust", "song-writer")
    with ExitStack() as stack:
        first, second = (stack.enter_context(serving(host)) for _ in range(2))
        yield Two(first, second, stores)


def begun_at(served: Served, begun: threading.Event) -> list[Sent]:
    """The events of a new run up to the model's work; its reader then leaves."""
    with served.client() as client, client.stream("POST", "/api/chat/s", json=SONG) as stream:
        seen = list(islice(sent(stream), 2))
        assert begun.wait(20)
    return seen


def test_a_stream_goes_on_at_another_gateway_with_exactly_what_is_missing(two: Two, model: WireServer) -> None:
    free, begun = threading.Event(), threading.Event()
    model.scripts["worker"] = held_until(free, begun)
    seen = begun_at(two.first, begun)
    threading.Timer(1.0, free.set).start()
    rest = two.follow(two.second, seen[0].data["run"], seen[-1].id)
    with two.second.client() as client:  # who has read the last event finds the answer in the session
        history = client.get("/api/sessions/s").json()["history"]
    assert [entry["role"] for entry in history] == ["user", "assistant"]
    assert rest[-1].event == "RunCompleted"
    assert seen + rest == two.follow(two.first, seen[0].data["run"])
    for at, event in enumerate(seen + rest):
        assert two.follow(two.second, event.data["run"], event.id) == (seen + rest)[at + 1 :]
    with two.stores.open("buckets", (), beside=True) as database:  # both count the requests of a token there
        names = {name for (name,) in database.execute("SELECT name FROM buckets").fetchall()}
    assert names == {served.tokens["admin"].split("_")[1] for served in (two.first, two.second)}


def test_a_run_is_stopped_at_another_gateway(two: Two, model: WireServer) -> None:
    free, begun = threading.Event(), threading.Event()
    model.scripts["worker"] = held_until(free, begun)
    run = begun_at(two.first, begun)[0].data["run"]
    headers = {"Authorization": f"Bearer {two.first.tokens['admin']}"}
    with two.second.client() as client:
        began = time.monotonic()
        assert client.delete("/api/runs/none", headers=headers).status_code == 404
        assert client.delete(f"/api/runs/{run}", headers=headers).status_code == 204
        assert [event.event for event in two.follow(two.second, run)][-1] == "RunError"  # a run that was cancelled
        assert time.monotonic() - began < LEASE + 2
        assert client.delete(f"/api/runs/{run}", headers=headers).status_code == 404
        free.set()
        assert client.get(f"/api/runs/{run}", headers=headers).json()["state"] == "cancelled"


def test_a_stream_of_a_killed_gateway_ends_and_goes_on_when_another_one_continues_the_run(
    two: Two, model: WireServer
) -> None:
    free, begun = threading.Event(), threading.Event()
    model.scripts["worker"] = held_until(free, begun)
    seen = begun_at(two.first, begun)
    run, killed = seen[0].data["run"], time.monotonic()
    two.first.process.send_signal(signal.SIGKILL)
    assert two.follow(two.second, run, seen[-1].id) == []  # it has nothing more to come
    assert time.monotonic() - killed < LEASE + 2
    begun.clear()
    with two.second.client() as client:
        assert client.post("/api/sessions/s/runs", json={"message": "yes"}).status_code == 202
        assert begun.wait(20)
        threading.Timer(1.0, free.set).start()
        rest = two.follow(two.second, run, seen[-1].id)
        history = client.get("/api/sessions/s").json()["history"]
    assert rest[-1].event == "RunCompleted"
    assert seen + rest == two.follow(two.second, run)
    assert [event.data["seq"] for event in seen + rest] == sorted({event.data["seq"] for event in seen + rest})
    assert [entry["role"] for entry in history][-1] == "assistant"


def test_gateways_count_the_requests_of_a_token_together(monkeypatch: pytest.MonkeyPatch, postgres: str) -> None:
    new_project(monkeypatch, postgres)
    hosts = [PostgresStores(os.environ[URL], os.environ[PROJECT_ID], LEASE) for _ in range(2)]
    gateways = [Buckets(rate=0.001, burst=45.0, take=host.take) for host in hosts]

    async def taken() -> list[float]:
        return [await gateways[number % 2].wait("a") for number in range(60)]

    waits = asyncio.run(taken())
    assert waits.count(0.0) == 45 and min(wait for wait in waits if wait) > 900


def test_a_gateway_whose_database_is_away_counts_alone() -> None:
    away = PostgresStores("postgresql://ann@127.0.0.1:9/x", "p")
    alone = Buckets(rate=0.001, burst=2.0, take=away.take)

    async def taken() -> list[bool]:
        return [await alone.wait("a") == 0.0 for _ in range(3)]

    began = time.monotonic()
    assert asyncio.run(taken()) == [True, True, False]
    assert time.monotonic() - began < 5  # it asks the database once
