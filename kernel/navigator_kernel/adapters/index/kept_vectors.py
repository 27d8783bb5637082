"""Caches the vectors of texts for all projects of a person, which have many skills in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.digests import blake2b
from navigator_kernel.errors import KernelError

if TYPE_CHECKING:
    from navigator_kernel.adapters.index.use_encoder import UseEncoder
    from navigator_kernel.model_ports import TextKind
    from navigator_kernel.ports import Writer

MOST = 40_000  # cached vectors, 21 MB; beyond that, the file is started again
_KEY = 16  # bytes of a text's digest
_LENGTHS = 0.99, 1.01  # range of a vector's length as half floats; any other length means damage


class KeptVectors:
    """Implements `model_ports.Encoder` on top of another encoder. A file in `folder` contains a record for each text:
    its digest and its vector as half floats. The numbers are the same whether or not a text was cached. A damaged file
    is removed."""

    def __init__(self, encoder: UseEncoder, folder: Path, writer: Callable[[], Writer]) -> None:
        self.id, self.dimensions = encoder.id, encoder.dimensions
        self.message, self.open = encoder.message, encoder.open
        self._encoder, self._writer = encoder, writer
        self.path = folder / f"{encoder.id}.vectors"
        self._rows: dict[bytes, Any] = {}
        self._is_read = False

    def encode(self, texts: Sequence[str], kind: TextKind) -> Any:
        """Returns float32 (texts, dimensions). A single text is a message, which is not cached."""
        import numpy as np

        if len(texts) < 2:
            return self._encoder.encode(texts, kind)
        if not self._is_read:
            self._rows, self._is_read = self._read(), True
        keys = [blake2b(f"{kind}\0{text}".encode("utf-8", "replace"), digest_size=_KEY).digest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._rows}
        if new:
            made = self._encoder.encode(list(new.values()), kind).astype(np.float16)
            added = dict(zip(new, made, strict=True))
            found = np.stack([self._rows[key] if key in self._rows else added[key] for key in keys])
            self._keep(added)
        else:
            found = np.stack([self._rows[key] for key in keys])
        return found.astype(np.float32)

    def _read(self) -> dict[bytes, Any]:
        import numpy as np

        record = np.dtype([("key", f"V{_KEY}"), ("row", "<f2", (self.dimensions,))])
        try:
            whole = self.path.stat().st_size % record.itemsize == 0
            held = np.fromfile(self.path, dtype=record)
        except OSError:
            return {}
        lengths = np.linalg.norm(held["row"].astype(np.float32), axis=1)
        if not whole or not np.all((lengths > _LENGTHS[0]) & (lengths < _LENGTHS[1])):
            self._removed()
            return {}
        return dict(zip(map(bytes, held["key"]), held["row"], strict=True))

    def _keep(self, added: dict[bytes, Any]) -> None:
        """Adds the vectors to the file; if that fails, the next process encodes the texts again."""
        if len(self._rows) + len(added) > MOST:
            self._removed()
            self._rows = {}
        self._rows |= added
        try:
            self._writer().append(self.path, b"".join(key + row.tobytes() for key, row in added.items()))
        except KernelError:
            self._removed()

    def _removed(self) -> None:
        try:
            self._writer().remove(self.path)
        except KernelError:
            return
