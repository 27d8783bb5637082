"""What 1,000 streams of real turns cost the gateway, beside a bare Starlette stream; readers that stop or reconnect;
memory over 10,000 turns."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from bench.stream_server import PIECES
from cli.support import Place
from gateway.served import Person, Served, serving
from homes import made_home
from models.wire_server import HELLO, WireServer
from models.wire_server import serving as serving_models
from person_state import accept
from specialist.turns import says, settings, song

pytestmark = pytest.mark.bench

STREAMS, RUNS = 1_000, 20
TURNS, WARM_TURNS = 10_000, 300
TICK = os.sysconf("SC_CLK_TCK")
SAY = json.dumps({"message": "/song-writer the moon"}).encode()


class Read(NamedTuple):
    """Seconds to the first byte of the body, and the numbers of the events."""

    first: float
    numbers: Sequence[int]


@contextmanager
def child(kind: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    file = Path(__file__).with_name("stream_server.py")
    argv, pipe = [sys.executable, str(file), kind], subprocess.PIPE
    with subprocess.Popen(argv, text=True, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None and process.stdin is not None
        yield process.stdout.readline().strip(), process
        process.stdin.close()


@pytest.fixture
def person_of(new_folder: Callable[[str], Path], caches: Mapping[str, Sequence[Path]]) -> Callable[[str], Person]:
    """A person whose model is at this address."""

    def make(config: str) -> Person:
        with pytest.MonkeyPatch.context() as patch:
            home = made_home(new_folder("home"), caches, patch)
            file = home / ".config" / "navigator" / "config.toml"
            file.parent.mkdir(parents=True)
            file.write_text(config)
            here = Place(root=new_folder("project"))
            (here.root / "mybox").mkdir()
            here.write({".claude/skills/song-writer/SKILL.md": song()})
            accept(here.root, "song-writer")
            return Person(here, dict(os.environ))

    return make


def cpu(pid: int) -> float:
    """Seconds that a process has used."""
    held = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(held[11]) + int(held[12])) / TICK


def memory(pid: int) -> float:
    """MB that a process holds."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


