"""The vectors of an index, and what they say of a message: how near rows and words are, whether any skill is wanted.

They are stored as float16 and compared as float32, on one thread, all rows in full: 100,000 take 7 ms.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct

from navigator_kernel.errors import Damaged

if TYPE_CHECKING:
    from navigator_kernel.model_ports import Encoder, TextKind
    from navigator_kernel.routing.entries import Entry

FACETS = ("name", "text", "examples")
SHOTS = 32  # examples of a row with their own vector
EXPLAINING, SHARPNESS = 320, 2.0  # nearest examples that share a message, and how sharply they are distinguished
DOUBT, TEXT_DOUBT = 0.015, 0.1  # noise of a row's only example, and of its text or another message
KIN = 0.5  # cosine of two texts from which their skills do nearly the same
FEW = 8  # examples that describe a row half
OTHERS = 64  # messages that share a message with the examples of skills
_NEW = 6  # new words of one message that get a vector: a word that no entry has says less than a common one
_BATCH = 4_096  # words encoded at once, and rows read at once

Floats = np.ndarray[Any, np.dtype[np.float32]]
Shares = np.ndarray[Any, np.dtype[np.float64]]
Places = np.ndarray[Any, np.dtype[np.intp]]


def packed(encoder: Encoder, entries: Sequence[Entry], before: int) -> dict[str, bytes]:
    """The bytes that the files `vectors`, `shots` and `shot_ends` get for `entries`, after `before` bytes of shots. A
    row has three vectors: its name, its text, and the mean of its examples, or else its text again."""
    texts = _encoded(encoder, [text for entry in entries for text in (entry.title, entry.text)], "document")
    examples = [entry.examples[:SHOTS] for entry in entries]
    shots = _encoded(encoder, [text for each in examples for text in each], "query")  # what a person would ask
    ends = np.cumsum([len(each) for each in examples], dtype=np.int64)
    rows = []
    for (name, text), count, end in zip(
        texts.reshape(-1, 2, encoder.dimensions), map(len, examples), ends, strict=True
    ):
        mean = shots[end - count : end].mean(axis=0) if count else text
        rows.append(np.stack([name, text, mean / max(float(np.linalg.norm(mean)), 1e-6) if count else text]))
    return {
        "vectors": np.stack(rows).astype(np.float16).tobytes() if rows else b"",
        "shots": shots.astype(np.float16).tobytes(),
        "shot_ends": (before + ends * encoder.dimensions * 2).tobytes(),
    }


def _encoded(encoder: Encoder, texts: Sequence[str], kind: TextKind) -> Floats:
    if not texts:
        return np.empty((0, encoder.dimensions), dtype=np.float32)
    return np.asarray(encoder.encode(texts, kind), dtype=np.float32)


class Vectors:
    """The vectors of `rows` rows, from the bytes of their files."""

    def __init__(
        self, *, vectors: memoryview, shots: memoryview, shot_ends: memoryview, rows: int, dimensions: int
    ) -> None:
        if len(vectors) != rows * len(FACETS) * dimensions * 2 or len(shot_ends) != rows * 8:
            raise Damaged("the vectors do not match the rows", hint="they will be rebuilt")
        self._rows = np.frombuffer(vectors, dtype=np.float16).reshape(rows, len(FACETS), dimensions)
        self._shots = np.frombuffer(shots, dtype=np.float16).reshape(-1, dimensions)
        self._shot_ends = np.frombuffer(shot_ends, dtype=np.int64) // (dimensions * 2)
        # for the search, each row is halfway between its text and the mean of its examples
        self._middles = np.empty((rows, dimensions), dtype=np.float32)
        for at in range(0, rows, _BATCH):
            part = self._middles[at : at + _BATCH]
            np.sum(self._rows[at : at + _BATCH, 1:], axis=1, dtype=np.float32, out=part)
            part /= np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-6)

    def near(self, query: Floats, limit: int) -> tuple[Places, Floats]:
        """The `limit` rows nearest to `query`, nearest first, with their cosines."""
        cosines = self._middles @ query
        nearest = _top(cosines, limit)
        return nearest, cosines[nearest]

    def different(self, rows: Sequence[int], least: float = KIN) -> list[int]:
        """The positions in `rows` of those whose text is not as near as `least` to that of an earlier one of these."""
        texts, positions = self._rows[list(rows), 1].astype(np.float32), list[int]()
        kin = texts @ texts.T >= least
        for at in range(len(rows)):
            if not kin[at, positions].any():
                positions.append(at)
        return positions

    def measured(self, query: Floats, rows: Sequence[int], others: Floats | None = None) -> Floats:
        """For each row, the cosines of its name, its text and its nearest example (at least 0), how well examples
        describe it, from 0 to 1, and its share of the message, which it shares with `others`, vectors of messages that
        are for no row."""
        numbers = np.zeros((len(rows), 5), dtype=np.float32)
        if not len(rows):
            return numbers
        facets = self._rows[list(rows), :2].astype(np.float32)
        numbers[:, :2] = facets @ query
        spans = [(int(self._shot_ends[row - 1]) if row else 0, int(self._shot_ends[row])) for row in rows]
        counts = [end - start for start, end in spans]
        shots = np.concatenate([self._shots[:0], *(self._shots[start:end] for start, end in spans)]).astype(np.float32)
        owners, cosines = np.repeat(np.arange(len(rows)), counts), shots @ query
        np.maximum.at(numbers[:, 2], owners, cosines)
        numbers[:, 3] = [count / (count + FEW) for count in counts]
        nearest = _top(cosines, EXPLAINING)
        # the more examples a row has, the noisier each is, so that copies of another row's examples gain little
        doubts = np.float32(DOUBT) * np.array(counts, dtype=np.float32)[owners[nearest]]
        texts = facets[:, 1] if others is None else np.concatenate([facets[:, 1], others])
        numbers[:, 4] = _shared(query, texts, shots[nearest], owners[nearest], doubts)[: len(rows)]
        return numbers


def _shared(query: Floats, texts: Floats, shots: Floats, owners: np.ndarray[Any, Any], doubts: Floats) -> Floats:
    """The share of a message that is each row's, 0 to 1: kernel ridge regression (Saunders et al. 1998) of "it is this
    row's" over the examples, whose rows are `owners` and whose noise is `doubts`, and over every row's text. The kernel
    is that of von Mises and Fisher. Rows with nearly the same text share the messages that are near all of them."""
    known = np.concatenate([shots, texts])
    kernel = np.exp(SHARPNESS * (known @ known.T - 1.0))
    kernel[np.diag_indices(len(kernel))] += np.append(doubts, np.full(len(texts), TEXT_DOUBT, dtype=np.float32))
    weights = np.linalg.solve(kernel, np.exp(SHARPNESS * (known @ query - 1.0)))
    shares = np.bincount(np.append(owners, np.arange(len(texts))), weights, minlength=len(texts))
    return np.clip(shares, 0.0, 1.0).astype(np.float32)


def _top(scores: Floats, limit: int) -> np.ndarray[Any, Any]:
    """The indices of the `limit` highest scores, highest first; of equal scores the earlier first."""
    limit = min(limit, len(scores))
    order = np.argpartition(-scores, limit - 1)[:limit] if limit < len(scores) else np.arange(len(scores))
    return order[np.lexsort((order, -scores[order]))]


def places(numbers: Sequence[float]) -> Shares:
    """One divided by the rank of each number, highest first; equal numbers have one rank, and 0 has none."""
    values = np.array(numbers)
    ranks = 1.0 + (values[None, :] > values[:, None]).sum(axis=1)
    return np.where(values > 0, 1.0 / ranks, 0.0)


def worded(encoder: Encoder, words: Mapping[int, str]) -> dict[str, bytes]:
    """The contents of the files `word_keys` and `word_vectors` for `words`, each by the hash of its stem."""
    texts = list(words.values())
    parts = [encoder.encode(texts[at : at + _BATCH], "word") for at in range(0, len(texts), _BATCH)]
    vectors = np.concatenate(parts).astype(np.float16) if parts else np.empty(0, np.float16)
    return {"word_keys": np.array(list(words), dtype=np.uint32).tobytes(), "word_vectors": vectors.tobytes()}


class WordVectors:
    """The vectors of an index's words by the hashes of their stems, and those of a message's other words.

    Each word of the message is compared with the nearest word of an entry, and counts by its rarity (soft cardinality
    of a match, as in Kusner et al. 2015 relaxed to the nearest word), so that the words need not be the same, nor of
    one language.
    """

    def __init__(self, *, word_keys: memoryview, word_vectors: memoryview, dimensions: int) -> None:
        keys = np.frombuffer(word_keys, dtype=np.uint32)
        if len(word_vectors) != len(keys) * dimensions * 2:
            raise Damaged("the vectors do not match the words", hint="they will be rebuilt")
        self._words = np.frombuffer(word_vectors, dtype=np.float16).reshape(len(keys), dimensions)
        self._order = np.argsort(keys, kind="stable")
        self._keys, self._dimensions = keys[self._order], dimensions
        self._others: dict[int, Floats] = {}

    def near(
        self,
        words: Mapping[int, tuple[str, float]],
        hashes: Sequence[int],
        counts: Sequence[int],
        titles: Sequence[float],
    ) -> tuple[Floats, Floats]:
        """For each entry, how near `words` are to its words, and how near the words of its title are to `words`; both
        are means by rarity, 0 to 1, and 0 for an entry without words. `words` maps the hash of a stem to a word and
        its rarity; `hashes` are the stems of all entries one after the other, `counts` their number in each entry,
        `titles` the share of each stem in its entry's title."""
        near = np.zeros((2, len(counts)), dtype=np.float32)
        sizes = np.array(counts, dtype=np.intp)
        there = np.flatnonzero(sizes)
        if not words or not len(there):
            return near[0], near[1]
        places, where = np.unique(self._places(hashes), return_inverse=True)
        cosines = self._vectors(places) @ self._query(words).T
        rarities = np.array([rarity for _, rarity in words.values()], dtype=np.float32)
        shares = rarities / max(float(rarities.sum()), 1e-6)
        starts = (np.cumsum(sizes) - sizes)[there]
        near[0, there] = np.maximum.reduceat(cosines.take(where, axis=0), starts) @ shares
        near[1, there] = np.add.reduceat(cosines.max(axis=1)[where] * np.array(titles), starts)
        np.maximum(near, 0.0, out=near)
        return near[0], near[1]

    def _places(self, hashes: Sequence[int]) -> Places:
        """The positions of the words with these stems; -1 for a stem without a vector."""
        keys = np.array(hashes, dtype=np.uint32)
        if not len(self._keys):
            return np.full(len(keys), -1)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._order[at], -1)

    def _vectors(self, places: Places) -> Floats:
        """A row for each place; zeros for a place without a vector."""
        if not len(self._keys):
            return np.zeros((len(places), self._dimensions), dtype=np.float32)
        rows = self._words.take(places, axis=0).astype(np.float32)
        rows[places < 0] = 0.0
        return rows

    def _query(self, words: Mapping[int, tuple[str, float]]) -> Floats:
        """The vectors of a message's words; zeros for an unknown word."""
        places = self._places(list(words))
        rows = self._vectors(places)
        for at, key in enumerate(words):
            if places[at] < 0 and key in self._others:
                rows[at] = self._others[key]
        return rows

    def unknown(self, words: Mapping[int, tuple[str, float]]) -> dict[int, str]:
        """At most _NEW words of a message for which the index has no vector."""
        places = self._places(list(words)).tolist()
        new = [key for key, place in zip(words, places, strict=True) if place < 0]
        return {key: words[key][0] for key in new[:_NEW]}

    def keep(self, keys: Iterable[int], vectors: Iterable[Floats]) -> None:
        """Stores the vectors of these words of the message, in place of those of the message before: the last digits
        depend on which words are encoded together, and a message must get the same numbers each time."""
        self._others = dict(zip(keys, vectors, strict=True))


