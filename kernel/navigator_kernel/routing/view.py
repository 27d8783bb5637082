"""A snapshot of an index, which never changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from msgspec import Struct

from navigator_kernel.adapters.index.columns import RecordReader, at_hand
from navigator_kernel.adapters.index.word_index import WordIndex
from navigator_kernel.errors import Damaged
from navigator_kernel.routing.entries import DIGEST_SIZE
from navigator_kernel.routing.features import FIELDS
from navigator_kernel.routing.words import TextIndex

if TYPE_CHECKING:
    from navigator_kernel.adapters.index.columns import IndexHead, SegmentStore
    from navigator_kernel.model_ports import Encoder
    from navigator_kernel.routing.arrays import TermMatrix
    from navigator_kernel.routing.lexicon import WordVectors
    from navigator_kernel.routing.vectors import VectorIndex, Vectors

INDEXED = ("name", "purpose", "examples", "tags", "body")  # fields that are searched for candidates
WIDTH = 2 + len(FIELDS)  # spans of a row: the ends of its line, of each of its fields, and of its grams


class IndexedEntry(Struct, frozen=True):
    """One entry as it is in the index; `stems` are those of its name."""

    id: str
    name: str
    priority: int
    stems: tuple[str, ...]


class IndexSnapshot:
    """The index that `head` describes. An older snapshot may pass on its open parts: `base`, the index of its words in
    tantivy, and `search`, the index of its vectors. Damaged if the files do not fit each other."""

    def __init__(
        self,
        columns: SegmentStore,
        head: IndexHead,
        encoder: Encoder | None,
        *,
        base: WordIndex | None = None,
        search: VectorIndex | None = None,
    ) -> None:
        self._columns, self.head, self._encoder = columns, head, encoder
        self._lines = columns.mapped(head, "rows")
        self._spans, self._terms = columns.mapped(head, "spans").cast("q"), columns.mapped(head, "terms").cast("I")
        if len(self._spans) != head.rows * WIDTH or (head.rows and self._lines[-1] != ord("\n")):
            raise Damaged("the rows of the index do not match each other", hint="it will be rebuilt")
        base = base or WordIndex(INDEXED, columns.path(head, "words"))
        self.words = TextIndex(base, head, columns.mapped(head, "newest"))
        self.search = search
        self._vectors: Vectors | None = None
        self._lexicon: WordVectors | None = None
        self._cut: TermMatrix | None = None

    @property
    def vectors(self) -> Vectors | None:
        """The vectors, mapped on first use, which needs numpy; None without an encoder."""
        if self._vectors is None and self._encoder is not None:
            self._vectors = self._open_vectors(self._encoder.dimensions)
            self.search = self._vectors.search
        return self._vectors

    def _open_vectors(self, dimensions: int) -> Vectors:
        from navigator_kernel.routing.vectors import EXACT, Vectors

        held = {name: self._columns.mapped(self.head, name) for name in ("vectors", "shots", "shot_ends")}
        size = len(held["vectors"]) // max(rows := self.head.rows, 1)
        picked = RecordReader(self._columns.path(self.head, "vectors"), size) if rows > EXACT else None
        return Vectors(**held, rows=rows, dimensions=dimensions, picked=picked, before=self.search)

    @property
    def lexicon(self) -> WordVectors | None:
        """The word vectors, mapped like `vectors`."""
        if self._lexicon is None and self._encoder is not None:
            self._lexicon = self._open_lexicon(self._encoder.dimensions)
        return self._lexicon

    def _open_lexicon(self, dimensions: int) -> WordVectors:
        from navigator_kernel.routing.lexicon import WordVectors

        held = {name: at_hand(self._columns.mapped(self.head, name)) for name in ("word_keys", "word_vectors")}
        return WordVectors(**held, dimensions=dimensions)

    @property
    def cut(self) -> TermMatrix | None:
        """The terms of every row in arrays, mapped like `vectors`."""
        if self._cut is None and self._encoder is not None:
            self._cut = self._open_cut()
        return self._cut

    def _open_cut(self) -> TermMatrix:
        from navigator_kernel.routing.arrays import TermMatrix

        return TermMatrix(at_hand(self._terms), at_hand(self._spans), WIDTH, self.averages)

    @property
    def count(self) -> int:
        """The number of entries, without dead ones."""
        return self.head.rows - len(self.head.dead)

    @property
    def averages(self) -> list[float]:
        """The average number of terms in a row, for each of FIELDS."""
        lengths, rows = self.head.note["lengths"], max(self.head.rows, 1)
        return [lengths[name] / rows for name in FIELDS]

    def row(self, at: int) -> IndexedEntry:
        start = self._spans[(at - 1) * WIDTH] if at else 0
        key, name, priority, stems = json.loads(bytes(self._lines[start : self._spans[at * WIDTH]]))
        return IndexedEntry(key, name, priority, tuple(stems))

    def fields(self, at: int) -> list[list[int]]:
        """The hashes of a row's stems, by FIELDS."""
        start = self._spans[at * WIDTH - 1] if at else 0
        ends = self._spans[at * WIDTH + 1 : (at + 1) * WIDTH - 1].tolist()
        return [self._terms[a:b].tolist() for a, b in zip([start, *ends], ends, strict=False)]

    def held(self) -> dict[str, int]:
        """The row of each entry by its digest, without dead ones."""
        digests = self._columns.mapped(self.head, "digests").hex()
        if len(digests) != self.head.rows * DIGEST_SIZE * 2:
            raise Damaged("the digests do not match the rows", hint="the index will be rebuilt")
        each = (digests[at : at + DIGEST_SIZE * 2] for at in range(0, len(digests), DIGEST_SIZE * 2))
        return {digest: at for at, digest in enumerate(each) if at not in self.head.dead}
