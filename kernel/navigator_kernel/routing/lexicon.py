"""The words of an index as vectors: how near the words of a message come to those of an entry, in either language.

Each word of the message counts by its rarity, with the word of the entry that is nearest to it (soft cardinality of
a match, as in Kusner et al. 2015 relaxed to the nearest word), so that no word has to be there itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from navigator_kernel.errors import Damaged
from navigator_kernel.ports import Encoder

_KEPT = 4_096  # words of messages whose vectors are kept
_BATCH = 256

Floats = np.ndarray[Any, np.dtype[np.float32]]


def worded(encoder: Encoder, words: Mapping[int, str]) -> dict[str, bytes]:
    """What the files `word_keys` and `word_vectors` get for `words`, each by the hash of its stem."""
    texts = list(words.values())
    parts = [encoder.encode(texts[at : at + _BATCH], "word") for at in range(0, len(texts), _BATCH)]
    held = np.concatenate(parts).astype(np.float16) if parts else np.empty(0, np.float16)
    return {"word_keys": np.array(list(words), dtype=np.uint32).tobytes(), "word_vectors": held.tobytes()}


class Lexicon:
    """The vectors of an index's words by the hashes of their stems, and of words that it has not by themselves."""

    def __init__(self, *, word_keys: memoryview, word_vectors: memoryview, encoder: Encoder) -> None:
        keys = np.frombuffer(word_keys, dtype=np.uint32)
        if len(word_vectors) != len(keys) * encoder.dimensions * 2:
            raise Damaged("the vectors do not fit the words", hint="they are made anew")
        self._held = np.frombuffer(word_vectors, dtype=np.float16).reshape(len(keys), encoder.dimensions)
        self._order = np.argsort(keys, kind="stable")
        self._keys, self._encoder = keys[self._order], encoder
        self._others: dict[int, Floats] = {}

    def near(
        self,
        asked: Mapping[int, tuple[str, float]],
        entries: Sequence[Sequence[int]],
        titles: Sequence[Mapping[int, float]],
    ) -> list[tuple[float, float]]:
        """Of each entry how near the words of `asked` come to its words, and how near the words of its title come to
        those of `asked`; both are means by rarity, 0 to 1. `asked` maps the hash of a stem to a word and its rarity,
        `entries` are the hashes of an entry's stems, `titles` map those of its name to their rarities."""
        if not asked or not any(entries):
            return [(0.0, 0.0)] * len(entries)
        unique, where = np.unique(np.concatenate([np.array(e, dtype=np.uint32) for e in entries]), return_inverse=True)
        cosines = self._query(asked) @ self._found(unique).T
        rarities = np.array([rarity for _, rarity in asked.values()], dtype=np.float32)
        shares = rarities / max(float(rarities.sum()), 1e-6)
        best = dict(zip(unique.tolist(), cosines.max(axis=0).tolist(), strict=True))
        found, start = [], 0
        for entry, title in zip(entries, titles, strict=True):
            columns = where[start : start + len(entry)]
            start += len(entry)
            mean = float(shares @ cosines[:, columns].max(axis=1)) if len(columns) else 0.0
            whole = sum(title.values())
            named = sum(rarity * best.get(word, 0.0) for word, rarity in title.items()) / whole if whole else 0.0
            found.append((max(mean, 0.0), max(named, 0.0)))
        return found

    def _found(self, hashes: np.ndarray[Any, Any]) -> Floats:
        """A row for each; of zeros for one that is not there."""
        if not len(self._keys):
            return np.zeros((len(hashes), self._encoder.dimensions), dtype=np.float32)
        at = np.minimum(np.searchsorted(self._keys, hashes), len(self._keys) - 1)
        rows: Floats = self._held[self._order[at]].astype(np.float32)
        rows[self._keys[at] != hashes] = 0.0
        return rows

    def _query(self, asked: Mapping[int, tuple[str, float]]) -> Floats:
        """The vectors of a message's words; those that no entry has are encoded, once."""
        rows = self._found(np.array(list(asked), dtype=np.uint32))
        missing = [at for at, row in enumerate(rows) if not row.any()]
        hashes = list(asked)
        new = [hashes[at] for at in missing if hashes[at] not in self._others]
        if new:
            if len(self._others) > _KEPT:
                self._others.clear()
            vectors = self._encoder.encode([asked[word][0] for word in new], "word")
            self._others |= dict(zip(new, vectors, strict=True))
        for at in missing:
            rows[at] = self._others[hashes[at]]
        return rows
