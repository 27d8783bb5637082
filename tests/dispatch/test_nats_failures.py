"""Dispatch over a real broker when something fails: workers in processes of their own are killed, frozen and cut off."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import nats
import pytest
from nats.js.errors import NotFoundError

from cut_link import Link, link_to
from dispatch.nats_broker import Broker
from dispatch.nats_parts import owner, settings
from dispatch.orders import order
from navigator_kernel.bootstrap.health import findings
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.errors import Busy, FetchFailed, NotFound, StorageFailed
from navigator_kernel.values.packet import Context, Packet, Report
from navigator_nats import broker as names
from navigator_nats.dispatcher import NatsDispatcher
from navigator_nats.inspection import Cluster

pytestmark = [pytest.mark.ci, pytest.mark.requirement("X-6")]
TESTS = Path(__file__).parents[1]
PATHS = {**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent / 'kernel'}"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    held = Broker(tmp_path / "store").start()
    yield held
    held.kill()


@pytest.fixture
def start(tmp_path: Path, broker: Broker) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a worker of this name; its notes are files of runs in `tmp_path`."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(name: str, digest: str = "", url: str = "", shift: int = 0) -> subprocess.Popen[bytes]:
        argv = [
            sys.executable,
            "-m",
            "dispatch.nats_worker",
            url or broker.url,
            name,
            str(tmp_path),
            *([digest] if digest else []),
        ]
        wrong = {"PYTHONPATH": f"{TESTS / 'wrong_clock'}:{PATHS['PYTHONPATH']}", "CLOCK_SHIFT": str(shift)}
        env = {**PATHS, **(wrong if shift else {})}
        started.append(subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env))
        return started[-1]

    yield begin
    for process in started:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def owning(broker: Broker, test: Callable[[NatsDispatcher], Awaitable[Any]], digest: str = "", **given: Any) -> Any:
    """What the test returns, given a dispatcher."""

    async def run() -> Any:
        held = owner(settings(broker.url, **given), digest)
        try:
            return await test(held)
        finally:
            await held.close()

    return asyncio.run(run())


def task(run: str, request: str, timeout: float = 40) -> Packet:
    return order(run=run, timeout=timeout, request=request)


async def sent(held: NatsDispatcher, packet: Packet) -> Report:
    return await held.result(str(await held.submit(packet)))


async def until(holds: Callable[[], Awaitable[Any]], seconds: float = 30) -> Any:
    """The first result that is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := await holds():
            return result
        await asyncio.sleep(0.02)
    raise AssertionError("it did not come about")


async def noted(file: Path, *lines: str) -> None:
    """Waits until the file has these lines."""

    async def has_lines() -> bool:
        return set(lines) <= set(await asyncio.to_thread(lines_of, file))

    await until(has_lines)


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


async def dead_of(cluster: Cluster) -> Any:
    return (await cluster.status())["dead"]


def test_a_task_whose_worker_is_killed_goes_to_another_one(broker: Broker, start: Any, tmp_path: Path) -> None:
    first = start("a")

    async def killed(held: NatsDispatcher) -> tuple[Report, float]:
        name = str(await held.submit(task("r", "sleep 1")))
        await noted(tmp_path / "r", "a begun")
        first.kill()
        start("b")
        began = time.monotonic()
        return await held.result(name), time.monotonic() - began

    report, seconds = owning(broker, killed, ack_wait=1.5)
    assert (report.state, report.summary) == ("success", "b")
    assert seconds < 20  # an acknowledgement limit of 1.5 s, the start of a worker, and the work


def test_a_packet_that_kills_each_worker_is_an_error(broker: Broker, start: Any) -> None:
    workers = [start(name) for name in "abc"]

    async def poison(held: NatsDispatcher) -> Report:
        name = str(await held.submit(task("r", "die")))
        for process in workers:
            assert await asyncio.to_thread(process.wait) == 9
        start("d")  # the broker counts deliveries when a worker asks for a task
        return await held.result(name)

    report = owning(broker, poison, ack_wait=1.5)
    assert (report.state, report.data["msg"]) == ("error", "3 workers began the task and none of them ended it")