async def asked(url: str, method: str, path: str, token: str, body: bytes = b"", **headers: str) -> Read:
    """One request over a socket of its own, read to its end."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    held = {"host": place.netloc, "authorization": f"Bearer {token}", "connection": "close", **headers}
    held |= {"content-type": "application/json", "content-length": str(len(body))} if body else {}
    lines = "".join(f"{name}: {value}\r\n" for name, value in held.items())
    begun = time.perf_counter()
    writer.write(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
    assert b" 200 " in await reader.readline() or path.endswith("/runs")
    while (await reader.readline()).strip():
        pass
    text = await reader.readline()
    first = time.perf_counter() - begun
    numbers = []
    while line := await reader.readline():
        if line.startswith(b"id: "):
            numbers.append(int(line.rpartition(b":")[2]))
    assert text
    writer.close()
    return Read(first, numbers)


async def begun(served: Served, count: int) -> list[str]:
    """As many runs, in a session each."""
    import httpx2

    async with httpx2.AsyncClient(
        base_url=served.url, headers={"Authorization": f"Bearer {served.tokens['admin']}"}, timeout=60
    ) as client:
        answers = await asyncio.gather(
            *[
                client.post(
                    f"/api/sessions/b{number}-{time.time_ns()}/runs",
                    content=SAY,
                    headers={"content-type": "application/json"},
                )
                for number in range(count)
            ]
        )
    assert {answer.status_code for answer in answers} == {202}, [answer.text for answer in answers]
    return [answer.json()["run"] for answer in answers]


async def _many(url: str, paths: Sequence[str], token: str) -> list[Read]:
    return await asyncio.gather(*[asked(url, "GET", path, token) for path in paths])


def told(name: str, reads: Sequence[Read], seconds: float) -> str:
    cuts = quantiles([one.first for one in reads], n=100)
    return f"{name}: {seconds:.2f} s of CPU, first byte p50 {cuts[49] * 1e3:.0f} ms, p99 {cuts[98] * 1e3:.0f} ms"


def test_a_thousand_streams_of_real_turns_cost_at_most_twice_a_bare_stream(
    person_of: Callable[[str], Person], capsys: pytest.CaptureFixture[str]
) -> None:
    with child("bare") as (url, process):
        before = cpu(process.pid)
        bare = asyncio.run(_many(url, ["/events"] * STREAMS, "x"))
        bare_seconds = cpu(process.pid) - before
    with child("model") as (url, _):
        person = person_of(settings(WireServer(url=url)))
        with serving(person) as served:
            asyncio.run(begun(served, 1))
            time.sleep(12)
            token, pid = served.tokens["admin"], served.process.pid
            alone_before = cpu(pid)
            asyncio.run(begun(served, RUNS))
            time.sleep(12)
            alone = cpu(pid) - alone_before

            async def all_of() -> list[Read]:
                runs = await begun(served, RUNS)
                return await _many(served.url, [f"/api/runs/{runs[n % RUNS]}/events" for n in range(STREAMS)], token)

            before = cpu(pid)
            reads = asyncio.run(all_of())
            seconds = cpu(pid) - before
    with capsys.disabled():
        print(f"\n{STREAMS} streams of {PIECES} pieces, load {os.getloadavg()[0]:.1f}")
        print(told("bare Starlette", bare, bare_seconds))
        print(told(f"gateway, {RUNS} real turns", reads, seconds))
        print(f"the turns alone, without a reader: {alone:.2f} s of CPU")
    assert all(len(one.numbers) >= PIECES and list(one.numbers) == sorted(set(one.numbers)) for one in reads)
    assert len({tuple(one.numbers) for one in reads}) <= RUNS
    assert seconds - alone <= 2 * bare_seconds
    late = quantiles([one.first for one in reads], n=100)[98] - quantiles([one.first for one in bare], n=100)[98]
    assert late <= 0.05


def test_a_turn_of_a_running_server_costs_little_cpu(
    person_of: Callable[[str], Person], capsys: pytest.CaptureFixture[str]
) -> None:
    """With a model that answers at once (issue 49)."""

    async def turns(served: Served, first: int, count: int) -> float:
        limit, began = asyncio.Semaphore(8), time.perf_counter()

        async def one(number: int) -> None:
            async with limit:
                await asked(served.url, "POST", f"/api/chat/c{number}", served.tokens["admin"], SAY)

        await asyncio.gather(*[one(number) for number in range(first, first + count)])
        return time.perf_counter() - began

    async def all_of(served: Served) -> tuple[float, float]:
        await turns(served, 0, 40)
        before = cpu(served.process.pid)
        seconds = await turns(served, 40, WARM_TURNS)
        return (cpu(served.process.pid) - before) / WARM_TURNS, WARM_TURNS / seconds

    with serving_models() as model:
        says(model, HELLO)
        with serving(person_of(settings(model))) as served:
            each, rate = asyncio.run(all_of(served))
    with capsys.disabled():
        print(f"\n{each * 1000:.1f} ms of CPU a turn, {rate:.0f} turns a second, load {os.getloadavg()[0]:.1f}")
    assert each <= 0.025


async def comes_back(served: Served, run: str, chance: random.Random) -> list[int]:
    """Reads a part, goes away, and goes on behind what it saw."""
    seen: list[int] = []
    while True:
        place = urlsplit(served.url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        last = f"last-event-id: {run}:{seen[-1]}\r\n" if seen else ""
        head = f"host: {place.netloc}\r\nauthorization: Bearer {served.tokens['admin']}\r\nconnection: close\r\n"
        writer.write(f"GET /api/runs/{run}/events?events=all HTTP/1.1\r\n{head}{last}\r\n".encode())
        left = chance.randint(1, 15)
        ended = False
        while line := await reader.readline():
            if line.startswith(b"id: "):
                number = int(line.rpartition(b":")[2])
            elif line.startswith(b"data: "):
                seen.append(number)
                left -= 1
                ended = b'"type":"RunCompleted"' in line
                if left == 0 or ended:
                    break
        writer.close()
        if ended:
            return seen


async def stops(served: Served, run: str) -> asyncio.StreamWriter:
    """Never reads what comes."""
    place = urlsplit(served.url)
    _, writer = await asyncio.open_connection(place.hostname, place.port, limit=1)
    head = f"host: {place.netloc}\r\nauthorization: Bearer {served.tokens['admin']}\r\n"
    writer.write(f"GET /api/runs/{run}/events?events=all HTTP/1.1\r\n{head}\r\n".encode())
    return writer


def test_readers_that_stop_or_come_back_see_every_event_once(
    person_of: Callable[[str], Person], capsys: pytest.CaptureFixture[str]
) -> None:
    async def all_of(served: Served) -> list[list[int]]:
        runs = await begun(served, RUNS)
        stopped = [await stops(served, runs[number % RUNS]) for number in range(200)]
        chance = random.Random(30)
        seen = await asyncio.gather(*[comes_back(served, runs[number % RUNS], chance) for number in range(200)])
        for writer in stopped:
            writer.close()
        return list(seen)

    with child("model") as (url, _), serving(person_of(settings(WireServer(url=url)))) as served:
        seen = asyncio.run(all_of(served))
        held = memory(served.process.pid)
    with capsys.disabled():
        print(f"\n200 readers stopped, 200 came back {sum(map(len, seen))} events later; {held:.0f} MB")
    assert all(numbers == list(range(len(numbers))) and len(numbers) > PIECES for numbers in seen)


def test_memory_is_flat_over_ten_thousand_turns(
    person_of: Callable[[str], Person], capsys: pytest.CaptureFixture[str]
) -> None:
    async def turns(served: Served, first: int, count: int) -> None:
        limit = asyncio.Semaphore(8)

        async def one(number: int) -> None:
            async with limit:
                path = f"/api/chat/m{number % 500}"
                await asked(served.url, "POST", path, served.tokens["admin"], SAY)

        await asyncio.gather(*[one(number) for number in range(first, first + count)])

    with serving_models() as model:
        says(model, HELLO)
        with serving(person_of(settings(model))) as served:
            pid, held = served.process.pid, []
            for part in range(10):
                asyncio.run(turns(served, part * TURNS // 10, TURNS // 10))
                held.append(memory(pid))
                model.requests.clear()
    with capsys.disabled():
        print(f"\nMB after each {TURNS // 10:,} turns: {', '.join(f'{one:.0f}' for one in held)}")
    assert held[-1] <= held[1] * 1.1 + 5
