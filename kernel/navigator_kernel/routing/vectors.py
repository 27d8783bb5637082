"""The vectors of an index: stored as float16, compared as float32, on one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from navigator_kernel.adapters.index.columns import unmapped
from navigator_kernel.errors import Damaged

if TYPE_CHECKING:
    from navigator_kernel.model_ports import Encoder, TextKind
    from navigator_kernel.routing.entries import Entry

FACETS = ("name", "text", "examples")
SHOTS = 32  # examples of a row with their own vector
EXACT = 10_000  # rows up to which every vector is compared exactly
EXPLAINING, SHARPNESS = 320, 2.0  # nearest examples that share a message, and how sharply they are distinguished
DOUBT, TEXT_DOUBT = 0.015, 0.1  # noise of a row's only example, and of its text or another message
FEW = 8  # examples that describe a row half
PROBED = 48  # clusters searched for a query
_SAMPLE, _ROUNDS = 10_000, 4  # rows from which cluster centres are computed, and the number of iterations
_CHUNK = 8_192

Floats = np.ndarray[Any, np.dtype[np.float32]]


def packed(encoder: Encoder, entries: Sequence[Entry], before: int) -> dict[str, bytes]:
    """The bytes that the files `vectors`, `shots` and `shot_ends` get for `entries`, after `before` bytes of shots. A
    row has three vectors: its name, its text, and the mean of its examples, or else its text again."""
    texts = [text for entry in entries for text in (entry.title, entry.text)]
    spoken = [text for entry in entries for text in entry.examples[:SHOTS]]
    told = _encoded(encoder, texts, "document").reshape(-1, 2, encoder.dimensions)
    said = _encoded(encoder, spoken, "query")  # an example is what a person would ask
    rows, shots, ends, at, end = [], [], [], 0, before
    for entry, (name, text) in zip(entries, told, strict=True):
        count = len(entry.examples[:SHOTS])
        held = said[at : at + count]
        rows.append(np.stack([name, text, _middle(held) if count else text]).astype(np.float16))
        shots.append(held.astype(np.float16).tobytes())
        end += len(shots[-1])
        ends.append(end)
        at += count
    vectors = np.stack(rows).tobytes() if rows else b""
    return {"vectors": vectors, "shots": b"".join(shots), "shot_ends": np.array(ends, dtype=np.int64).tobytes()}


def _encoded(encoder: Encoder, texts: Sequence[str], kind: TextKind) -> Floats:
    if not texts:
        return np.empty((0, encoder.dimensions), dtype=np.float32)
    return np.asarray(encoder.encode(texts, kind), dtype=np.float32)


def _middle(vectors: Floats) -> Floats:
    mean: Floats = vectors.mean(axis=0)
    return mean / max(float(np.linalg.norm(mean)), 1e-6)


class Vectors:
    """The vectors of `rows` rows, from the bytes of their files. `picked` reads some rows of `vectors`, if there are
    many; `before` is the search index of an older state, which had the first of these rows."""

    def __init__(
        self,
        *,
        vectors: memoryview,
        shots: memoryview,
        shot_ends: memoryview,
        rows: int,
        dimensions: int,
        picked: Callable[[Iterable[int]], bytes] | None = None,
        before: VectorIndex | None = None,
    ) -> None:
        if len(vectors) != rows * len(FACETS) * dimensions * 2 or len(shot_ends) != rows * 8:
            raise Damaged("the vectors do not match the rows", hint="they will be rebuilt")
        self._held = np.frombuffer(vectors, dtype=np.float16).reshape(rows, len(FACETS), dimensions)
        self._shots = np.frombuffer(shots, dtype=np.float16).reshape(-1, dimensions)
        self._shot_ends = np.frombuffer(shot_ends, dtype=np.int64) // (dimensions * 2)
        self._picked = picked
        self.search = VectorIndex(self._held, partial(unmapped, vectors), before)

    def near(self, query: Floats, limit: int) -> tuple[np.ndarray[Any, Any], Floats]:
        """The `limit` rows nearest to `query`, nearest first, with their cosines."""
        return self.search.near(query, limit, self._of)

    def _of(self, rows: Sequence[int]) -> np.ndarray[Any, Any]:
        if self._picked is None:
            return self._held[list(rows)]
        return np.frombuffer(self._picked(rows), dtype=np.float16).reshape(-1, *self._held.shape[1:])

    def measured(self, query: Floats, rows: Sequence[int], others: Floats | None = None) -> Floats:
        """For each row, the cosines of its name, its text and its nearest example (at least 0), how well examples
        describe it, from 0 to 1, and its share of the message, which it shares with `others`, vectors of messages that
        are for no row."""
        found = np.zeros((len(rows), 5), dtype=np.float32)
        if not len(rows):
            return found
        held = self._of(rows)[:, :2].astype(np.float32)
        found[:, :2] = held @ query
        spans = [(int(self._shot_ends[row - 1]) if row else 0, int(self._shot_ends[row])) for row in rows]
        counts = [end - start for start, end in spans]
        shots = np.concatenate([self._shots[:0], *(self._shots[start:end] for start, end in spans)]).astype(np.float32)
        owners, cosines = np.repeat(np.arange(len(rows)), counts), shots @ query
        np.maximum.at(found[:, 2], owners, cosines)
        found[:, 3] = [count / (count + FEW) for count in counts]
        nearest = _top(cosines, EXPLAINING)
        # the more examples a row has, the noisier each is, so that copies of another row's examples gain little
        doubts = np.float32(DOUBT) * np.array(counts, dtype=np.float32)[owners[nearest]]
        texts = held[:, 1] if others is None else np.concatenate([held[:, 1], others])
        found[:, 4] = _shared(query, texts, shots[nearest], owners[nearest], doubts)[: len(rows)]
        return found


class VectorIndex:
    """The search index of rows. Up to EXACT rows are compared in full; of more, only those that were added after the
    clusters were made. `before` is the index of the first of these rows."""

    def __init__(
        self, held: np.ndarray[Any, Any], forget: Callable[[], None], before: VectorIndex | None = None
    ) -> None:
        """`forget` frees the memory that `held` was read into."""
        self.clusters: _Clusters | None
        if before is not None and len(held) - before.clustered <= EXACT:
            self.clusters, told = before.clusters, before.told
        else:
            self.clusters = _Clusters(held, forget) if len(held) > EXACT else None
            told = np.empty((0, held.shape[2]), dtype=np.float32)
        self.told: Floats = np.concatenate([told, _told(held[self.clustered + len(told) :])])

    @property
    def clustered(self) -> int:
        """The number of rows that are in clusters; these are the first ones."""
        return 0 if self.clusters is None else self.clusters.rows

    def near(
        self, query: Floats, limit: int, of: Callable[[Sequence[int]], np.ndarray[Any, Any]]
    ) -> tuple[np.ndarray[Any, Any], Floats]:
        """The `limit` rows nearest to `query`, nearest first, with their cosines; `of` reads the vectors of rows."""
        found = _top(self.told @ query, limit)
        rows, cosines = found + self.clustered, self.told[found] @ query
        if self.clusters is None:
            return rows, cosines
        rough = self.clusters.near(query, limit + limit // 4)  # by int8 vectors; twice as many rows would find no more
        rows, cosines = np.append(rough, rows), np.append(_told(of(rough.tolist())) @ query, cosines)
        best = _top(cosines, limit)
        return rows[best], cosines[best]


class _Clusters:
    """Rows as bytes, grouped by their nearest cluster centre: only the clusters nearest to a query are searched (Jégou
    et al. 2011, inverted file). Of 100,000 rows that is a tenth, which has five of six near rows."""

    def __init__(self, held: np.ndarray[Any, Any], forget: Callable[[], None]) -> None:
        self.rows, step = len(held), max(1, len(held) // _SAMPLE)
        sample = np.concatenate([told for _, told in _read(held, forget, step)])
        self._middles = _middles(sample, 1 << round(np.log2(1.6 * np.sqrt(self.rows))))
        self._step = max(float(np.abs(sample).max()), 1e-6) / 127
        nearest = np.concatenate([_nearest(told, self._middles) for _, told in _read(held, forget)])
        self._order = np.argsort(nearest, kind="stable")
        self._starts = np.searchsorted(nearest[self._order], np.arange(len(self._middles) + 1))
        self._bytes, places = np.empty((self.rows, held.shape[2]), dtype=np.int8), np.argsort(self._order)
        for at, told in _read(held, forget):
            self._bytes[places[at : at + len(told)]] = np.clip(np.rint(told / self._step), -127, 127)

    def near(self, query: Floats, limit: int) -> np.ndarray[Any, Any]:
        """About the `limit` rows nearest to `query`, nearest first."""
        probed = _top(self._middles @ query, PROBED)
        spans = [(int(self._starts[at]), int(self._starts[at + 1])) for at in probed]
        scores = np.concatenate([self._bytes[begin:end].astype(np.float32) @ query for begin, end in spans])
        places = np.concatenate([np.arange(begin, end) for begin, end in spans])
        found: np.ndarray[Any, Any] = self._order[places[_top(scores, limit)]]
        return found


def _read(held: np.ndarray[Any, Any], forget: Callable[[], None], step: int = 1) -> Iterator[tuple[int, Floats]]:
    """Yields the search vectors of every `step`-th row, in pieces, each with the number of its first row."""
    size = max(1, _CHUNK // step) * step
    for at in range(0, len(held), size):
        yield at, _told(held[at : at + size : step])
        forget()


def _middles(sample: Floats, count: int) -> Floats:
    """Spherical k-means (Dhillon & Modha 2001)."""
    found: Floats = sample[np.linspace(0, len(sample) - 1, count).astype(int)]
    for _ in range(_ROUNDS):
        nearest = _nearest(sample, found)
        order = np.argsort(nearest, kind="stable")
        there, starts = np.unique(nearest[order], return_index=True)
        found[there] = np.add.reduceat(sample[order], starts, axis=0)
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-6)
    return found


def _nearest(rows: Floats, middles: Floats) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = np.argmax(rows @ middles.T, axis=1)
    return found


def _shared(query: Floats, texts: Floats, shots: Floats, owners: np.ndarray[Any, Any], doubts: Floats) -> Floats:
    """The share of a message that is each row's, 0 to 1: kernel ridge regression (Saunders et al. 1998) of "it is this
    row's" over the examples, whose rows are `owners` and whose noise is `doubts`, and over every row's text. The kernel
    is that of von Mises and Fisher. Rows with nearly the same text share the messages that are near all of them."""
    held = np.concatenate([shots, texts])
    kernel = np.exp(SHARPNESS * (held @ held.T - 1.0))
    kernel[np.diag_indices(len(kernel))] += np.append(doubts, np.full(len(texts), TEXT_DOUBT, dtype=np.float32))
    weights = np.linalg.solve(kernel, np.exp(SHARPNESS * (held @ query - 1.0)))
    shares = np.bincount(np.append(owners, np.arange(len(texts))), weights, minlength=len(texts))
    return np.clip(shares, 0.0, 1.0).astype(np.float32)


def _told(held: np.ndarray[Any, Any]) -> Floats:
    """The search vectors of rows: each is halfway between a row's text and the mean of its examples."""
    both: Floats = held[:, 1].astype(np.float32) + held[:, 2].astype(np.float32)
    both /= np.maximum(np.linalg.norm(both, axis=1, keepdims=True), 1e-6)
    return both


def _top(scores: Floats, limit: int) -> np.ndarray[Any, Any]:
    """The indices of the `limit` highest scores, highest first; of equal scores the earlier first."""
    limit = min(limit, len(scores))
    found = np.argpartition(-scores, limit - 1)[:limit] if limit < len(scores) else np.arange(len(scores))
    return found[np.lexsort((found, -scores[found]))]
