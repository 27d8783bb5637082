"""The index over every resource: words in tantivy, vectors and terms in mapped files, updated with the changes only.

It is in the folder `index` of the person's state of the project, one index for each encoder. It is a cache: a damaged
index is built again. One process writes at a time, readers never wait: the files are only appended to, and a small head
file, which is replaced as a whole, says how much of them is valid.
"""

from __future__ import annotations

import atexit
import json
import mmap
import os
from array import array
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import msgspec
from msgspec import MsgspecError, Struct, field
from msgspec.structs import replace

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.scratch import make_scratch, new_scratch, remove_scratch
from navigator_kernel.adapters.files.writer import PRIVATE, FolderWriter
from navigator_kernel.adapters.index.word_index import WordIndex
from navigator_kernel.digests import blake2b
from navigator_kernel.errors import UNWRITABLE, Damaged, KernelError
from navigator_kernel.routing.entries import DIGEST_SIZE
from navigator_kernel.routing.words import COMPARED, FIELDS, gram_hashes, term_hash, terms

if TYPE_CHECKING:
    from navigator_kernel.model_ports import Encoder
    from navigator_kernel.ports import Writer
    from navigator_kernel.routing.entries import Entry
    from navigator_kernel.routing.vectors import Vectors, WordVectors

VERSION = 8
HEAD = "current.json"
INDEXED = ("name", "purpose", "examples", "tags", "body")  # fields that are searched for candidates
WIDTH = 2 + len(FIELDS)  # spans of a row: the ends of its line, of each of its fields, and of its grams
BATCH = 256  # entries encoded and written together; the last word of a stem among them stands for it
MANY = 32  # new entries from which opening the encoder in parallel is worthwhile
DEAD_SHARE, SPARE = 0.25, 256  # the index is rebuilt if dead rows exceed this share of all rows plus this number
PATIENCE = 600.0  # seconds that a process waits for another one's indexing
_MARK = "changing"  # a file that exists during a write, and after a crash in one


class RoutingIndex:
    """`folder` contains one index for each encoder. Without an encoder the index has words only. `view` is the state
    that was read or written last."""

    def __init__(self, folder: Path, writer: Writer, encoder: Encoder | None) -> None:
        self.encoder = encoder
        self._files = IndexFiles(folder / (encoder.id if encoder else "words"), writer)
        self.view: IndexSnapshot | None = None
        self._is_begun = False

    def sync(self, entries: Sequence[Entry]) -> int:
        """Makes this the index of `entries`; returns how many rows were added or removed. Busy if another process takes
        too long."""
        by_digest = {entry.digest: entry for entry in entries}
        key = blake2b("".join(sorted(by_digest)).encode()).hexdigest()
        if self._is(key):
            return 0
        try:
            return self._stored(by_digest, key)
        except KernelError as error:
            if error.data.get("errno") not in UNWRITABLE:
                raise
        # Messages are also routed where the person's state cannot be written: from now on the index is in a temporary
        # folder, which this process removes at its end
        folder = new_scratch()
        atexit.register(remove_scratch, folder, make_scratch(folder))
        self._files, self.view = IndexFiles(folder, FolderWriter([folder], mode=PRIVATE)), None
        return self._stored(by_digest, key)

    def begin(self) -> None:
        """Opens the encoder on a thread of its own, once, while entries are split into words."""
        opened = getattr(self.encoder, "open", None)
        if opened is not None and not self._is_begun:
            self._is_begun = True
            Thread(target=opened).start()  # not a daemon, so that its writes are completed

    def forget(self) -> None:
        """Drops the stored index, which turned out not to be ours; the next `sync` builds it again."""
        self.view = None
        self._files.writer.remove(self._files.folder / HEAD)

    def _is(self, key: str) -> bool:
        """Whether the stored index is there, undamaged, and of the state `key`; opens it if it is there."""
        try:
            head = self._files.head()
            if self.view is None or head != self.view.head:
                self.view = None if head is None else IndexSnapshot(self._files, head, self.encoder)
        except Damaged:
            self.view = None
        return self.view is not None and self.view.head.key == key

    def _stored(self, entries: Mapping[str, Entry], key: str) -> int:
        files = self._files
        files.writer.make_folder(files.folder)
        with file_lock(files.folder / "lock", timeout=PATIENCE):
            if self._is(key):
                return 0  # another process has written it
            broken_off = (files.folder / _MARK).exists()
            files.writer.append(files.folder / _MARK, b"")  # a journaling file system stores it before later writes
            try:
                if broken_off or self.view is None:
                    raise Damaged("there is nothing to continue from", hint="it will be rebuilt")
                count = self._changed(self.view, entries, key)
            except (Damaged, ValueError, KeyError, IndexError):
                count = self._changed(IndexSnapshot(files, files.begun(), self.encoder), entries, key)
            files.sweep(self.view)
            files.writer.remove(files.folder / _MARK)
            return count

    def _changed(self, before: IndexSnapshot, entries: Mapping[str, Entry], key: str) -> int:
        head, rows = before.head, before.rows_by_digest
        new = [entry for digest, entry in entries.items() if digest not in rows]
        gone = [row for digest, row in rows.items() if digest not in entries]
        if len(head.dead) + len(gone) > DEAD_SHARE * head.rows + SPARE:
            raise Damaged("too much of it is gone", hint="it will be rebuilt")
        if len(new) >= MANY:
            self.begin()
        texts = [_EntryTerms.of(entry, before.words) for entry in new]
        indexed = ({name: each.stems[name] for name in INDEXED} for each in texts)
        before.words.change(enumerate(indexed, head.rows), gone)
        known = set(self._files.mapped(head, "word_keys").cast("I").tolist())
        for at in range(0, len(new), BATCH):
            batch = new[at : at + BATCH], texts[at : at + BATCH]
            files = _row_files(head, *batch)
            if self.encoder is not None:
                files |= _vector_files(self.encoder, *batch, known, head.sizes.get("shots", 0))
            head = self._files.grown(head, files, len(batch[0]))
        lengths = {name: head.lengths.get(name, 0) + sum(len(each.stems[name]) for each in texts) for name in FIELDS}
        head = replace(head, dead=head.dead.union(gone), lengths=lengths, key=key)
        self._files.keep(head)
        self.view = IndexSnapshot(self._files, head, self.encoder, before.words)
        return len(new) + len(gone)