def test_tasks_that_were_given_up_are_listed_sent_again_and_dropped(broker: Broker) -> None:
    async def given_up(held: NatsDispatcher) -> None:
        packets = [task(run, "die") for run in ("r1", "r2")]
        sending = [asyncio.ensure_future(sent(held, packet)) for packet in packets]
        client = await nats.connect(broker.url)
        queue = await until(lambda: client.jetstream().pull_subscribe_bind("skills", stream=names.TASKS))
        taking = asyncio.ensure_future(takes_and_leaves(client, queue))
        assert [report.state for report in await asyncio.gather(*sending)] == ["error", "error"]
        await client.close()
        await taking
        keys = sorted(map(names.key_of, packets))
        async with Cluster.opened(settings(broker.url)) as cluster:
            dead = (await cluster.status())["dead"]
            assert sorted((each["key"], each["pool"], each["can_retry"]) for each in dead) == [
                (key, "skills", True) for key in keys
            ]
            await cluster.drop(keys[0])
            await cluster.retry(keys[1])
            status = await cluster.status()
            assert (status["dead"], status["pools"][0]["waiting"]) == ([], 1)
            with pytest.raises(NotFound):
                await cluster.retry(keys[0])

    owning(broker, given_up, ack_wait=1.0)


async def takes_and_leaves(client: Any, queue: Any) -> None:
    """Takes tasks and acknowledges none, until its connection is closed."""
    while not client.is_closed:
        with suppress(nats.errors.Error):
            await queue.fetch(1, timeout=0.5)


def test_the_broker_refuses_a_task_that_another_host_has_submitted(broker: Broker, start: Any, tmp_path: Path) -> None:
    async def twice(held: NatsDispatcher) -> list[Report]:
        other = owner(settings(broker.url))
        try:
            names = [str(await each.submit(task("r", "sleep 0.5"))) for each in (held, other)]
            start("a")
            return list(await asyncio.gather(held.result(names[0]), other.result(names[1])))
        finally:
            await other.close()

    first, second = owning(broker, twice)
    assert first == second and first.state == "success"
    assert (tmp_path / "r").read_text().splitlines() == ["a begun", "a ended"]


def test_an_order_that_succeeded_is_not_done_again_and_one_that_failed_is(
    broker: Broker, start: Any, tmp_path: Path
) -> None:
    start("a")

    async def both(held: NatsDispatcher) -> list[str]:
        return [(await sent(held, task(run, request))).state for run, request in (("good", "sleep 0"), ("bad", "fail"))]

    async def again(held: NatsDispatcher) -> list[list[str]]:
        other = owner(settings(broker.url))
        try:
            return [await both(held), await both(other), await both(other)]
        finally:
            await other.close()

    assert owning(broker, again) == [["success", "error"]] * 3
    assert [(tmp_path / run).read_text().count("begun") for run in ("good", "bad")] == [1, 2]


def test_a_broker_that_is_killed_and_started_again_loses_no_task(broker: Broker, start: Any, tmp_path: Path) -> None:
    start("a")

    async def killed(held: NatsDispatcher) -> list[Report]:
        under_way = str(await held.submit(task("r1", "sleep 2")))
        await noted(tmp_path / "r1", "a begun")
        waiting = str(await held.submit(task("r2", "sleep 0")))
        broker.kill()
        await asyncio.sleep(0.5)
        broker.start()
        return list(await asyncio.gather(held.result(under_way), held.result(waiting)))

    assert [report.state for report in owning(broker, killed)] == ["success", "success"]


def test_a_task_that_a_killed_broker_forgot_to_have_delivered_is_not_begun_twice(
    broker: Broker, start: Any, tmp_path: Path
) -> None:
    start("a")

    async def forgotten(held: NatsDispatcher) -> Report:
        name = str(await held.submit(task("r", "sleep 4")))
        await noted(tmp_path / "r", "a begun")
        broker.kill()
        for state in (broker.folder / "jetstream").rglob("o.dat"):
            state.unlink()
        start("b")
        broker.start()
        return await held.result(name)

    assert owning(broker, forgotten).summary == "a"
    assert lines_of(tmp_path / "r") == ["a begun", "a ended"]


def test_streams_that_are_gone_are_made_again_and_their_tasks_sent_again(
    broker: Broker, start: Any, tmp_path: Path
) -> None:
    async def wiped(held: NatsDispatcher) -> list[Report]:
        waiting = str(await held.submit(task("r", "sleep 0")))
        broker.kill()
        broker.wipe()
        broker.start()
        start("a")
        first = await held.result(waiting)
        return [first, await sent(held, task("r2", "sleep 0"))]

    assert [report.state for report in owning(broker, wiped)] == ["success", "success"]


