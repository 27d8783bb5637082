"""The index over every resource: words in tantivy, vectors and terms in mapped files, updated with the changes only.

It is in the folder `index` of the person's state of the project, one index for each encoder. It is a cache: a damaged
index is built again. One process writes at a time, readers never wait.
"""

from __future__ import annotations

import atexit
import json
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.scratch import make_scratch, new_scratch, remove_scratch
from navigator_kernel.adapters.files.writer import PRIVATE, FolderWriter
from navigator_kernel.adapters.index.columns import HEAD, IndexHead, SegmentStore
from navigator_kernel.adapters.index.word_index import WordIndex
from navigator_kernel.errors import UNWRITABLE, Damaged, KernelError
from navigator_kernel.routing.features import COMPARED, FIELDS, gram_hashes, term_hash
from navigator_kernel.routing.terms import terms
from navigator_kernel.routing.view import INDEXED, IndexSnapshot
from navigator_kernel.routing.words import TextIndex, counted, spelt

if TYPE_CHECKING:
    from navigator_kernel.model_ports import Encoder
    from navigator_kernel.ports import Writer
    from navigator_kernel.routing.entries import Entry

BATCH = 1_024  # entries encoded and written together
SAYING = 256  # entries whose new words are collected together: the last word of a stem stands for it
MANY = 32  # new entries from which opening the encoder in parallel is worthwhile
DEAD_SHARE, SPARE = 0.25, 256  # the index is rebuilt if dead rows exceed this share of all rows plus this number
PATIENCE = 600.0  # seconds that a process waits for another one's indexing
_COUNTED = tuple(dict.fromkeys((*FIELDS, *INDEXED)))  # fields whose stems are counted
_MARK = "changing"  # a file that exists during a write, and after a crash in one