class _EntryTerms(Struct, frozen=True):
    """The terms of an entry: the stems of every field, and a word for each stem, by the stem's hash."""

    stems: Mapping[str, list[str]]
    words: Mapping[int, str]

    @classmethod
    def of(cls, entry: Entry, index: WordIndex) -> _EntryTerms:
        texts = {
            "name": " ".join((entry.name, *entry.aliases)),
            "purpose": entry.purpose,
            "examples": " ".join(entry.examples),
            "tags": " ".join(entry.tags),
            "against": entry.against,
            "body": entry.body,
        }
        cut = {name: terms(text) for name, text in texts.items()}
        stems = {name: index.stems(words) for name, words in cut.items()}
        pairs = (pair for name in COMPARED for pair in zip(stems[name], cut[name], strict=True))
        return cls(stems, {term_hash(stem): word for stem, word in pairs})


def _row_files(head: IndexHead, batch: Sequence[Entry], texts: Sequence[_EntryTerms]) -> dict[str, bytes]:
    """What is appended to the files of rows for a batch."""
    hashes, spans, lines = array("I"), array("q"), []
    base, end = head.sizes.get("terms", 0) // hashes.itemsize, head.sizes.get("rows", 0)
    for entry, text in zip(batch, texts, strict=True):
        line = json.dumps([entry.id, entry.name, entry.priority, text.stems["name"]]).encode() + b"\n"
        lines.append(line)
        end += len(line)
        spans.append(end)
        for name in FIELDS:
            hashes.extend(map(term_hash, text.stems[name]))
            spans.append(base + len(hashes))
        hashes.extend(sorted(gram_hashes(entry.name)))
        spans.append(base + len(hashes))
    digests = b"".join(bytes.fromhex(entry.digest) for entry in batch)
    return {"rows": b"".join(lines), "digests": digests, "spans": spans.tobytes(), "terms": hashes.tobytes()}


def _vector_files(
    encoder: Encoder, batch: Sequence[Entry], texts: Sequence[_EntryTerms], known: set[int], shots: int
) -> dict[str, bytes]:
    """What is appended to the files of vectors for a batch, if they have `shots` bytes of examples already; `known` are
    the words that have a vector, and the new ones are added to it."""
    from navigator_kernel.routing.vectors import packed, worded

    new = {key: word for text in texts for key, word in text.words.items() if key not in known}
    known.update(new)
    return packed(encoder, batch, shots) | worded(encoder, new)


class IndexedEntry(Struct, frozen=True):
    """One entry as it is in the index; `stems` are those of its name."""

    id: str
    name: str
    priority: int
    stems: tuple[str, ...]