def test_a_broker_that_is_gone_when_a_task_is_submitted_is_said(broker: Broker) -> None:
    broker.kill()

    async def gone(held: NatsDispatcher) -> None:
        with pytest.raises(FetchFailed, match="cannot be reached"):
            await held.submit(task("r", "sleep 0"))

    owning(broker, gone)


@pytest.fixture
def link(broker: Broker) -> Iterator[Link]:
    with link_to(broker.port) as opened:
        yield opened


def url_of(link: Link) -> str:
    return f"nats://127.0.0.1:{link.port}"


def test_a_worker_that_is_cut_off_stops_its_task_before_another_one_gets_it(
    broker: Broker, link: Link, start: Any, tmp_path: Path
) -> None:
    async def cut(held: NatsDispatcher) -> Report:
        start("a", url=url_of(link))
        name = str(await held.submit(task("r", "sleep 6")))
        await noted(tmp_path / "r", "a begun")
        link.is_cut = True  # for 9 seconds
        start("b")
        report = await held.result(name)
        link.is_cut = False
        return report

    report = owning(broker, cut)
    assert (report.state, report.summary) == ("success", "b")
    lines = (tmp_path / "r").read_text().splitlines()
    assert lines[:3] == ["a begun", "a stopped", "b begun"]  # never two at once


def test_a_link_that_is_cut_for_a_moment_does_not_stop_a_task(
    broker: Broker, link: Link, start: Any, tmp_path: Path
) -> None:
    async def cut(held: NatsDispatcher) -> Report:
        start("a", url=url_of(link))
        name = str(await held.submit(task("r", "sleep 4")))
        await noted(tmp_path / "r", "a begun")
        link.is_cut = True
        await asyncio.sleep(0.5)
        link.is_cut = False
        return await held.result(name)

    assert owning(broker, cut).summary == "a"
    assert (tmp_path / "r").read_text().splitlines() == ["a begun", "a ended"]


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_report_that_was_ready_while_the_worker_was_cut_off_comes_later_and_nothing_is_done_twice(
    broker: Broker, link: Link, start: Any, tmp_path: Path, is_killed: bool
) -> None:
    async def cut(held: NatsDispatcher) -> Report:
        first = start("a", url=url_of(link))
        name = str(await held.submit(task("r", "sleep 0.7")))
        await noted(tmp_path / "r", "a begun")
        link.is_cut = True
        await noted(tmp_path / "r", "a ended")
        await asyncio.sleep(2.2)  # for longer than the limit of acknowledgement
        if is_killed:
            first.kill()
        link.is_cut = is_killed
        start("a" if is_killed else "b")
        return await held.result(name)

    assert owning(broker, cut, ack_wait=2.0).summary == "a"
    assert lines_of(tmp_path / "r") == ["a begun", "a ended"]
    assert list((tmp_path / "state-a" / "reports").iterdir()) == []


def test_a_worker_that_was_frozen_past_its_limit_does_not_change_the_report(
    broker: Broker, start: Any, tmp_path: Path
) -> None:
    frozen = start("a")

    async def woken(held: NatsDispatcher) -> tuple[Report, Report]:
        name = str(await held.submit(task("r", "sleep 0.5")))
        await noted(tmp_path / "r", "a begun")
        os.kill(frozen.pid, signal.SIGSTOP)
        start("b")
        report = await held.result(name)
        os.kill(frozen.pid, signal.SIGCONT)
        await asyncio.sleep(1.5)
        other = owner(settings(broker.url))
        try:
            return report, await sent(other, task("r", "sleep 0.5"))
        finally:
            await other.close()

    first, second = owning(broker, woken, ack_wait=1.5)
    assert first.summary == "b" and second == first


def test_a_task_under_way_on_another_host_is_cancelled(broker: Broker, start: Any, tmp_path: Path) -> None:
    start("a")

    async def cancelled(held: NatsDispatcher) -> Report:
        name = str(await held.submit(task("r", "sleep 30")))
        await noted(tmp_path / "r", "a begun")
        await held.cancel(name)
        report = await held.result(name)
        await noted(tmp_path / "r", "a stopped")
        return report

    report = owning(broker, cancelled)
    assert (report.state, report.exit_code) == ("error", 130)


def test_a_task_that_no_worker_takes_is_a_time_out_and_leaves_the_queue(broker: Broker) -> None:
    async def alone(held: NatsDispatcher) -> tuple[Report, int]:
        report = await sent(held, task("r", "sleep 0", timeout=1))
        async with Cluster.opened(settings(broker.url)) as cluster:
            return report, (await cluster.status())["pools"][0]["waiting"]

    report, waiting = owning(broker, alone)
    assert (report.state, report.data["limit"], report.exit_code, waiting) == ("timeout", 1, 124, 0)


