"""Skills by digest, in JetStream's object store: an owner puts the folder of a skill there, and a worker that has other
bytes, or none, fetches it. A worker that finds none there, or other bytes, asks the owner to put the folder again. It
reads without a consumer, so that it needs the right to read this bucket only.
"""

from __future__ import annotations

import asyncio
import zlib
from base64 import urlsafe_b64encode
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from nats.js.errors import BucketNotFoundError, NotFoundError

from navigator_kernel.errors import IntegrityMismatch, KernelError
from navigator_kernel.text import lazy_compile
from navigator_nats import broker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nats.js import JetStreamContext

    from navigator_kernel.ports import DispatchPorts
    from navigator_kernel.values.packet import Packet

BUCKET = "NAV_SKILLS"
STREAM = f"OBJ_{BUCKET}"
READ = f"$JS.API.DIRECT.GET.{STREAM}"
_NAME = lazy_compile(r"\w[\w-]{0,63}")
_DIGEST = lazy_compile(r"sha256:[0-9a-f]{64}")
TRIES = 3  # to put a skill that is not there when it is read again
LARGEST = 64 * 1024 * 1024  # bytes of one skill; a larger one must be installed on the worker


class _Object(Struct):
    """What the bucket says of one object."""

    nuid: str
    chunks: int
    size: int
    deleted: bool = False


def _unpacked(plain: bytes) -> list[tuple[PurePosixPath, int, bytes]]:
    """The files; ValueError if it is not what `put` packs."""
    files = []
    for written, mode, content in msgspec.msgpack.decode(plain, type=list[tuple[str, int, bytes]]):
        path = PurePosixPath(written)
        if path.is_absolute() or not path.parts or {"..", "__pycache__"} & {*path.parts} or "\0" in written:
            raise ValueError(f"{written!r} is not a path of a skill")
        files.append((path, 0o755 if mode else 0o644, content))
    return files


async def put(jetstream: JetStreamContext, ports: DispatchPorts, packet: Packet, digest: str) -> None:
    """Puts the folder of the packet's skill into the bucket, unless exactly its files are there, and looks again.
    KernelError if the bucket does not have it then."""
    present = ports.files(packet)
    if not present or sum(file.stat().st_size for file in present.values()) > LARGEST:
        return
    plain = msgspec.msgpack.encode(
        [(path, int(bool(file.stat().st_mode & 0o111)), file.read_bytes()) for path, file in present.items()]
    )
    if ports.digest(packet) != digest:  # it changed meanwhile: a later packet has the new digest
        return
    for _ in range(TRIES):
        with suppress(NotFoundError, ValueError, zlib.error, *broker.GONE):
            if await _plain(jetstream, digest) == plain:
                return
        try:
            bucket = await jetstream.object_store(BUCKET)
        except BucketNotFoundError:
            bucket = await jetstream.create_object_store(BUCKET)
        await bucket.put(digest, zlib.compress(plain, 1))
    raise KernelError(f"the broker does not keep {packet.task_spec.target!r}")


async def fetched(jetstream: JetStreamContext, ports: DispatchPorts, packet: Packet, digest: str) -> DispatchPorts:
    """The ports of this project with the skill of exactly this digest, fetched if no earlier packet brought it.
    IntegrityMismatch if the bucket does not have it, or has other bytes."""
    from navigator_kernel.commands import dispatch_ports  # with click, which an owner need not load

    target = packet.task_spec.target
    name = target.partition(":")[2]
    if not (_DIGEST.fullmatch(digest) and _NAME.fullmatch(name)):  # both are put into paths
        raise IntegrityMismatch(f"{target!r} with its digest {digest!r} is not a skill")
    folder = folder_of(ports, digest)
    if not (folder / name / "SKILL.md").is_file():
        try:
            files = _unpacked(await _plain(jetstream, digest))
        except (NotFoundError, TimeoutError, *broker.GONE):  # a time-out: an older configuration gives no right to it
            hint = "install the same version on the worker's host"
            raise IntegrityMismatch(f"no owner has put {target!r} of this digest at the broker", hint=hint) from None
        except (ValueError, TypeError, zlib.error) as error:
            raise IntegrityMismatch(f"what the broker has as {target!r} cannot be read: {error}") from None
        await asyncio.to_thread(_placed, ports, folder / name, files)
    brought = await asyncio.to_thread(dispatch_ports, ports.root, folder)
    if await asyncio.to_thread(brought.digest, packet) != digest:
        ports.project.writer.remove(folder)
        raise IntegrityMismatch(f"what the broker has as {target!r} has other bytes than its digest says")
    return brought


def folder_of(ports: DispatchPorts, digest: str) -> Path:
    """Where `fetched` puts the skill of this digest."""
    return ports.project.state / "fetched" / digest.rpartition(":")[2]


def _placed(ports: DispatchPorts, folder: Path, files: Sequence[tuple[PurePosixPath, int, bytes]]) -> None:
    """Writes the files, SKILL.md as the last one: without it there is no skill."""
    for path, mode, content in sorted(files, key=lambda file: file[0].name == "SKILL.md"):
        ports.project.writer.write(folder / path, content, mode=mode)


async def _plain(jetstream: JetStreamContext, digest: str) -> bytes:
    """What `put` packed, before it was compressed; NotFoundError if it is not there as a whole, ValueError or
    zlib.error if it is something else."""
    raw = await broker.last(jetstream, STREAM, f"$O.{BUCKET}.M.{urlsafe_b64encode(digest.encode()).decode()}")
    if raw is None:
        raise NotFoundError
    stored, data, sequence = msgspec.json.decode(raw.data or b"", type=_Object), b"", 0
    if stored.deleted or stored.size > 2 * LARGEST:
        raise NotFoundError
    for _ in range(stored.chunks):
        subject = f"$O.{BUCKET}.C.{stored.nuid}"
        raw = await jetstream.get_msg(STREAM, seq=sequence + 1, subject=subject, next=True, direct=True)
        sequence, data = raw.seq or 0, data + (raw.data or b"")
    unpacking = zlib.decompressobj()
    plain = unpacking.decompress(data, 2 * LARGEST)
    if unpacking.unconsumed_tail:
        raise ValueError("it is too large")
    return plain
