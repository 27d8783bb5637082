"""The words of all rows: most in tantivy, the newest in a file, because a commit of tantivy takes 10 to 30 ms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from navigator_kernel.errors import Damaged
from navigator_kernel.routing.features import bm25, rarity

if TYPE_CHECKING:
    from navigator_kernel.adapters.index.columns import IndexHead
    from navigator_kernel.adapters.index.word_index import WordIndex

FEW = 32  # added and removed rows that can wait outside tantivy
SMALL = 8_192  # distinct stems of the added rows, summed over rows and fields
Stems = Mapping[str, Mapping[str, int]]  # of a row: by field, the count of each stem
_LINES = Decoder(tuple[int, dict[str, dict[str, int]]])


class PendingRows(Struct, frozen=True):
    """The changes that are not in tantivy yet: the stems of `newest` rows, and the `buried` rows that it still has."""

    newest: Mapping[int, Stems]
    buried: frozenset[int]

    @property
    def few(self) -> bool:
        size = sum(len(counts) for stems in self.newest.values() for counts in stems.values())
        return len(self.newest) + len(self.buried) <= FEW and size <= SMALL


class TextIndex:
    """`base` is the index in tantivy; `lines` are those of newer rows, each `[row, stems]`. The head's note says which
    of them count: `rows`, how many of the first are in tantivy, which of these are `buried`, and where lines `start`.
    Damaged if they cannot be read."""

    def __init__(self, base: WordIndex, head: IndexHead, lines: memoryview) -> None:
        note, total = head.note.get("words", {}), max(head.rows, 1)
        self.base, self.rows, self.start = base, int(note.get("rows", 0)), int(note.get("start", 0))
        self._count = head.rows - len(head.dead)
        self._averages = {name: length / total for name, length in head.note.get("lengths", {}).items()}
        try:
            held = _LINES.decode_lines(lines[self.start :])
        except MsgspecError as error:
            raise Damaged("the newest words of the index cannot be read", hint="it will be rebuilt") from error
        newest = {row: stems for row, stems in held if row not in head.dead}
        self.late = PendingRows(newest, frozenset(note.get("buried", ())))

    def stems(self, words: Sequence[str]) -> list[str]:
        """As `WordIndex.stems`."""
        return self.base.stems(words)

    def search(self, terms: Mapping[str, float], weights: Mapping[str, float], limit: int) -> list[tuple[int, float]]:
        """As `WordIndex.search`. Rows that were added to tantivy since this state was read do not count."""
        buried = self.late.buried
        found = [
            (row, score)
            for row, score in self.base.search(terms, weights, limit + len(buried))
            if row < self.rows and row not in buried
        ]
        late = self._scores(terms, weights)
        if late:
            found = sorted([*found, *late.items()], key=lambda one: -one[1])
        return found[:limit]

    def seen(self, field: str, term: str) -> int:
        """The number of rows whose field has the term."""
        return self.base.seen(field, term) + len(self._having(field, term))

    def after(self, new: Mapping[int, Stems], gone: Collection[int]) -> PendingRows:
        """The changes that tantivy would not have after `new` rows are added and the `gone` ones removed."""
        newest = {row: stems for row, stems in {**self.late.newest, **new}.items() if row not in gone}
        return PendingRows(newest, self.late.buried | {row for row in gone if row < self.rows})

    def _having(self, field: str, term: str) -> list[tuple[int, int, int]]:
        """The newest rows whose field has the term, how often it has it, and how many stems it has."""
        newest = self.late.newest
        rows = [(row, stems[field]) for row, stems in newest.items() if term in stems[field]] if newest else []
        return [(row, counts[term], sum(counts.values())) for row, counts in rows]

    def _scores(self, terms: Mapping[str, float], weights: Mapping[str, float]) -> dict[int, float]:
        """The BM25 scores of the newest rows, as in tantivy, except for its rounding of lengths."""
        scores: dict[int, float] = {}
        if not self.late.newest:
            return scores
        for term, boost in terms.items():
            for name, weight in weights.items():
                for row, count, length in self._having(name, term):
                    rare = rarity(self.seen(name, term), self._count)
                    score = boost * weight * bm25({term: rare}, {term: count}, length, self._averages[name])
                    scores[row] = scores.get(row, 0.0) + score
        return scores


def counted(stems: Mapping[str, Sequence[str]], fields: Sequence[str]) -> Stems:
    return {name: Counter(stems[name]) for name in fields}


def spelt(stems: Stems) -> dict[str, list[str]]:
    """Each stem as often as it occurs; the original order is lost."""
    return {name: list(Counter(counts).elements()) for name, counts in stems.items()}
