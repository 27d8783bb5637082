"""Computes the numbers of `features` for all candidates at once, with arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from navigator_kernel.routing.features import FIELDS, K1, LEXICAL, B

if TYPE_CHECKING:
    from navigator_kernel.routing.features import QueryFeatures

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ids = np.ndarray[Any, np.dtype[np.int64]]
Hashes = np.ndarray[Any, np.dtype[np.uint32]]
_SAID = [FIELDS.index(name) for name in ("name", "purpose", "tags")]


class TermMatrix:
    """The hashes of all rows' terms, with `width` spans for each row: the end of its line, of its FIELDS, and of the
    runs of three characters of its name. `averages` are the average lengths of FIELDS."""

    def __init__(self, terms: memoryview, spans: memoryview, width: int, averages: Sequence[float]) -> None:
        self._terms, self._spans = np.frombuffer(terms, dtype=np.uint32), np.frombuffer(spans, dtype=np.int64)
        self._width, self._bounds = width, np.array([-1, *range(1, width)])  # a row begins at the end of the one before
        self._averages = np.maximum(np.array(averages), 1.0)

    def of(self, rows: Sequence[int]) -> TermBatch:
        """The terms of these rows, one after the other."""
        at = np.array(rows, dtype=np.int64)
        bounds = self._spans.take(at[:, None] * self._width + self._bounds)
        bounds[at == 0, 0] = 0
        lengths = np.diff(bounds, axis=1)
        flat = lengths.ravel()
        shift = bounds[:, :-1].ravel() - (np.cumsum(flat) - flat)
        hashes = self._terms.take(np.repeat(shift, flat) + np.arange(int(flat.sum())))
        return TermBatch(hashes, lengths, self._averages)


class TermBatch:
    """The `hashes` of some rows, one after the other; `lengths` (rows, fields and grams) are those of each piece."""

    def __init__(self, hashes: Hashes, lengths: Ids, averages: Floats) -> None:
        self.hashes, self.lengths, self._averages = hashes, lengths, averages
        piece = np.repeat(np.arange(lengths.size), lengths.ravel())
        self.row, self.field = np.divmod(piece, lengths.shape[1])  # row and field of each hash

    def told(self, asked: QueryFeatures, wholes: Floats) -> Floats:
        """The numbers of LEXICAL for each row; `wholes` has the total rarity of the terms of each name."""
        rows = len(self.lengths)
        found = np.zeros((rows, len(LEXICAL)))
        keys = np.array(sorted(asked.terms), dtype=np.uint32)
        weights = np.array([asked.terms[key] for key in keys.tolist()])
        counts = self._counts(keys)
        lengths = self.lengths[:, : len(FIELDS), None]
        norm = K1 * (1 - B + B * lengths / self._averages[None, :, None])
        found[:, : len(FIELDS)] = (counts * (K1 + 1) / (counts + norm)) @ weights / asked.mass
        named = (counts[:, 0] > 0) @ weights
        at = len(FIELDS)
        found[:, at] = (counts[:, _SAID].sum(axis=1) > 0) @ weights / asked.mass
        found[:, at + 1] = named / asked.mass
        found[:, at + 2] = np.divide(named, wholes, out=np.zeros(rows), where=wholes > 0)
        found[:, at + 3] = self._alike(asked)
        return found

    def _counts(self, keys: Hashes) -> Floats:
        """How often each field of each row has each of `keys`."""
        shape = (len(self.lengths), len(FIELDS), len(keys))
        if not len(keys):
            return np.zeros(shape)
        place = np.minimum(np.searchsorted(keys, self.hashes), len(keys) - 1)
        hits = np.flatnonzero((keys[place] == self.hashes) & (self.field < len(FIELDS)))
        cells = (self.row[hits] * len(FIELDS) + self.field[hits]) * len(keys) + place[hits]
        return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)

    def _alike(self, asked: QueryFeatures) -> Floats:
        """The share of each name's grams that the message has."""
        mine = self.field == len(FIELDS)
        grams = np.array(sorted(asked.grams), dtype=np.uint32)
        said = self.hashes[mine]
        place = np.minimum(np.searchsorted(grams, said), max(len(grams) - 1, 0))
        hits = grams[place] == said if len(grams) else np.zeros(len(said), bool)
        both = np.bincount(self.row[mine][hits], minlength=len(self.lengths))
        return both / np.maximum(self.lengths[:, len(FIELDS)], 1)

    def names(self, rows: Sequence[int]) -> list[list[int]]:
        """The hashes of the names of `rows`, which are positions in this batch."""
        sizes = self.lengths.sum(axis=1)
        starts, lengths = (np.cumsum(sizes) - sizes).tolist(), self.lengths[:, 0].tolist()
        return [self.hashes[starts[row] : starts[row] + lengths[row]].tolist() for row in rows]

    def titles(self, rarities: Sequence[Sequence[float]]) -> tuple[Floats, Floats]:
        """The total rarity of each row's name, and the share of each hash in it; `rarities` has the weight of every
        word of a name; other hashes count nothing."""
        wholes, shares = np.array([sum(one) for one in rarities]), np.zeros(len(self.hashes))
        told = np.array([*chain.from_iterable(rarities)])
        shares[self.field == 0] = told / np.repeat(np.where(wholes > 0, wholes, 1.0), self.lengths[:, 0])
        return wholes, shares

    def compared(self, fields: Sequence[int], shares: Floats) -> tuple[Hashes, Ids, Floats]:
        """The hashes of these fields, how many each row has, and the shares of them."""
        among = np.zeros(self.lengths.shape[1], dtype=bool)
        among[list(fields)] = True
        wanted = np.flatnonzero(among[self.field])
        return self.hashes[wanted], self.lengths[:, list(fields)].sum(axis=1), shares[wanted]


def places(numbers: Floats) -> Floats:
    """One divided by the rank of each number, highest first; equal numbers have one rank, and 0 has none."""
    ranks = 1.0 + (numbers[None, :] > numbers[:, None]).sum(axis=1)
    return np.where(numbers > 0, 1.0 / ranks, 0.0)
