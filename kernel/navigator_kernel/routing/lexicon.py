"""The vectors of an index's words: how near the words of a message are to those of an entry, in either language.

Each word of the message is compared with the nearest word of the entry, and counts by its rarity (soft cardinality of a
match, as in Kusner et al. 2015 relaxed to the nearest word), so that the words need not be the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from navigator_kernel.errors import Damaged

if TYPE_CHECKING:
    from navigator_kernel.model_ports import Encoder

_NEW = 6  # new words of one message that get a vector: a word that no entry has says less than a common one
_BATCH = 4_096  # words encoded at once

Floats = np.ndarray[Any, np.dtype[np.float32]]
Shares = np.ndarray[Any, np.dtype[np.float64]]
Places = np.ndarray[Any, np.dtype[np.intp]]
Hashes = np.ndarray[Any, np.dtype[np.uint32]]
Counts = np.ndarray[Any, np.dtype[np.int64]]


def worded(encoder: Encoder, words: Mapping[int, str]) -> dict[str, bytes]:
    """The contents of the files `word_keys` and `word_vectors` for `words`, each by the hash of its stem."""
    texts = list(words.values())
    parts = [encoder.encode(texts[at : at + _BATCH], "word") for at in range(0, len(texts), _BATCH)]
    held = np.concatenate(parts).astype(np.float16) if parts else np.empty(0, np.float16)
    return {"word_keys": np.array(list(words), dtype=np.uint32).tobytes(), "word_vectors": held.tobytes()}


class WordVectors:
    """The vectors of an index's words by the hashes of their stems, and those of a message's other words."""

    def __init__(self, *, word_keys: memoryview, word_vectors: memoryview, dimensions: int) -> None:
        keys = np.frombuffer(word_keys, dtype=np.uint32)
        if len(word_vectors) != len(keys) * dimensions * 2:
            raise Damaged("the vectors do not match the words", hint="they will be rebuilt")
        self._held = np.frombuffer(word_vectors, dtype=np.float16).reshape(len(keys), dimensions)
        self._order = np.argsort(keys, kind="stable")
        self._keys, self._dimensions = keys[self._order], dimensions
        self._others: dict[int, Floats] = {}

    def places(self, hashes: Sequence[int] | Hashes) -> Places:
        """The positions of the words with these stems; -1 for a stem without a vector."""
        wanted = np.asarray(hashes, dtype=np.uint32)
        if not len(self._keys):
            return np.full(len(wanted), -1)
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[at] == wanted, self._order[at], -1)

    def near(
        self, asked: Mapping[int, tuple[str, float]], hashes: Hashes, counts: Counts, titles: Shares
    ) -> tuple[Floats, Floats]:
        """For each entry, how near the words of `asked` are to its words, and how near the words of its title are to
        those of `asked`; both are means by rarity, 0 to 1, and 0 for an entry without words. `asked` maps the hash of a
        stem to a word and its rarity; `hashes` are the stems of all entries one after the other, `counts` their number
        in each entry, `titles` the share of each stem in its entry's title."""
        found = np.zeros((2, len(counts)), dtype=np.float32)
        there = np.flatnonzero(counts)
        if not asked or not len(there):
            return found[0], found[1]
        places, where = self._once(self.places(hashes))
        cosines = self._vectors(places) @ self._query(asked).T
        rarities = np.array([rarity for _, rarity in asked.values()], dtype=np.float32)
        shares = rarities / max(float(rarities.sum()), 1e-6)
        starts = (np.cumsum(counts) - counts)[there]
        found[0, there] = np.maximum.reduceat(cosines.take(where, axis=0), starts) @ shares
        found[1, there] = np.add.reduceat(cosines.max(axis=1)[where] * titles, starts)
        np.maximum(found, 0.0, out=found)
        return found[0], found[1]

    def _once(self, places: Places) -> tuple[Places, Places]:
        """The distinct places, and the index of each place among them; without sorting."""
        slots, order = np.empty(len(self._keys) + 1, dtype=np.intp), np.arange(len(places))
        slots[places] = order  # of equal places the last one wins; place -1 uses the last slot
        once = places[slots[places] == order]
        slots[once] = order[: len(once)]
        return once, slots[places]

    def _vectors(self, places: Places) -> Floats:
        """A row for each place; zeros for a place without a vector."""
        if not len(self._keys):
            return np.zeros((len(places), self._dimensions), dtype=np.float32)
        rows = self._held.take(places, axis=0).astype(np.float32)
        rows[places < 0] = 0.0
        return rows

    def unknown(self, asked: Mapping[int, tuple[str, float]]) -> dict[int, str]:
        """At most _NEW words of a message for which the index has no vector."""
        places = self.places(list(asked)).tolist()
        new = [key for key, place in zip(asked, places, strict=True) if place < 0]
        return {key: asked[key][0] for key in new[:_NEW]}

    def keep(self, keys: Iterable[int], vectors: Iterable[Floats]) -> None:
        """Stores the vectors of these words of the message, in place of those of the message before: the last digits
        depend on which words are encoded together, and a message must get the same numbers each time."""
        self._others = dict(zip(keys, vectors, strict=True))

    def _query(self, asked: Mapping[int, tuple[str, float]]) -> Floats:
        """The vectors of a message's words; zeros for an unknown word."""
        places = self.places(list(asked))
        rows = self._vectors(places)
        for at, key in enumerate(asked):
            if places[at] < 0 and key in self._others:
                rows[at] = self._others[key]
        return rows
