"""A worker that does not have a skill fetches it by its digest from the broker's object store, and runs no other bytes."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nats.js import JetStreamContext

from cli.support import type_a
from dispatch.nats_broker import Broker
from dispatch.nats_parts import settings
from dispatch.orders import order
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.commands import dispatch_ports
from navigator_kernel.errors import IntegrityMismatch
from navigator_kernel.values.packet import Report
from navigator_nats import broker as names
from navigator_nats import skills
from navigator_nats.dispatcher import NatsDispatcher
from navigator_nats.rights import write_configuration
from navigator_nats.worker import Worker
from tables import cases

pytestmark = [pytest.mark.ci, pytest.mark.requirement("X-6")]
SKILL = {**type_a("draw", "import part\nprint(part.WORD)\n"), "part.py": "WORD = 'drawn'\n"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    write_configuration(tmp_path / "keys", ["owner"], ["box=skills", "other=worker"], 4222)
    running = Broker(tmp_path, tmp_path / "keys" / "nats.conf").start()
    yield running
    running.kill()


def host(broker: Broker, name: str) -> names.Settings:
    return settings(broker.url, seed=str(broker.folder / "keys" / f"{name}.nk"))


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """A host's project, with or without a skill of these files."""

    def made(name: str, files: dict[str, str] | None = None) -> Path:
        (tmp_path / name / "mybox").mkdir(parents=True)
        for path, text in (files or {}).items():
            file = tmp_path / name / ".claude/skills/draw" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path / name

    return made


def carried_out(
    broker: Broker,
    at: Path,
    on: Path,
    *,
    agrees: bool = True,
    times: int = 1,
    meanwhile: Callable[[], object] = lambda: None,
    **required: Any,
) -> list[Report]:
    """The reports of `times` orders that the owner of project `at` sends to a worker in project `on`, which begins after
    `meanwhile`."""

    async def carried() -> list[Report]:
        sender = NatsDispatcher(dispatch_ports(at), host(broker, "owner"))
        working = Worker(
            ports=dispatch_ports(on), settings=host(broker, "box"), name="box", pools=("skills",), agrees=agrees
        )
        try:
            packets = [order(target="skill:draw", run=f"r{number}", **required) for number in range(times)]
            sent = [str(await sender.submit(packet)) for packet in packets]
            meanwhile()
            serving = asyncio.ensure_future(working.run())
            reports = [await sender.result(name) for name in sent]
            await working.stop()
            await serving
            return reports
        finally:
            await sender.close()

    return asyncio.run(carried())


def test_a_worker_without_a_skill_fetches_it_and_keeps_it(broker: Broker, project: Any) -> None:
    reports = carried_out(broker, project("a", SKILL), project("b"), times=2)
    assert [(report.state, "drawn" in str(report.data)) for report in reports] == [("success", True)] * 2
    assert not (broker.folder / "b" / ".claude").exists()


def test_a_worker_with_other_bytes_runs_the_owners_and_its_own_stay(broker: Broker, project: Any) -> None:
    other = {**SKILL, "part.py": "WORD = 'other'\n"}
    (report,) = carried_out(broker, project("a", SKILL), project("b", other))
    assert report.state == "success" and "drawn" in str(report.data)
    assert (broker.folder / "b/.claude/skills/draw/part.py").read_text() == other["part.py"]


def test_a_worker_that_did_not_agree_in_advance_asks(broker: Broker, project: Any) -> None:
    (report,) = carried_out(broker, project("a", SKILL), project("b"), agrees=False)
    assert report.state == "pending" and report.subject.startswith("type_a:draw@")


WRONG = [
    b"no archive",
    zlib.compress(msgspec.msgpack.encode([("SKILL.md", 0, SKILL["SKILL.md"].encode())])),
    zlib.compress(msgspec.msgpack.encode([("../../escaped", 0, b"")])),
    zlib.compress(msgspec.msgpack.encode([("/escaped", 0, b"")])),
    zlib.compress(msgspec.msgpack.encode([("__pycache__/part.cpython-311.pyc", 0, b"")])),
]