class RoutingIndex:
    """`folder` contains one index for each encoder. Without an encoder the index has words only."""

    def __init__(self, folder: Path, writer: Writer, encoder: Encoder | None) -> None:
        self._folder = folder / (encoder.id if encoder else "words")
        self._writer, self.encoder = writer, encoder
        self._columns = SegmentStore(self._folder, writer)
        self.view: IndexSnapshot | None = None
        self._known: _Known | None = None
        self._told = _Told([], 0)
        self._is_begun = False

    def begin(self) -> None:
        """Opens the encoder on a thread of its own, once, while entries are split into words."""
        opened = getattr(self.encoder, "open", None)
        if opened is None or self._is_begun:
            return

        self._is_begun = True
        Thread(target=opened).start()  # not a daemon, so that its writes are completed

    def sync(self, entries: Sequence[Entry]) -> int:
        """Makes this the index of `entries`; returns how many rows were added or removed. Busy if another process takes
        too long."""
        told = self._told.after(entries)
        if self._is(told.key):
            self._told = told
            return 0
        try:
            count = self._stored(told)
        except KernelError as error:
            if error.data.get("errno") not in UNWRITABLE:
                raise
            self._move_aside()
            count = self._stored(told)
        self._told = told
        return count

    def _stored(self, told: _Told) -> int:
        self._writer.make_folder(self._folder)
        with file_lock(self._folder / "lock", timeout=PATIENCE):
            return 0 if self._is(told.key) else self._changed(told)  # another process may have written it

    def _move_aside(self) -> None:
        """From now on the index is in a temporary folder, which this process removes at its end: messages are also
        routed where the person's state cannot be written."""
        self._folder = new_scratch()
        atexit.register(remove_scratch, self._folder, make_scratch(self._folder))
        self._writer = FolderWriter([self._folder], mode=PRIVATE)
        self._columns = SegmentStore(self._folder, self._writer)
        self.view = self._known = None

    def forget(self) -> None:
        """Drops the stored index, which turned out not to be ours; the next `sync` builds it again."""
        self.view = None
        self._writer.remove(self._folder / HEAD)

    def _is(self, key: str) -> bool:
        """Whether the stored index is there, undamaged, and of the state `key`; opens it if it is there."""
        try:
            head = self._columns.head()
            if self.view is None or head != self.view.head:
                self.view = None if head is None else self._opened(head)
        except Damaged:
            self.view = None
        return self.view is not None and self.view.head.key == key

    def _opened(self, head: IndexHead, base: WordIndex | None = None) -> IndexSnapshot:
        """Opens the index. Rows of one generation are only added, so the last view's search is extended."""
        search = self.view.search if self.view is not None and self.view.head.generation == head.generation else None
        return IndexSnapshot(self._columns, head, self.encoder, base=base, search=search)

    def _changed(self, told: _Told) -> int:
        broken_off = (self._folder / _MARK).exists()
        self._writer.append(self._folder / _MARK, b"")  # a file system with a journal stores it before later writes
        try:
            if broken_off or self.view is None:
                raise Damaged("there is nothing to continue from", hint="it will be rebuilt")
            count = self._grown(self._remembered(self.view), told)
        except (Damaged, ValueError, KeyError, IndexError):
            head = self._columns.begun()
            self._writer.make_folder(self._columns.path(head, "words"))
            count = self._grown(_Known(head, {}, set()), told)
        self._columns.sweep(None if self.view is None else self.view.head)
        self._writer.remove(self._folder / _MARK)
        return count

    def _remembered(self, view: IndexSnapshot) -> _Known:
        """The state that this process made last, or the stored one; the caller changes it."""
        known, self._known = self._known, None
        if known is not None and known.head == view.head:
            return known
        words = self._columns.mapped(view.head, "word_keys").cast("I").tolist()
        return _Known(view.head, view.held(), set(words))

    def _grown(self, known: _Known, told: _Told) -> int:
        head, held = known.head, known.rows
        before = self._told.entries
        same = self._told.key == head.key and len(before) == len(held)  # the index contains the last entries, each once
        start, end = (told.start, told.end) if same else (0, 0)
        wanted = {entry.digest: entry for entry in told.entries[start : len(told.entries) - end]}
        passed = [entry.digest for entry in before[start : len(before) - end]] if same else list(held)
        gone = {digest: held[digest] for digest in passed if digest not in wanted}
        new = [entry for digest, entry in wanted.items() if digest not in held]
        if len(head.dead) + len(gone) > DEAD_SHARE * head.rows + SPARE:
            raise Damaged("too much of it is gone", hint="it will be rebuilt")
        base, grown, note = self._added(head, new, gone.values(), known.words)
        for digest in gone:
            del held[digest]
        held.update(zip((entry.digest for entry in new), range(head.rows, grown.rows), strict=True))
        head = self._columns.keep(grown, dead=gone.values(), key=told.key, note=note)
        self.view = self._opened(head, base)
        self._known = _Known(head, held, known.words)
        return len(new) + len(gone)

    def _added(
        self, head: IndexHead, new: Sequence[Entry], gone: Collection[int], known: set[int]
    ) -> tuple[WordIndex, IndexHead, dict[str, Any]]:
        """Adds rows for `new`."""
        if len(new) >= MANY:
            self.begin()
        words = self._words(head)
        cut = [_cut(entry, words) for entry in new]
        base, grown, note = self._worded(head, words, [one.stems for one in cut], gone)
        for at in range(0, len(new), BATCH):
            batch, pieces = new[at : at + BATCH], cut[at : at + BATCH]
            files = self._files(grown, batch, [one.stems for one in pieces])
            if self.encoder is not None:
                files |= _vectors(self.encoder, batch, pieces, known, grown.sizes.get("shots", 0))
            grown = self._columns.grown(grown, files, len(batch))
        return base, grown, note

    def _words(self, head: IndexHead) -> TextIndex:
        if self.view is not None and self.view.head == head:
            return self.view.words
        return TextIndex(WordIndex(INDEXED, self._columns.path(head, "words")), head, memoryview(b""))

    def _worded(
        self, head: IndexHead, words: TextIndex, stems: Sequence[Mapping[str, list[str]]], gone: Collection[int]
    ) -> tuple[WordIndex, IndexHead, dict[str, Any]]:
        """Stores the words of added and removed rows: as lines of a file while they are few, then as one commit of
        all."""
        lengths = head.note.get("lengths", dict.fromkeys(_COUNTED, 0))
        lengths = {name: lengths[name] + sum(len(one[name]) for one in stems) for name in _COUNTED}
        new = {row: counted(one, INDEXED) for row, one in enumerate(stems, head.rows)}
        late = words.after(new, frozenset(gone))
        if head.rows and late.few:
            lines = b"".join(json.dumps(line).encode() + b"\n" for line in new.items())
            held = {"rows": words.rows, "buried": sorted(late.buried), "start": words.start}
            return words.base, self._columns.grown(head, {"newest": lines}, 0), {"lengths": lengths, "words": held}
        base = WordIndex(INDEXED, self._columns.path(head, "words"))
        base.change(((row, spelt(one)) for row, one in late.newest.items()), late.buried)
        held = {"rows": head.rows + len(new), "buried": [], "start": head.sizes.get("newest", 0)}
        return base, head, {"lengths": lengths, "words": held}

    def _files(
        self, head: IndexHead, batch: Sequence[Entry], stems: Sequence[Mapping[str, list[str]]]
    ) -> dict[str, bytes]:
        """The data that the files get for a batch."""
        hashes, spans, lines = array("I"), array("q"), []
        base, end = head.sizes.get("terms", 0) // hashes.itemsize, head.sizes.get("rows", 0)
        for entry, found in zip(batch, stems, strict=True):
            line = json.dumps([entry.id, entry.name, entry.priority, found["name"]]).encode() + b"\n"
            lines.append(line)
            end += len(line)
            spans.append(end)
            for name in FIELDS:
                hashes.extend(map(term_hash, found[name]))
                spans.append(base + len(hashes))
            hashes.extend(sorted(gram_hashes(entry.name)))
            spans.append(base + len(hashes))
        digests = b"".join(bytes.fromhex(entry.digest) for entry in batch)
        return {"rows": b"".join(lines), "digests": digests, "spans": spans.tobytes(), "terms": hashes.tobytes()}


