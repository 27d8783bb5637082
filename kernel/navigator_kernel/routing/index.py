"""The index over every resource: words in tantivy, vectors and terms in mapped files, both grown by what changed.

A folder of `mybox/cache/index` holds it, one for each encoder. It is a cache: what is damaged is made anew. One process
writes at a time, readers never wait.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from navigator_kernel.adapters.columns import HEAD, Columns, Head
from navigator_kernel.adapters.database import locked
from navigator_kernel.adapters.word_index import WordIndex
from navigator_kernel.errors import Damaged
from navigator_kernel.routing.features import COMPARED, FIELDS, gram_hashes, term_hash
from navigator_kernel.routing.terms import terms
from navigator_kernel.routing.view import INDEXED, IndexView

if TYPE_CHECKING:
    from navigator_kernel.ports import Encoder, Writer
    from navigator_kernel.routing.entries import Entry

BATCH = 256  # entries that are encoded and written together
DEAD_SHARE = 0.25  # of all rows, from which the index is made anew
PATIENCE = 600.0  # seconds that one process waits for another's indexing
Held = Mapping[str, tuple[int, str]]  # row and digest of each entry that counts, by its id
_MARK = "changing"  # is there while a process writes: one that died left it


class RoutingIndex:
    """`folder` holds one for each encoder. Without an encoder it has words only."""

    def __init__(self, folder: Path, writer: Writer, encoder: Encoder | None) -> None:
        self._folder = folder / (encoder.id if encoder else "words")
        self._writer, self.encoder = writer, encoder
        self._columns = Columns(self._folder, writer)
        self.view: IndexView | None = None
        self._held: tuple[Head, Held] | None = None

    def sync(self, entries: Callable[[], Sequence[Entry]], key: str) -> int:
        """Makes it the index of `entries()`, whose state is `key`; they are asked for only where it is another.

        How many rows came or went. Busy where another process is at it for too long."""
        if self._is(key):
            return 0
        self._writer.make_folder(self._folder)
        with locked(self._folder / "lock", timeout=PATIENCE):
            if self._is(key):  # another process was faster
                return 0
            return self._changed({entry.id: entry for entry in entries()}, key)

    def forget(self) -> None:
        """What is kept turned out to be none of ours: the next `sync` makes it anew."""
        self.view = None
        self._writer.remove(self._folder / HEAD)

    def _is(self, key: str) -> bool:
        """Whether it is there, whole, and of that state; what is there is opened."""
        try:
            head = self._columns.head()
            if self.view is None or head != self.view.head:
                self.view = None if head is None else IndexView(self._columns, head, self.encoder)
        except Damaged:
            self.view = None
        return self.view is not None and self.view.head.key == key

    def _changed(self, wanted: Mapping[str, Entry], key: str) -> int:
        broken_off = (self._folder / _MARK).exists()
        self._writer.append(self._folder / _MARK, b"")  # a journal keeps it before what is written after it
        try:
            if broken_off or self.view is None:
                raise Damaged("there is nothing to go on from", hint="it is made anew")
            view, count = self._grown(self.view.head, self._known(self.view), wanted, key)
        except (Damaged, ValueError, KeyError, IndexError):
            head = self._columns.begun()
            self._writer.make_folder(self._columns.path(head, "words"))
            view, count = self._grown(head, {}, wanted, key)
        self.view = view
        self._columns.sweep(view.head)
        self._writer.remove(self._folder / _MARK)
        return count

    def _known(self, view: IndexView) -> Held:
        """What is in it: read, or remembered from the change that this process made last."""
        if self._held is not None and self._held[0] == view.head:
            return self._held[1]
        return view.held()

    def _grown(self, head: Head, held: Held, wanted: Mapping[str, Entry], key: str) -> tuple[IndexView, int]:
        digests = {name: entry.digest for name, entry in wanted.items()}
        gone = [at for name, (at, digest) in held.items() if digests.get(name) != digest]
        new = [wanted[name] for name, digest in digests.items() if name not in held or held[name][1] != digest]
        if len(head.dead) + len(gone) > DEAD_SHARE * head.rows + BATCH:
            raise Damaged("too much of it is gone", hint="it is made anew")
        words = WordIndex(INDEXED, self._columns.path(head, "words"))
        cut = [_cut(entry, words) for entry in new]
        texts = [(head.rows + at, {name: found.stems[name] for name in INDEXED}) for at, found in enumerate(cut)]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as beside:  # tantivy's commit takes longer than a vector
            indexed = beside.submit(words.change, texts, gone)
            known = set(self._columns.mapped(head, "word_keys").cast("I").tolist())
            grown = head
            for at in range(0, len(new), BATCH):
                batch, pieces = new[at : at + BATCH], cut[at : at + BATCH]
                files = self._files(grown, batch, [one.stems for one in pieces])
                if self.encoder is not None:
                    files |= _vectors(self.encoder, batch, pieces, known, grown.sizes.get("shots", 0))
                grown = self._columns.grown(grown, files, len(batch))
            before = head.note.get("lengths", [0] * len(FIELDS))
            lengths = [sum(len(one.stems[name]) for one in cut) + before[at] for at, name in enumerate(FIELDS)]
            kept = {name: (at, digest) for name, (at, digest) in held.items() if digests.get(name) == digest}
            kept |= {entry.id: (head.rows + at, entry.digest) for at, entry in enumerate(new)}
            indexed.result()
        head = self._columns.keep(grown, dead=gone, key=key, note={"lengths": lengths})
        self._held = head, kept
        return IndexView(self._columns, head, self.encoder, words), len(new) + len(gone)

    def _files(self, head: Head, batch: Sequence[Entry], stems: Sequence[Mapping[str, list[str]]]) -> dict[str, bytes]:
        """What the files get for a batch."""
        hashes, spans, lines = array("I"), array("q"), []
        base, end = head.sizes.get("terms", 0) // hashes.itemsize, head.sizes.get("rows", 0)
        for entry, found in zip(batch, stems, strict=True):
            line = json.dumps([entry.id, entry.name, entry.digest, entry.priority, found["name"]]).encode() + b"\n"
            lines.append(line)
            end += len(line)
            spans.append(end)
            for name in FIELDS:
                hashes.extend(map(term_hash, found[name]))
                spans.append(base + len(hashes))
            hashes.extend(sorted(gram_hashes(entry.name)))
            spans.append(base + len(hashes))
        return {"rows": b"".join(lines), "spans": spans.tobytes(), "terms": hashes.tobytes()}


class _Cut(Struct, frozen=True):
    """An entry in pieces: the stems of every field, and by the hash of a stem a word that has it."""

    stems: Mapping[str, list[str]]
    words: Mapping[int, str]


def _cut(entry: Entry, words: WordIndex) -> _Cut:
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
    return _Cut(stems, said)


def _vectors(
    encoder: Encoder, batch: Sequence[Entry], cut: Sequence[_Cut], known: set[int], shots: int
) -> dict[str, bytes]:
    """What the files of vectors get for a batch, with `shots` bytes of examples there already; `known` are the words
    that have a vector, and grows."""
    from navigator_kernel.routing.lexicon import worded
    from navigator_kernel.routing.vectors import packed

    new = {key: word for found in cut for key, word in found.words.items() if key not in known}
    known.update(new)
    return packed(encoder, batch, shots) | worded(encoder, new)