@pytest.mark.parametrize("packed", WRONG)
def test_other_bytes_than_the_digest_says_are_refused_and_leave_nothing(
    broker: Broker, project: Any, packed: bytes
) -> None:
    here, there = dispatch_ports(project("a", SKILL)), dispatch_ports(project("b"))
    packet = order(target="skill:draw")
    digest = here.digest(packet)

    async def refused() -> None:
        client = await names.connect(host(broker, "owner"), "a")
        try:
            jetstream = client.jetstream(timeout=3)
            await skills.put(jetstream, here, packet, digest)
            await (await jetstream.object_store(skills.BUCKET)).put(digest, packed)
            with pytest.raises(IntegrityMismatch):
                await skills.fetched(jetstream, there, packet, digest)
        finally:
            await client.close()

    asyncio.run(refused())
    assert [path for path in there.project.state.rglob("*") if path.is_file() and "fetched" in path.parts] == []
    assert not list(broker.folder.rglob("escaped"))


async def lose_the_bucket(jetstream: JetStreamContext, _digest: str) -> None:
    await jetstream.delete_object_store(skills.BUCKET)


async def lose_the_chunks(jetstream: JetStreamContext, _digest: str) -> None:
    await jetstream.purge_stream(skills.STREAM, subject=f"$O.{skills.BUCKET}.C.>")


def replace_by(packed: bytes) -> Callable[[JetStreamContext, str], Awaitable[None]]:
    async def replace(jetstream: JetStreamContext, digest: str) -> None:
        await (await jetstream.object_store(skills.BUCKET)).put(digest, packed)

    return replace


@pytest.mark.parametrize(
    "spoil", [lose_the_bucket, lose_the_chunks, *map(replace_by, WRONG[:2])], ids=["bucket", "chunks", "text", "files"]
)
@pytest.mark.parametrize("when", ["before the order", "before a worker takes it"])
def test_bytes_that_the_broker_lost_or_that_are_wrong_are_put_again_by_the_owner(
    broker: Broker, project: Any, spoil: Callable[[JetStreamContext, str], Awaitable[None]], when: str
) -> None:
    here, there = dispatch_ports(project("a", SKILL)), dispatch_ports(project("b"))
    packet = order(target="skill:draw")
    digest = here.digest(packet)

    async def sent() -> Report:
        sender = NatsDispatcher(here, host(broker, "owner"))
        working = Worker(ports=there, settings=host(broker, "box"), name="box", pools=("skills",), agrees=True)
        client = await names.connect(host(broker, "owner"), "a")
        try:
            jetstream = client.jetstream(timeout=3)
            if when == "before the order":
                await skills.put(jetstream, here, packet, digest)
                await spoil(jetstream, digest)
            name = str(await sender.submit(packet))
            waiting = asyncio.ensure_future(sender.result(name))
            if when != "before the order":
                await spoil(jetstream, digest)
            serving = asyncio.ensure_future(working.run())
            report = await waiting
            await working.stop()
            await serving
            return report
        finally:
            await sender.close()
            await client.close()

    report = asyncio.run(sent())
    assert report.state == "success" and "drawn" in str(report.data), report


def test_a_skill_that_is_there_as_it_should_be_is_not_put_again(broker: Broker, project: Any) -> None:
    here, packet = dispatch_ports(project("a", SKILL)), order(target="skill:draw")

    async def twice() -> list[int]:
        client = await names.connect(host(broker, "owner"), "a")
        try:
            jetstream, numbers = client.jetstream(timeout=3), []
            for _ in range(2):
                await skills.put(jetstream, here, packet, here.digest(packet))
                numbers.append((await jetstream.stream_info(skills.STREAM)).state.last_seq)
            return numbers
        finally:
            await client.close()

    first, second = asyncio.run(twice())
    assert first == second


def test_a_broker_that_has_no_such_skill_is_said(broker: Broker, project: Any) -> None:
    there = dispatch_ports(project("b"))

    async def missing() -> None:
        client = await names.connect(host(broker, "owner"), "a")
        try:
            jetstream = client.jetstream(timeout=3)
            for _ in range(2):  # without the bucket, and with it
                with pytest.raises(IntegrityMismatch, match="no owner has put"):
                    await skills.fetched(jetstream, there, order(target="skill:draw"), f"sha256:{1:064x}")
                await jetstream.create_object_store(skills.BUCKET)
        finally:
            await client.close()

    asyncio.run(missing())