def test_a_full_queue_refuses_a_further_task(broker: Broker) -> None:
    async def full(held: NatsDispatcher) -> None:
        for number in range(2):
            await held.submit(task(f"r{number}", "sleep 0"))
        with pytest.raises(Busy, match="tasks wait"):
            await held.submit(task("r2", "sleep 0"))

    owning(broker, full, bound=2)


def test_a_worker_whose_skill_has_other_bytes_does_not_run_it(broker: Broker, start: Any, tmp_path: Path) -> None:
    start("a", "sha256:2")

    async def refused(held: NatsDispatcher) -> Report:
        return await sent(held, task("r", "sleep 0"))

    report = owning(broker, refused, "sha256:1")
    assert (report.state, report.data["code"], report.exit_code) == ("error", "integrity", 6)
    assert not (tmp_path / "r").exists()


def test_a_task_goes_on_to_the_worker_that_has_the_bytes(broker: Broker, start: Any, tmp_path: Path) -> None:
    start("a", "sha256:2")

    async def passed_on(held: NatsDispatcher) -> Report:
        name = str(await held.submit(task("r", "sleep 0")))
        await asyncio.sleep(0.3)
        start("b", "sha256:1")
        return await held.result(name)

    report = owning(broker, passed_on, "sha256:1")
    assert report.summary in {"b"} or report.exit_code == 6  # `a` may have taken all three deliveries before
    assert "a begun" not in ((tmp_path / "r").read_text() if (tmp_path / "r").exists() else "")


def test_a_packet_that_cannot_be_read_ends_at_once(broker: Broker, start: Any) -> None:
    start("a")

    async def unreadable(held: NatsDispatcher) -> list[Any]:
        await sent(held, task("r", "sleep 0"))
        client = await nats.connect(broker.url)
        try:
            await client.jetstream().publish(f"nav.task.skills.{'0' * 64}", b"{not a packet")
            async with Cluster.opened(settings(broker.url)) as cluster:
                dead = await until(lambda: dead_of(cluster))
                with pytest.raises(NotFoundError):
                    await client.jetstream().get_last_msg(names.TASKS, f"nav.task.skills.{'0' * 64}")
                return list(dead)
        finally:
            await client.close()

    (dead,) = owning(broker, unreadable)
    assert "cannot be read" in dead["reason"] and not dead["can_retry"]


async def left_over(broker: Broker, packet: Packet) -> None:
    """Stores the packet's task, whose owner is gone at once."""
    held = owner(settings(broker.url))
    await held.submit(packet)
    await held.close()


def test_a_task_whose_time_is_over_is_not_begun_and_one_that_is_sent_again_is(
    broker: Broker, start: Any, tmp_path: Path
) -> None:
    async def over(held: NatsDispatcher) -> tuple[Report, list[Any]]:
        await left_over(broker, task("r", "sleep 0", timeout=1))
        again = task("r", "sleep 0", timeout=20)
        await asyncio.sleep(1.1)
        name = str(await held.submit(again))  # the broker keeps the first one of the two
        assert not (tmp_path / "r").exists()
        start("a")
        async with Cluster.opened(settings(broker.url)) as cluster:
            return await held.result(name), list(await dead_of(cluster))

    report, dead = owning(broker, over)
    assert (report.state, dead) == ("success", [])
    assert lines_of(tmp_path / "r") == ["a begun", "a ended"]


def test_a_drained_worker_ends_its_task_and_takes_no_other(broker: Broker, start: Any, tmp_path: Path) -> None:
    first = start("a")

    async def drained(held: NatsDispatcher) -> list[Report]:
        under_way = str(await held.submit(task("r1", "sleep 2.5")))
        await noted(tmp_path / "r1", "a begun")
        async with Cluster.opened(settings(broker.url)) as cluster:
            assert await cluster.drain("a") == ["a"]
            (worker,) = (await cluster.status())["workers"]
            assert (worker["running"], worker["ending"]) == (1, True)
            with pytest.raises(NotFound):
                await cluster.drain("no-such-host")
        waiting = str(await held.submit(task("r2", "sleep 0")))
        reports = [await held.result(under_way)]
        assert await asyncio.to_thread(first.wait, 5) == 0
        assert not (tmp_path / "r2").exists()
        start("b")
        return [*reports, await held.result(waiting)]

    assert [report.summary for report in owning(broker, drained)] == ["a", "b"]


