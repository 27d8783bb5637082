"""Files between an owner and a worker, by hash: those that a packet names go to the worker, and those that a skill made
come back before its report. They travel as questions of the worker and answers of the owner, on the subject of the
task's events: a worker of another pool cannot ask for them, nor one that does not know the task's key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from navigator_kernel.errors import IntegrityMismatch, KernelError, NotFound, Refused

if TYPE_CHECKING:
    from navigator_kernel.ports import DispatchPorts
    from navigator_kernel.values.packet import Packet, Report

FILES = "Nav-Files"  # header: the digest of each file that the packet names, by path
WANTED, MADE = b"file ", b"made "  # begin the questions for a piece of a file, and with a piece of one that was made
PRESENT, MORE = b"present", b"more"  # answers to the second
PIECE = 256 * 1024  # bytes
LARGEST = 64 * 1024 * 1024  # bytes of all files of a task, in each direction

Ask = Callable[[bytes], Awaitable[bytes]]  # asks the owner


class _Made(Struct, array_like=True):
    """A piece of a file that a skill made."""

    name: str
    digest: str
    size: int
    offset: int
    piece: bytes


class OwnFiles(Struct):
    """The files of one task on its owner's side; the worker may ask for those in `named`, by path, which had `digests`
    when the task was sent."""

    ports: DispatchPorts
    run: str
    named: Mapping[str, Path]
    digests: dict[str, str]
    _coming: dict[str, bytearray] = field(default_factory=dict)

    @classmethod
    def of(cls, ports: DispatchPorts, packet: Packet) -> OwnFiles:
        """KernelError if they are too large."""
        named = ports.named(packet)
        if sum(path.stat().st_size for path in named.values()) > LARGEST:
            hint = "share the project's folder between the hosts, or take the pool out of NAVIGATOR_NATS_POOLS"
            raise KernelError("the files of the order are larger than 64 MiB", hint=hint)
        digests = {name: digest_of(path.read_bytes()) for name, path in named.items()}
        return cls(ports, packet.context.run, named, digests)

    def answer(self, question: bytes) -> bytes:
        """The answer to a worker's question; empty to a wrong one."""
        try:
            if question.startswith(WANTED):
                name, offset = msgspec.msgpack.decode(question[len(WANTED) :], type=tuple[str, int])
                with self.named[name].open("rb") as file:
                    file.seek(offset)
                    return file.read(PIECE)
            return self._made(msgspec.msgpack.decode(question[len(MADE) :], type=_Made))
        except (KeyError, ValueError, OSError, KernelError):
            return b""

    def _made(self, made: _Made) -> bytes:
        coming, path = self._coming, self.ports.root / "mybox" / "workspace" / self.run / made.name
        if not _is_plain(made.name) or made.size + sum(map(len, coming.values())) > 2 * LARGEST:
            return b""
        if path.is_file() and path.stat().st_size == made.size and digest_of(path.read_bytes()) == made.digest:
            return PRESENT
        data = coming.setdefault(made.name, bytearray())
        if made.offset == 0:
            data.clear()
        if made.offset != len(data) or made.size > LARGEST:
            return b""
        data += made.piece
        if len(data) < made.size:
            return MORE
        del coming[made.name]
        if digest_of(data) != made.digest:
            return b""
        self.ports.keep(self.run, made.name, bytes(data))
        return PRESENT


async def brought(ask: Ask, digests: Mapping[str, str], folder: Path, ports: DispatchPorts) -> None:
    """Writes the files of these digests, by path, below `folder`. IntegrityMismatch for one that the owner does not
    give, or gives with other bytes, and for a path that leads elsewhere."""
    for name, digest in digests.items():
        if not _is_plain(name):
            raise IntegrityMismatch(f"{name!r} is not a path of a file in a project")
        data = bytearray()
        while len(data) <= LARGEST:
            data += (piece := await ask(WANTED + msgspec.msgpack.encode((name, len(data)))))
            if len(piece) < PIECE:
                break
        if digest_of(data) != digest:
            message = f"the owner did not give {name!r} with the bytes that it had when it sent the order"
            raise IntegrityMismatch(message, hint="give the order again")
        await asyncio.to_thread(ports.project.writer.write, folder / name, bytes(data))


async def returned(ask: Ask, report: Report, ports: DispatchPorts, run: str) -> None:
    """Gives the owner the files that the report names, but nothing behind a link, which is not the skill's to give.
    KernelError if it does not take one."""
    begin = f"mybox/workspace/{run}/"
    for shown in report.files:
        name = shown.removeprefix(begin)
        if name == shown or not _is_plain(name):
            continue
        try:
            data = await asyncio.to_thread(ports.made, run, name, LARGEST + 1)
        except (NotFound, Refused):
            continue
        digest, offset = digest_of(data), 0
        while True:
            made = _Made(name, digest, len(data), offset, data[offset : offset + PIECE])
            answer = await ask(MADE + msgspec.msgpack.encode(made))
            if answer == PRESENT:
                break
            offset += PIECE
            if answer != MORE:
                raise KernelError(f"the owner did not take the file {name!r}", hint="it may be larger than 64 MiB")


def has(root: Path, digests: Mapping[str, str]) -> bool:
    """Whether the folder has exactly these bytes at these paths, as one that hosts share."""
    return all(
        _is_plain(name) and (root / name).is_file() and digest_of((root / name).read_bytes()) == digest
        for name, digest in digests.items()
    )


def digest_of(data: bytes | bytearray) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def _is_plain(name: str) -> bool:
    """Whether it is a path below a folder, without hidden parts."""
    parts = PurePosixPath(name).parts
    return bool(parts) and "\0" not in name and not any(part.startswith((".", "/")) for part in parts)