def test_a_configuration_without_rights_to_skills_works_as_before(broker: Broker, project: Any) -> None:
    written = broker.folder / "keys" / "nats.conf"
    lines = [line for line in written.read_text().splitlines() if skills.BUCKET not in line]
    text = "\n".join(lines)
    assert text != written.read_text().rstrip()
    broker.kill()
    written.write_text(text + "\n")
    broker.start()
    (report,) = carried_out(broker, project("a", SKILL), project("b", SKILL))
    assert report.state == "success"


@cases("target, digest")
def test_a_digest_or_a_name_that_leads_elsewhere_is_refused_before_anything_is_read_or_removed(
    project: Any, target: str, digest: str
) -> None:
    on = project("b", SKILL)
    with pytest.raises(IntegrityMismatch):
        asyncio.run(skills.fetched(None, dispatch_ports(on), order(target=target), digest))  # type: ignore[arg-type]  # no broker is asked
    assert (on / ".claude/skills/draw/SKILL.md").is_file()


def test_files_that_the_digest_leaves_out_do_not_travel(broker: Broker, project: Any) -> None:
    at, on = project("a", SKILL), project("b")
    skill = at / ".claude/skills/draw"
    (skill / "__pycache__").mkdir()
    (skill / "__pycache__/part.cpython-311.pyc").write_bytes(b"other code")
    (skill / "keys.env.bak").write_text("TOKEN=1")
    (report,) = carried_out(broker, at, on)
    assert report.state == "success" and "drawn" in str(report.data)
    brought = {path.name for path in dispatch_ports(on).project.state.rglob("fetched/*/draw/**/*")}
    assert brought == {"SKILL.md", "part.py", "run.py"}


ADDS = """\
import os, sys
path = os.path.join(os.environ["NAVIGATOR_PROJECT"], sys.argv[1])
data = open(path, "rb").read()
os.makedirs("parts", exist_ok=True)
with open("parts/sum.bin", "wb") as file:
    file.write(data[::-1])
print(sum(data))
"""
READS = {
    "SKILL.md": "---\nname: draw\ndescription: adds up\ncommand: python ${SKILL_ROOT}/run.py {file}\nrequired_params: "
    """'[{"name": "file", "prompt": "the file", "validation": "file_exists"}]'\n---\n# draw\n\nRuns.\n""",
    "run.py": ADDS,
}
DATA = bytes(range(250)) * 20_000  # 5 MB


@pytest.mark.parametrize("skill_is_there", [False, True])
def test_a_file_that_an_order_names_goes_to_the_worker_and_what_the_skill_made_comes_back(
    broker: Broker, project: Any, skill_is_there: bool
) -> None:
    at, on = project("a", READS), project("b", READS if skill_is_there else None)
    (at / "in").mkdir()
    (at / "in/data.bin").write_bytes(DATA)
    (at / "in/other.bin").write_bytes(b"not named")
    (report,) = carried_out(broker, at, on, file="in/data.bin")
    assert report.state == "success", report
    assert (report.data["output"], report.data["files"]) == (sum(DATA), ["mybox/workspace/r0/parts/sum.bin"])
    assert (at / "mybox/workspace/r0/parts/sum.bin").read_bytes() == DATA[::-1]
    left = [path.name for path in broker.folder.rglob("*.bin") if not path.is_relative_to(at)]
    assert left == []
    (wrote,) = (one for one in Project(at, agents=False).audit.entries() if one.event == "wrote")
    assert wrote.facts["path"] == "mybox/workspace/r0/parts/sum.bin"


def test_a_file_that_changed_after_the_order_was_sent_is_not_used(broker: Broker, project: Any) -> None:
    at, on = project("a", READS), project("b", READS)
    (at / "data.bin").write_bytes(b"first")

    def changed() -> None:
        (at / "data.bin").write_bytes(b"other")

    (report,) = carried_out(broker, at, on, meanwhile=changed, file="data.bin")
    assert (report.state, report.data["code"]) == ("error", "integrity")
    assert not (at / "mybox/workspace").exists()
