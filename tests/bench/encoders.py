"""The encoders that benchmarks measure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.config.settings import user_state
from navigator_kernel.model_ports import Encoder, TextKind


def default_encoder() -> UseEncoder:
    """The one that a person gets, from the cache that a person has."""
    folder = user_state() / "cache" / "encoders"
    return UseEncoder(folder, lambda: FolderWriter([folder]))


class Remembering:
    """An encoder that encodes each text once: hundreds of catalogues are drawn from the same skills."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self.id, self.dimensions = encoder, encoder.id, encoder.dimensions
        self._known: dict[tuple[str, TextKind], Any] = {}

    def encode(self, texts: Sequence[str], kind: TextKind) -> Any:
        new = [text for text in dict.fromkeys(texts) if (text, kind) not in self._known]
        if new:
            vectors = np.asarray(self._encoder.encode(new, kind), dtype=np.float32)
            self._known |= {(text, kind): vector for text, vector in zip(new, vectors, strict=True)}
        held = [self._known[text, kind] for text in texts]
        return np.stack(held) if held else np.empty((0, self.dimensions), np.float32)
