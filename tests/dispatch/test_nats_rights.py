"""What each host may do at a broker with the configuration that `navigator cluster init` writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from dispatch.nats_broker import Broker
from dispatch.nats_parts import owner, ports_of, settings, worker
from dispatch.orders import order
from navigator_kernel.errors import FetchFailed, UsageProblem
from navigator_kernel.values.packet import Meta, Report, report_to_dict
from navigator_nats import broker as names
from navigator_nats import skills
from navigator_nats.dispatcher import _read
from navigator_nats.inspection import Cluster
from navigator_nats.rights import new_nkey, write_configuration

pytestmark = [pytest.mark.ci, pytest.mark.wide]


class Echo:
    name, aliases, description = "skills", (), "Repeats"

    async def handle(self, prompt: str) -> object:
        return {"state": "success", "data": {"bytes": len(prompt)}}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    write_configuration(tmp_path / "keys", ["owner"], ["box=skills", "other=mcp.github,worker"], 4222)
    held = Broker(tmp_path, tmp_path / "keys" / "nats.conf").start()
    yield held
    held.kill()


def host(broker: Broker, name: str, **given: Any) -> names.Settings:
    return settings(broker.url, seed=str(broker.folder / "keys" / f"{name}.nk"), **given)


def test_an_owner_sends_a_task_and_a_worker_of_its_pool_reports(broker: Broker) -> None:
    async def sent() -> tuple[Report, Any]:
        sender = owner(host(broker, "owner"))
        working = worker(host(broker, "box"), {"skills": Echo()}, broker.folder / "state", name="box")
        serving = asyncio.ensure_future(working.run())
        try:
            report = await sender.result(str(await sender.submit(order())))
            async with Cluster.opened(host(broker, "owner")) as cluster:
                return report, await cluster.status()
        finally:
            await working.stop()
            await serving
            await sender.close()

    report, status = asyncio.run(sent())
    assert report.state == "success"
    assert [(each["name"], each["pools"], each["done"]) for each in status["workers"]] == [("box", ["skills"], 1)]
    assert (status["missing"], status["dead"]) == ([], [])


@pytest.mark.requirement("X-6")
def test_tenants_of_one_broker_see_nothing_of_each_other(tmp_path: Path) -> None:
    write_configuration(tmp_path / "keys", ["shop/desk", "blog/desk"], ["shop/box", "blog/box"], 4222)
    broker = Broker(tmp_path, tmp_path / "keys" / "nats.conf").start()

    async def sent() -> tuple[Report, Report, Any]:
        senders = [owner(host(broker, f"{tenant}/desk")) for tenant in ("shop", "blog")]
        working = worker(host(broker, "shop/box"), {"skills": Echo()}, tmp_path / "state", name="box")
        serving = asyncio.ensure_future(working.run())
        try:
            tasks = [str(await sender.submit(order(timeout=2))) for sender in senders]
            reports = [await sender.result(task) for sender, task in zip(senders, tasks, strict=True)]
            async with Cluster.opened(host(broker, "blog/desk")) as cluster:
                return reports[0], reports[1], (await cluster.status())["workers"]
        finally:
            await working.stop()
            await serving
            for sender in senders:
                await sender.close()

    try:
        shop, blog, workers = asyncio.run(sent())
    finally:
        broker.kill()
    assert (shop.state, blog.state, workers) == ("success", "timeout", [])


async def refused(broker: Broker, name: str, act: Callable[[Client], Awaitable[Any]]) -> str:
    """What the broker says when the host does something; empty if it allows it."""
    said: list[str] = []

    async def heard(error: Exception) -> None:
        said.append(str(error))

    seed = (broker.folder / "keys" / f"{name}.nk").read_text().strip()
    inbox = names.inbox_of(seed)
    client = await nats.connect(broker.url, nkeys_seed_str=seed, inbox_prefix=inbox, error_cb=heard)
    try:
        await act(client)
        await client.flush()
        for _ in range(100):
            if said:
                break
            await asyncio.sleep(0.01)
        return " ".join(said)
    finally:
        await client.close()


def publishing(subject: str, body: bytes = b"") -> Callable[[Client], Awaitable[Any]]:
    return lambda client: client.publish(subject, body, reply=client.new_inbox())


def reading(subject: str) -> Callable[[Client], Awaitable[Any]]:
    return lambda client: client.subscribe(subject)


STREAM = json.dumps({"name": "MINE", "subjects": ["mine"]}).encode()


@pytest.mark.parametrize(
    ("name", "act", "is_allowed"),
    [
        ("box", publishing("nav.task.skills.k", b"an order"), False),
        ("box", publishing("nav.cancel.k"), False),
        ("box", publishing("$JS.API.STREAM.CREATE.MINE", STREAM), False),
        ("box", publishing("$JS.API.STREAM.PURGE.NAV_TASKS"), False),
        ("box", publishing("$JS.API.STREAM.DELETE.NAV_TASKS"), False),
        ("box", publishing("$JS.API.CONSUMER.CREATE.NAV_REPORTS.mine"), False),
        ("box", publishing("$JS.API.CONSUMER.MSG.NEXT.NAV_TASKS.worker"), False),
        ("box", publishing("$JS.API.DIRECT.GET.NAV_REPORTS.nav.report.k"), False),
        ("box", publishing("$JS.API.STREAM.MSG.GET.NAV_TASKS", b'{"seq": 1}'), False),
        ("box", reading("nav.report.>"), False),
        ("box", reading("nav.task.>"), False),
        ("box", reading("nav.events.>"), False),
        ("box", reading("_INBOX.>"), False),
        ("box", reading(">"), False),
        ("other", publishing("$JS.API.CONSUMER.MSG.NEXT.NAV_TASKS.skills"), False),
        ("other", publishing("$JS.API.CONSUMER.MSG.NEXT.NAV_TASKS.mcp_github"), True),
        ("box", publishing("$JS.API.CONSUMER.MSG.NEXT.NAV_TASKS.skills"), True),
        ("box", publishing("nav.report.skills.k"), True),
        ("box", publishing("nav.report.worker.k"), False),
        ("box", publishing("nav.report.mcp.github.k"), False),
        ("other", publishing("nav.report.mcp.github.k"), True),
        ("other", publishing("nav.events.skills.k"), False),
        ("box", publishing(skills.READ), True),
        ("box", publishing(f"{skills.READ}.$O.{skills.BUCKET}.M.x"), True),
        ("box", publishing(f"$O.{skills.BUCKET}.M.x"), False),
        ("box", publishing(f"$JS.API.STREAM.PURGE.{skills.STREAM}"), False),
        ("box", publishing(f"$JS.API.CONSUMER.CREATE.{skills.STREAM}"), False),
        ("other", publishing(skills.READ), False),
        ("owner", publishing(f"$O.{skills.BUCKET}.M.x"), True),
        ("owner", publishing("nav.task.skills.k"), True),
        ("owner", reading("nav.report.>"), True),
    ],
)
def test_the_broker_allows_a_host_what_it_needs_and_nothing_else(
    broker: Broker, name: str, act: Any, is_allowed: bool
) -> None:
    said = asyncio.run(refused(broker, name, act))
    assert ("permissions violation" not in said.lower()) is is_allowed, said


def test_a_host_without_a_key_of_the_broker_is_refused(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "stranger.nk").write_text(new_nkey()[0])
    for seed in ("", str(tmp_path / "stranger.nk")):
        with pytest.raises(UsageProblem, match="refuses this host"):
            asyncio.run(names.connect(settings(broker.url, seed=seed), "x"))


def test_keys_are_for_the_person_only_and_no_file_is_replaced(tmp_path: Path) -> None:
    written = write_configuration(tmp_path / "new", ["owner"], ["box=skills"], 4222)
    assert [Path(file).stat().st_mode & 0o777 for file in written] == [0o600] * 3
    seeds = {Path(file).read_text().strip() for file in written if file.endswith(".nk")}
    assert len(seeds) == 2 and not any(seed in Path(written[0]).read_text() for seed in seeds)
    with pytest.raises(UsageProblem, match="exists already"):
        write_configuration(tmp_path / "new", ["owner"], [], 4222)


@pytest.mark.parametrize("wrong", ["box=gpu>", "a b=skills", "owner=skills", "box=mcp.*", "shop/box", "a/b/c"])
def test_a_wrong_name_or_pool_is_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(UsageProblem):
        write_configuration(tmp_path / "new", ["owner"], [wrong], 4222)


def test_a_worker_takes_no_orders_from_a_broker_that_knows_nobody() -> None:
    stranger = worker(settings("nats://broker.example:4222"), {"skills": Echo()})
    with pytest.raises(UsageProblem, match="takes orders from anybody"):
        asyncio.run(stranger.run())
    for url in ("nats://127.0.0.1:4222", "nats://[::1]:4222", "tls://ann:hush@broker.example"):
        assert settings(url).knows_strangers


def test_a_broker_is_named_without_its_password() -> None:
    hidden = settings("nats://ann:hush-5Wq@127.0.0.1:9")
    with pytest.raises(FetchFailed) as failed:
        asyncio.run(names.connect(hidden, "x"))
    assert "nats://127.0.0.1:9" in failed.value.message and "hush-5Wq" not in str(failed.value)


def test_a_seed_that_is_not_one_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "wrong.nk").write_text("SUhush-5Wq")
    with pytest.raises(UsageProblem) as failed:
        asyncio.run(names.connect(settings("nats://127.0.0.1:9", seed=str(tmp_path / "wrong.nk")), "x"))
    assert "hush-5Wq" not in str(failed.value)


def test_a_worker_says_that_it_waits_for_its_broker_and_can_be_stopped() -> None:
    lines: list[str] = []

    async def stopped() -> None:
        waiting = worker(settings("nats://127.0.0.1:9"), {"skills": Echo()})
        waiting.tell = lines.append
        running = asyncio.ensure_future(waiting.run())
        while not lines:  # noqa: ASYNC110 - it is told from another task
            await asyncio.sleep(0.02)
        await waiting.stop()
        await asyncio.wait_for(running, 5)

    asyncio.run(stopped())
    assert len(lines) == 1 and lines[0].startswith("waiting for the broker at nats://127.0.0.1:9: ")


@pytest.mark.parametrize(
    ("subject", "is_asked"), [("plan-trip@sha256:1", True), ("undo:r@sha256:1", False), ("plan", False)]
)
def test_a_worker_cannot_ask_for_what_only_the_owner_may(subject: str, is_asked: bool) -> None:
    meta = Meta(agent="someone", time=0, ts="2026-01-01T00:00:00Z")
    asked = Report(state="pending", summary="May I?", meta=meta, data={}, subject=subject)
    report = _read(json.dumps(report_to_dict(asked)).encode(), order(), ports_of({}))
    assert (report.state, report.meta.agent) == ("pending" if is_asked else "error", order().agent)
    assert bool(report.subject) is is_asked