class _Told(Struct, frozen=True):
    """The entries in their order, and the sum of their digests, which distinguishes the states of a catalogue: it costs
    only as much as has changed. It does not protect against forgery. The first `start` and the last `end` entries are
    the same as before."""

    entries: list[Entry]
    total: int
    start: int = 0
    end: int = 0

    @property
    def key(self) -> str:
        return f"{len(self.entries)}-{self.total:x}"

    def after(self, entries: Sequence[Entry]) -> _Told:
        """The value for these `entries`, compared with the ones before."""
        now = list(entries)
        start, end = _ends(self.entries, now)
        come, gone = (map(_number, one[start : len(one) - end]) for one in (now, self.entries))
        return _Told(now, self.total + sum(come) - sum(gone), start, end)


def _number(entry: Entry) -> int:
    return int(entry.digest, 16)


class _Known(Struct, frozen=True):
    """For one state, the row of each entry by its digest, and the hashes of the words that have a vector."""

    head: IndexHead
    rows: dict[str, int]
    words: set[int]


class _EntryTerms(Struct, frozen=True):
    """The terms of an entry: the stems of every field, and a word for each stem, by the stem's hash."""

    stems: Mapping[str, list[str]]
    words: Mapping[int, str]


def _ends(one: list[Entry], other: list[Entry]) -> tuple[int, int]:
    """How many entries at the start are the same in both, and how many at the end of the rest."""
    start = _alike(one, other)
    return start, _alike(one[start:][::-1], other[start:][::-1])


def _alike(one: list[Entry], other: list[Entry]) -> int:
    """How many entries at the start are the same; it needs few comparisons even for many entries."""
    found, size = 0, min(len(one), len(other))
    while size:
        if one[found : found + size] == other[found : found + size]:
            found += size
            size = min(size, len(one) - found, len(other) - found)
        else:
            size //= 2
    return found


def _cut(entry: Entry, words: TextIndex) -> _EntryTerms:
    texts: Iterable[tuple[str, str]] = (
        ("name", " ".join((entry.name, *entry.aliases))),
        ("purpose", entry.purpose),
        ("examples", " ".join(entry.examples)),
        ("tags", " ".join(entry.tags)),
        ("against", entry.against),
        ("body", entry.body),
    )
    stems: dict[str, list[str]] = {}
    said: dict[int, str] = {}
    for name, text in texts:
        found = terms(text)
        stems[name] = words.stems(found)
        if name in COMPARED:
            said |= {term_hash(stem): word for stem, word in zip(stems[name], found, strict=True)}
    return _EntryTerms(stems, said)


def _vectors(
    encoder: Encoder, batch: Sequence[Entry], cut: Sequence[_EntryTerms], known: set[int], shots: int
) -> dict[str, bytes]:
    """The data that the files of vectors get for a batch, if they have `shots` bytes of examples already; `known` are
    the words that have a vector, and the new ones are added to it."""
    from navigator_kernel.routing.lexicon import worded
    from navigator_kernel.routing.vectors import packed

    new: dict[int, str] = {}
    for at in range(0, len(cut), SAYING):
        said = (item for found in cut[at : at + SAYING] for item in found.words.items())
        new |= {key: word for key, word in said if key not in known}
        known.update(new)
    return packed(encoder, batch, shots) | worded(encoder, new)
