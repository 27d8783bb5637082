"""The vectors of an index: kept as half floats, compared as floats, on one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from navigator_kernel.errors import Damaged

if TYPE_CHECKING:
    from navigator_kernel.ports import Encoder, TextKind
    from navigator_kernel.routing.entries import Entry

FACETS = ("name", "text", "examples")
SHOTS = 32  # examples of a row that get a vector of their own
EXACT = 10_000  # rows up to which every vector is compared in full
EXPLAINING, SHARPNESS, RIDGE, LEAST = 128, 4.0, 0.02, 0.1
SKETCH = 64  # dimensions of the sketch that picks candidates among more
_SAMPLE = 20_000  # rows that the directions of the sketch are taken from
_CHUNK = 8_192

Floats = np.ndarray[Any, np.dtype[np.float32]]


def packed(encoder: Encoder, entries: Sequence[Entry], before: int) -> dict[str, bytes]:
    """What the files `vectors`, `shots` and `shot_ends` get for `entries`, with `before` bytes of shots there already.
    A row has three vectors: its name, its text, and the middle of its examples, or else its text again."""
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
    """The vectors of `rows` rows, from the bytes of their files."""

    def __init__(
        self, *, vectors: memoryview, shots: memoryview, shot_ends: memoryview, rows: int, dimensions: int
    ) -> None:
        if len(vectors) != rows * len(FACETS) * dimensions * 2 or len(shot_ends) != rows * 8:
            raise Damaged("the vectors do not fit the rows", hint="they are made anew")
        self._held = np.frombuffer(vectors, dtype=np.float16).reshape(rows, len(FACETS), dimensions)
        self._shots = np.frombuffer(shots, dtype=np.float16).reshape(-1, dimensions)
        self._shot_ends = np.frombuffer(shot_ends, dtype=np.int64) // (dimensions * 2)
        self._basis: Floats | None = None
        if rows <= EXACT:
            self._scan = _told(self._held)
        else:
            self._basis, self._scan = self._sketched(rows)

    def near(self, query: Floats, limit: int) -> tuple[np.ndarray[Any, Any], Floats]:
        """The `limit` rows nearest to `query`, nearest first, with their cosines."""
        if self._basis is None:
            found = _top(self._scan @ query, limit)
            return found, self._scan[found] @ query
        rough = _top(self._scan @ (self._basis.T @ query), limit * 4)
        exact = _told(self._held[rough]) @ query
        best = _top(exact, limit)
        return rough[best], exact[best]

    def measured(self, query: Floats, rows: Sequence[int]) -> list[list[float]]:
        """Of each row the cosines of its name, its text, the middle of its examples and the nearest of these, and how
        much of the message its examples explain; the last three are 0 for a row without examples."""
        near = (self._held[list(rows)].astype(np.float32) @ query).tolist() if rows else []
        spans = [(int(self._shot_ends[row - 1]) if row else 0, int(self._shot_ends[row])) for row in rows]
        taught = [(at, start, end) for at, (start, end) in enumerate(spans) if end > start]
        found = [[name, text, 0.0, 0.0, 0.0] for name, text, _ in near]
        if taught:
            shots = np.concatenate([self._shots[start:end] for _, start, end in taught]).astype(np.float32)
            owners = np.repeat(np.arange(len(taught)), [end - start for _, start, end in taught])
            cosines = shots @ query
            best = np.full(len(taught), -1.0, dtype=np.float32)
            np.maximum.at(best, owners, cosines)
            explained = _explained(shots, cosines, owners)
            for (at, _, _), *numbers in zip(taught, best.tolist(), explained.tolist(), strict=True):
                found[at][2:] = [near[at][2], *numbers]
        return found

    def _sketched(self, rows: int) -> tuple[Floats, Floats]:
        """Principal directions of a sample, and all rows along them."""
        sample = _told(self._held[:: max(1, rows // _SAMPLE)])
        _, directions = np.linalg.eigh(sample.T @ sample)
        basis = np.ascontiguousarray(directions[:, -SKETCH:])
        scan = np.empty((rows, SKETCH), dtype=np.float32)
        for start in range(0, rows, _CHUNK):
            scan[start : start + _CHUNK] = _told(self._held[start : start + _CHUNK]) @ basis
        return basis, scan


def _explained(shots: Floats, cosines: Floats, owners: np.ndarray[Any, Any]) -> Floats:
    """How much of a message the examples of each owner explain, from 0 for at most LEAST of it to 1 for all, by its
    logarithm: kernel ridge regression (Saunders et al. 1998) of "it is this owner's" over the EXPLAINING examples
    nearest to the message, with the kernel of von Mises and Fisher. Two who say nearly the same share it."""
    nearest = _top(cosines, EXPLAINING)
    shots, cosines = shots[nearest], cosines[nearest]
    kernel = np.exp(SHARPNESS * (shots @ shots.T - 1.0))
    kernel[np.diag_indices(len(kernel))] += RIDGE
    weights = np.linalg.solve(kernel, np.exp(SHARPNESS * (cosines - 1.0)))
    found = np.zeros(int(owners[-1]) + 1, dtype=np.float32)
    np.add.at(found, owners[nearest], weights)
    scaled: Floats = 1.0 - np.log(np.maximum(found, LEAST)) / np.log(LEAST)
    return scaled


def _told(held: np.ndarray[Any, Any]) -> Floats:
    """What candidates are picked by: between a row's text and the middle of its examples."""
    both: Floats = held[:, 1].astype(np.float32) + held[:, 2].astype(np.float32)
    both /= np.maximum(np.linalg.norm(both, axis=1, keepdims=True), 1e-6)
    return both


def _top(scores: Floats, limit: int) -> np.ndarray[Any, Any]:
    """The places of the `limit` highest, highest first; of equals the earlier."""
    limit = min(limit, len(scores))
    found = np.argpartition(-scores, limit - 1)[:limit] if limit < len(scores) else np.arange(len(scores))
    return found[np.lexsort((found, -scores[found]))]