def test_a_dispatcher_goes_on_in_another_event_loop(broker: Broker, start: Any) -> None:
    start("a")
    held = owner(settings(broker.url))

    async def together(name: str) -> list[str]:
        packets = [task(f"{name}{number}", "nothing") for number in range(3)]
        try:
            return [report.state for report in await asyncio.gather(*(sent(held, packet) for packet in packets))]
        finally:
            await held.close()

    assert [asyncio.run(together(name)) for name in "xy"] == [["success"] * 3] * 2


def test_an_owner_that_was_cut_off_gets_the_report_that_came_meanwhile(link: Link, start: Any, tmp_path: Path) -> None:
    start("a")

    async def cut() -> Report:
        held = owner(settings(url_of(link)))
        try:
            name = str(await held.submit(task("r", "sleep 0.3")))
            await noted(tmp_path / "r", "a begun")
            link.is_cut = True
            waiting = asyncio.ensure_future(held.result(name))
            await noted(tmp_path / "r", "a ended")
            await asyncio.sleep(0.3)
            link.is_cut = False
            return await waiting
        finally:
            await held.close()

    assert asyncio.run(cut()).summary == "a"
    assert lines_of(tmp_path / "r") == ["a begun", "a ended"]


@pytest.mark.parametrize("shift", [-3600, 3600])
def test_a_worker_whose_clock_is_an_hour_wrong_begins_what_is_in_time_and_nothing_else(
    broker: Broker, start: Any, tmp_path: Path, shift: int
) -> None:
    async def wrong(held: NatsDispatcher) -> Report:
        await left_over(broker, task("late", "sleep 0", timeout=1))
        await asyncio.sleep(1.1)
        start("a", shift=shift)
        return await sent(held, task("r", "sleep 4", timeout=20))  # for longer than the limit of acknowledgement

    assert owning(broker, wrong).summary == "a"
    assert lines_of(tmp_path / "r") == ["a begun", "a ended"]
    assert not (tmp_path / "late").exists()


def small(folder: Path) -> Broker:
    """A broker whose disk has 300 kB."""
    configuration = folder / "nats.conf"
    configuration.write_text(f'jetstream: {{ store_dir: "{folder / "store"}", max_file_store: 300K }}\n')
    return Broker(folder, configuration).start()


async def fill(client: Any) -> None:
    """Fills the broker's disk with another stream."""
    jetstream = client.jetstream(timeout=3)
    await jetstream.add_stream(name="OTHER", subjects=["other"])
    for size in (10_000, 100):
        with suppress(nats.js.errors.APIError):
            for _ in range(1_000):
                await jetstream.publish("other", bytes(size))


def test_an_order_to_a_broker_whose_disk_is_full_is_refused_and_later_done(start: Any, tmp_path: Path) -> None:
    small_broker = small(tmp_path)

    async def full(held: NatsDispatcher) -> Report:
        client = await nats.connect(small_broker.url)
        try:
            await fill(client)
            with pytest.raises(StorageFailed, match="the disk of the broker") as failed:
                await held.submit(task("r", "sleep 0"))
            assert failed.value.data["kind"] == "full"
            await client.jetstream().delete_stream("OTHER")
            start("a", url=small_broker.url)
            return await sent(held, task("r", "sleep 0"))
        finally:
            await client.close()

    try:
        assert owning(small_broker, full).state == "success"
    finally:
        small_broker.kill()
    assert lines_of(tmp_path / "r") == ["a begun", "a ended"]


def test_a_report_for_which_the_broker_has_no_room_comes_when_it_has(start: Any, tmp_path: Path) -> None:
    small_broker = small(tmp_path)

    async def full(held: NatsDispatcher) -> Report:
        start("a", url=small_broker.url)
        client = await nats.connect(small_broker.url)
        try:
            name = str(await held.submit(task("r", "sleep 1")))
            await noted(tmp_path / "r", "a begun")
            await fill(client)
            waiting = asyncio.ensure_future(held.result(name))
            await noted(tmp_path / "r", "a ended")
            await asyncio.sleep(4)  # for longer than the limit of acknowledgement
            assert not waiting.done()
            await client.jetstream().delete_stream("OTHER")
            return await waiting
        finally:
            await client.close()

    try:
        assert owning(small_broker, full).summary == "a"
    finally:
        small_broker.kill()
    assert lines_of(tmp_path / "r") == ["a begun", "a ended"]