class IndexSnapshot:
    """The index that `head` describes; it never changes. `words` is its index in tantivy, if it is open already; it may
    have later rows, too. Damaged if the files do not fit each other."""

    def __init__(
        self, files: IndexFiles, head: IndexHead, encoder: Encoder | None, words: WordIndex | None = None
    ) -> None:
        self._files, self.head, self._encoder = files, head, encoder
        self._lines = files.mapped(head, "rows")
        self._spans, self._terms = files.mapped(head, "spans").cast("q"), files.mapped(head, "terms").cast("I")
        if len(self._spans) != head.rows * WIDTH or (head.rows and self._lines[-1] != ord("\n")):
            raise Damaged("the rows of the index do not match each other", hint="it will be rebuilt")
        self.words = words or WordIndex(INDEXED, files.path(head, "words"))
        self.count = head.rows - len(head.dead)  # entries
        self.averages = [head.lengths.get(name, 0) / max(head.rows, 1) for name in FIELDS]  # terms of a row, by FIELDS

    def search(self, stems: Mapping[str, float], weights: Mapping[str, float], limit: int) -> list[tuple[int, float]]:
        """As `WordIndex.search`, for the rows of this state."""
        rows = self.words.search(stems, weights, limit)
        return [(row, score) for row, score in rows if row < self.head.rows and row not in self.head.dead]

    @cached_property
    def vectors(self) -> Vectors | None:
        """The vectors, mapped on first use, which needs numpy; None without an encoder."""
        from navigator_kernel.routing.vectors import Vectors

        if self._encoder is None:
            return None
        files = {name: self._files.mapped(self.head, name) for name in ("vectors", "shots", "shot_ends")}
        return Vectors(**files, rows=self.head.rows, dimensions=self._encoder.dimensions)

    @cached_property
    def lexicon(self) -> WordVectors | None:
        """The word vectors, mapped like `vectors`."""
        from navigator_kernel.routing.vectors import WordVectors

        if self._encoder is None:
            return None
        files = {name: self._files.mapped(self.head, name) for name in ("word_keys", "word_vectors")}
        return WordVectors(**files, dimensions=self._encoder.dimensions)

    def row(self, at: int) -> IndexedEntry:
        start = self._spans[(at - 1) * WIDTH] if at else 0
        key, name, priority, stems = json.loads(str(self._lines[start : self._spans[at * WIDTH]], "ascii"))
        return IndexedEntry(key, name, priority, tuple(stems))

    def hashes(self, at: int) -> list[list[int]]:
        """The hashes of a row's stems, by FIELDS, and those of its name's runs of three characters."""
        start = self._spans[at * WIDTH - 1] if at else 0
        ends = [end - start for end in self._spans[at * WIDTH + 1 : (at + 1) * WIDTH].tolist()]
        every = self._terms[start : start + ends[-1]].tolist()
        return [every[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]

    @cached_property
    def rows_by_digest(self) -> Mapping[str, int]:
        """The row of each entry by its digest, without dead ones."""
        digests = self._files.mapped(self.head, "digests").hex()
        if len(digests) != self.head.rows * DIGEST_SIZE * 2:
            raise Damaged("the digests do not match the rows", hint="the index will be rebuilt")
        each = (digests[at : at + DIGEST_SIZE * 2] for at in range(0, len(digests), DIGEST_SIZE * 2))
        return {digest: at for at, digest in enumerate(each) if at not in self.head.dead}


class IndexHead(Struct, frozen=True, kw_only=True):
    """The valid part of an index: `rows` rows in the folder `generation`, except those in `dead`, in files of at least
    `sizes` bytes. `key` is the state of the indexed catalogue, `lengths` are the numbers of terms in all rows, by
    field."""

    version: int = VERSION
    generation: str
    rows: int = 0
    dead: frozenset[int] = frozenset()
    sizes: Mapping[str, int] = field(default_factory=dict)
    key: str = ""
    lengths: Mapping[str, int] = field(default_factory=dict)


class IndexFiles:
    """The index files below `folder`. Writers need a lock; readers do not: a head is replaced as a whole, and the bytes
    that it covers never change; new ones are only appended. `sweep` removes old generations."""

    def __init__(self, folder: Path, writer: Writer) -> None:
        self.folder, self.writer = folder, writer

    def head(self) -> IndexHead | None:
        """The stored head; None if there is none of this version. Damaged if it or one of its files is incomplete."""
        try:
            head = msgspec.json.decode((self.folder / HEAD).read_bytes(), type=IndexHead)
        except FileNotFoundError:
            return None
        except (OSError, MsgspecError) as error:
            raise Damaged("the index cannot be read", hint="it will be rebuilt") from error
        if head.version != VERSION:
            return None
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
            self.writer.remove(self.folder / HEAD)
        self.writer.make_folder(self.path(head, "words"))
        return head

    def grown(self, head: IndexHead, added: Mapping[str, bytes], rows: int) -> IndexHead:
        """Appends bytes to the files of `head`. Damaged if a file has the wrong size: a process died there."""
        sizes = dict(head.sizes)
        for name, data in ((name, data) for name, data in added.items() if data):
            path = self.path(head, name)
            if (path.stat().st_size if path.exists() else 0) != sizes.get(name, 0):
                raise Damaged(f"{str(path)!r} has unexpected contents", hint="it will be rebuilt")
            self.writer.append(path, data)
            sizes[name] = sizes.get(name, 0) + len(data)
        return replace(head, rows=head.rows + rows, sizes=sizes)

    def keep(self, head: IndexHead) -> None:
        """Stores `head` as the valid one."""
        self.writer.write(self.folder / HEAD, msgspec.json.encode(head))

    def sweep(self, view: IndexSnapshot | None) -> None:
        """Removes every generation but that of `view`."""
        for path in self.folder.glob("g-*"):
            if view is None or path.name != view.head.generation:
                self.writer.remove(path)