class Wanted(Struct, frozen=True, kw_only=True):
    """Weights fitted by `tests/maintenance/fit_wanted.py` for the encoder of that name; all vectors have length 1.

    A network of one hidden layer estimates whether a message wants a skill: `inner` and `shift` lead to that layer,
    `outer` and `bias` to the log-odds. `others` are the vectors of messages for no skill that many people have.
    """

    encoder: str
    inner: Floats
    shift: Floats
    outer: Floats
    bias: float
    others: Floats

    def probabilities(self, vectors: Floats) -> Floats:
        """The probabilities for vectors in rows, or for one vector."""
        odds = np.tanh(vectors @ self.inner + self.shift) @ self.outer + self.bias
        chances: Floats = 1 / (1 + np.exp(-odds))
        return chances

    def nearest(self, vector: Floats) -> Floats:
        """The OTHERS nearest of `others`."""
        return self.others[np.argsort(-(self.others @ vector))[:OTHERS]]


@cache
def wanted_by(encoder: str) -> Wanted | None:
    """What is known for `encoder`; None if the file is for another one."""
    fitted = msgspec.json.decode(Path(__file__).with_name("wanted.json").read_bytes())  # 3 ms faster than json
    return wanted_of(fitted) if fitted["encoder"] == encoder else None


def wanted_of(fitted: Mapping[str, Any]) -> Wanted:
    """The contents of `wanted.json`, in which `others` are bytes in base64."""
    arrays = {name: np.array(fitted[name], np.float32) for name in ("inner", "shift", "outer")}
    others = np.frombuffer(b64decode(fitted["others"]), np.int8).reshape(-1, len(arrays["inner"])).astype(np.float32)
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    return Wanted(encoder=fitted["encoder"], bias=fitted["bias"], others=others, **arrays)