class LaterContext(Context, frozen=True, kw_only=True):
    """As a later version may have it."""

    trace: str = "x"


class LaterPacket(Packet, frozen=True, kw_only=True):
    limits: Mapping[str, int] = msgspec.field(default_factory=lambda: {"memory": 3})


def test_workers_are_replaced_one_after_another_while_a_newer_owner_sends_what_they_do_not_know(
    broker: Broker, start: Any, tmp_path: Path
) -> None:
    def later(number: int) -> Packet:
        known = task(f"r{number}", "sleep 0.4")
        context = LaterContext(**msgspec.structs.asdict(known.context))
        fields = {name: getattr(known, name) for name in Packet.__struct_fields__ if name != "context"}
        packet = LaterPacket(**fields, context=context)
        assert "limits" in packet.to_yaml() and "trace" in packet.to_yaml()
        return packet

    async def rolling(held: NatsDispatcher) -> list[Report]:
        older = start("old")
        names = [str(await held.submit(later(number))) for number in range(6)]
        await noted(tmp_path / "r0", "old begun")
        start("new")
        async with Cluster.opened(settings(broker.url)) as cluster:
            await cluster.drain("old")
        reports = list(await asyncio.gather(*map(held.result, names)))
        assert await asyncio.to_thread(older.wait, 20) == 0
        return reports

    reports = owning(broker, rolling)
    assert {report.summary for report in reports} == {"old", "new"}
    for number, report in enumerate(reports):
        assert lines_of(tmp_path / f"r{number}") == [f"{report.summary} begun", f"{report.summary} ended"]


def test_what_a_worker_of_another_version_says_is_understood(broker: Broker) -> None:
    async def said(held: NatsDispatcher) -> tuple[Report, list[Any]]:
        packet = task("r", "sleep 0")
        name = str(await held.submit(packet))
        client = await nats.connect(broker.url)
        try:

            async def answer(message: Any) -> None:
                await message.respond(
                    b'{"name": "old", "pools": ["skills"], "slots": 1, "running": 0, "done": 1, "x": 1}'
                )

            await client.subscribe(names.HOSTS, cb=answer)
            await client.publish(names.subject_of(names.EVENTS, packet), b"a word of a later version")
            meta = {"agent": "skills", "time": 0.1, "ts": "2026-01-01T00:00:00Z", "later": True}
            report = {"state": "success", "summary": "done", "meta": meta, "data": {}, "recoverable": False, "later": 1}
            await client.jetstream().publish(
                names.subject_of(names.REPORT, packet), json.dumps(report).encode(), headers={"Nav-Later": "1"}
            )
            async with Cluster.opened(settings(broker.url)) as cluster:
                return await held.result(name), list((await cluster.status())["workers"])
        finally:
            await client.close()

    report, workers = owning(broker, said)
    assert (report.state, report.summary) == ("success", "done")
    assert [(each["name"], each["ending"], each["host"]) for each in workers] == [("old", False, "")]


def test_the_doctor_and_so_the_page_show_workers_pools_and_what_was_given_up(
    broker: Broker, start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAVIGATOR_NATS_URL", broker.url)
    (tmp_path / "project" / "mybox").mkdir(parents=True)

    def shown() -> list[tuple[str, str]]:
        project = Project(tmp_path / "project")
        return [(found.state, found.detail) for found in findings(project) if found.what == "hosts"]

    assert shown() == [("ok", "0 tasks given up")]
    start("a")

    async def failed(held: NatsDispatcher) -> None:
        assert (await sent(held, task("r", "nothing"))).state == "success"
        client = await nats.connect(broker.url)
        await client.jetstream().publish(f"nav.task.skills.{'0' * 64}", b"{not a packet")
        await client.close()
        async with Cluster.opened(settings(broker.url)) as cluster:
            await until(lambda: dead_of(cluster))

    owning(broker, failed)
    *fine, (state, problem) = shown()
    assert fine == [
        ("ok", "worker a: skills, 0 under way, 1 done"),
        ("ok", "pool skills: 0 waiting, 0 under way"),
        ("ok", "1 task given up"),
    ]
    assert state == "damaged" and problem.startswith("given up: ") and "cannot be read" in problem
    broker.kill()
    ((state, problem),) = [
        (one.state, one.detail) for one in findings(Project(tmp_path / "project")) if "hosts" in one.what
    ]
    assert state == "damaged" and "cannot be reached" in problem
