"""The rows of an index in append-only, memory-mapped files; a small head file says how many of them are valid."""

from __future__ import annotations

import json
import mmap
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.errors import Damaged

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer

VERSION = 6
HEAD = "current.json"
_POPULATE_READ = 22  # MADV_POPULATE_READ, which `mmap` does not define


class IndexHead(Struct, frozen=True, kw_only=True):
    """The valid part of an index: `rows` rows in the folder `generation`, except those in `dead`, in files of at least
    `sizes` bytes. `key` is the state of the indexed catalogue; `note` is data of the index's owner."""

    generation: str
    rows: int = 0
    dead: frozenset[int] = frozenset()
    sizes: Mapping[str, int] = field(default_factory=dict)
    key: str = ""
    note: Mapping[str, Any] = field(default_factory=dict)


class SegmentStore:
    """The index files below `folder`. Writers need a lock; readers do not: a head is replaced as a whole, and the bytes
    that it covers never change; new ones are only appended. `sweep` removes old generations."""

    def __init__(self, folder: Path, writer: Writer) -> None:
        self.folder, self._writer = folder, writer

    def head(self) -> IndexHead | None:
        """The stored head; None if there is none of this version. Damaged if it or one of its files is incomplete."""
        try:
            body = json.loads((self.folder / HEAD).read_bytes())
            if body["v"] != VERSION:
                return None
            head = IndexHead(
                generation=str(body["generation"]),
                rows=int(body["rows"]),
                dead=frozenset(map(int, body["dead"])),
                sizes={str(name): int(size) for name, size in body["sizes"].items()},
                key=str(body["key"]),
                note=dict(body["note"]),
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise Damaged("the index cannot be read", hint="it will be rebuilt") from error
        for name, size in head.sizes.items():
            path = self.path(head, name)
            if not path.is_file() or path.stat().st_size < size:
                raise Damaged(f"{str(path)!r} is shorter than before", hint="it will be rebuilt")
        return head

    def path(self, head: IndexHead, name: str) -> Path:
        return self.folder / head.generation / name

    def mapped(self, head: IndexHead, name: str) -> memoryview:
        """The valid bytes of one file, mapped into memory."""
        size = head.sizes.get(name, 0)
        if not size:
            return memoryview(b"")
        with self.path(head, name).open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))

    def begun(self) -> IndexHead:
        """Creates an empty generation; it becomes valid with `keep`."""
        head = IndexHead(generation=f"g-{os.urandom(6).hex()}")
        if not (self.folder / HEAD).is_file():
            self._writer.remove(self.folder / HEAD)
        self._writer.make_folder(self.folder / head.generation)
        return head

    def grown(self, head: IndexHead, added: Mapping[str, bytes], rows: int) -> IndexHead:
        """Appends bytes to the files of `head`. Damaged if a file has the wrong size: a process died there."""
        sizes = dict(head.sizes)
        for name, data in ((name, data) for name, data in added.items() if data):
            path = self.path(head, name)
            if (path.stat().st_size if path.exists() else 0) != sizes.get(name, 0):
                raise Damaged(f"{str(path)!r} has unexpected contents", hint="it will be rebuilt")
            self._writer.append(path, data)
            sizes[name] = sizes.get(name, 0) + len(data)
        return replace(head, rows=head.rows + rows, sizes=sizes)

    def keep(self, head: IndexHead, *, dead: Iterable[int] = (), key: str, note: Mapping[str, Any]) -> IndexHead:
        """Stores `head` as the valid one."""
        head = replace(head, dead=head.dead | frozenset(dead), key=key, note=note)
        body = {"v": VERSION, "generation": head.generation, "rows": head.rows, "dead": sorted(head.dead)}
        text = json.dumps({**body, "sizes": head.sizes, "key": key, "note": head.note}, ensure_ascii=False)
        self._writer.write(self.folder / HEAD, text.encode())
        return head

    def sweep(self, head: IndexHead | None) -> None:
        """Removes every generation but that of `head`."""
        for path in self.folder.glob("g-*"):
            if head is None or path.name != head.generation:
                self._writer.remove(path)


class RecordReader:
    """Reads records of `size` bytes one by one from a file, the first at `start`. Of a mapped file, the system would
    load much more than is needed."""

    def __init__(self, path: Path, size: int, start: int = 0) -> None:
        self._size, self._start = size, start
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        finalize(self, os.close, self._handle)  # also if the interpreter exits first

    def __call__(self, records: Iterable[int]) -> bytes:
        handle, size, start = self._handle, self._size, self._start
        return b"".join([os.pread(handle, size, start + record * size) for record in records])


def at_hand(held: memoryview) -> memoryview:
    """Loads all of a mapped file into memory; otherwise, each page costs microseconds on its first use in a message."""
    if isinstance(held.obj, mmap.mmap) and sys.platform == "linux":
        with suppress(OSError):  # Linux before 5.14 does not support it
            held.obj.madvise(_POPULATE_READ)
    return held


def unmapped(held: memoryview) -> None:
    """Frees the memory of a mapped file; its pages are read again on their next use."""
    if isinstance(held.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        held.obj.madvise(mmap.MADV_DONTNEED)
