"""Files between an owner and a worker go by hash: each side gives and takes only what belongs to the task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from dispatch.orders import order
from navigator_kernel.commands import dispatch_ports
from navigator_kernel.errors import IntegrityMismatch, KernelError
from navigator_nats import files

pytestmark = pytest.mark.requirement("X-6")
READS = {
    "SKILL.md": "---\nname: draw\ndescription: adds up\ncommand: python ${SKILL_ROOT}/run.py {file}\nrequired_params: "
    """'[{"name": "file", "prompt": "the file", "validation": "file_exists"}]'\n---\n# draw\n\nRuns.\n""",
    "run.py": "print(1)\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], Path]:
    """A host's project, with the skill."""

    def make(name: str) -> Path:
        (tmp_path / name / "mybox").mkdir(parents=True)
        for path, text in READS.items():
            file = tmp_path / name / ".claude/skills/draw" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path / name

    return make


@pytest.mark.parametrize(
    "question",
    [
        files.WANTED + msgspec.msgpack.encode(("in/other.bin", 0)),
        files.WANTED + msgspec.msgpack.encode(("../secret", 0)),
        files.WANTED + b"\xc1",
        *(
            files.MADE + msgspec.msgpack.encode((name, files.digest_of(b"x"), 1, 0, b"x"))
            for name in ("../../x", "/tmp/x", ".hidden/x", "")
        ),
        files.MADE + msgspec.msgpack.encode(("x", files.digest_of(b"y"), 1, 0, b"x")),
        files.MADE + msgspec.msgpack.encode(("x", files.digest_of(b"x"), 1, 5, b"x")),
        files.MADE + msgspec.msgpack.encode(("x", files.digest_of(b"x"), files.LARGEST + 1, 0, b"x")),
    ],
)
def test_an_owner_gives_and_takes_only_what_belongs_to_the_task(
    project: Callable[[str], Path], question: bytes
) -> None:
    at = project("a")
    (at / "data.bin").write_bytes(b"named")
    (at.parent / "secret").write_bytes(b"secret")
    own = files.OwnFiles.of(dispatch_ports(at), order(target="skill:draw", file="data.bin"))
    assert own.digests == {"data.bin": files.digest_of(b"named")}
    assert own.answer(question) == b""
    assert [path for path in at.rglob("*") if path.name == "x"] == []


def test_a_worker_gives_back_nothing_that_lies_behind_a_link_or_elsewhere(project: Callable[[str], Path]) -> None:
    on, made = project("b"), list[bytes]()
    (on / "mybox/workspace/r0").mkdir(parents=True)
    (on / "key").write_bytes(b"secret")
    (on / "mybox/workspace/r0/own.txt").write_bytes(b"own")
    (on / "mybox/workspace/r0/link.txt").symlink_to(on / "key")
    (on / "mybox/workspace/r0/folder").symlink_to(on)
    paths = ("own.txt", "link.txt", "folder/key", "../../../key", "gone.txt")
    named = {"files": [f"mybox/workspace/r0/{path}" for path in paths]}

    async def ask(question: bytes) -> bytes:
        made.append(question)
        return files.PRESENT

    ports = dispatch_ports(on)
    report = replace(ports.failed(order(target="skill:draw"), ValueError(), 0.0), data=named)
    asyncio.run(files.returned(ask, report, ports, "r0"))
    assert made == [files.MADE + msgspec.msgpack.encode(("own.txt", files.digest_of(b"own"), 3, 0, b"own"))]


def test_files_of_several_pieces_arrive_with_their_bytes(project: Callable[[str], Path], tmp_path: Path) -> None:
    at, on, data = project("a"), project("b"), bytes(range(250)) * 3_000
    (at / "data.bin").write_bytes(data)
    own = files.OwnFiles.of(dispatch_ports(at), order(target="skill:draw", file="data.bin"))
    ports = dispatch_ports(on)

    async def ask(question: bytes) -> bytes:
        return own.answer(question)

    place = ports.project.state / "placed"
    assert not files.has(place, own.digests)
    asyncio.run(files.brought(ask, own.digests, place, ports))
    assert (place / "data.bin").read_bytes() == data and files.has(place, own.digests)

    made = on / "mybox/workspace/run-1/made.bin"
    made.parent.mkdir(parents=True)
    made.write_bytes(data[::-1])
    failed = ports.failed(order(target="skill:draw"), ValueError(), 0.0)
    report = replace(failed, data={"files": ["mybox/workspace/run-1/made.bin"]})
    for _ in range(2):  # a worker that was killed gives it again
        asyncio.run(files.returned(ask, report, ports, "run-1"))
        assert (at / "mybox/workspace/run-1/made.bin").read_bytes() == data[::-1]


@pytest.mark.parametrize("name", ["data.bin", "../data.bin", ".hidden", "/tmp/data.bin"])
def test_a_worker_uses_no_other_bytes_and_writes_nowhere_else(project: Callable[[str], Path], name: str) -> None:
    on = project("b")

    async def ask(_question: bytes) -> bytes:
        return b"other"

    with pytest.raises(IntegrityMismatch):
        asyncio.run(files.brought(ask, {name: files.digest_of(b"data")}, on, dispatch_ports(on)))
    assert not (on / name).exists()


def test_an_order_with_too_large_files_is_refused_before_it_is_sent(project: Callable[[str], Path]) -> None:
    at = project("a")
    with (at / "data.bin").open("wb") as file:
        file.truncate(files.LARGEST + 1)
    with pytest.raises(KernelError, match="larger than 64 MiB"):
        files.OwnFiles.of(dispatch_ports(at), order(target="skill:draw", file="data.bin"))
