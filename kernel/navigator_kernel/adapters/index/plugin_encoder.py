"""Wraps a plugin's encoder and checks each vector that it returns before it is stored."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from navigator_kernel.errors import KernelError
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from navigator_kernel.model_ports import Encoder, TextKind

_ID = lazy_compile(r"[A-Za-z0-9][\w.-]{0,79}", re.ASCII)
DIMENSIONS = 4_096  # upper limit
ENCODING = 60.0  # seconds for the texts of one call


def read_encoder(item: Any) -> tuple[Encoder, str, int]:
    """The encoder with its id and its number of dimensions. TypeError if one of these is invalid."""
    name, dimensions = str(item.id), int(item.dimensions)
    if not _ID.fullmatch(name) or not 0 < dimensions <= DIMENSIONS or not callable(item.encode):
        raise TypeError(f"an encoder needs a plain id and 1 to {DIMENSIONS} dimensions, not {name[:80]!r}")
    return item, name, dimensions


class PluginEncoder:
    """Implements `model_ports.Encoder` over a plugin's encoder, which `call` calls. The caller gets a KernelError for
    each of its errors, and continues without it."""

    def __init__(self, held: Encoder, name: str, dimensions: int, call: Callable[..., Any]) -> None:
        self.id, self.dimensions = f"plugin-{name}", dimensions
        self._held, self._call = held, call

    def encode(self, texts: Sequence[str], kind: TextKind) -> Any:
        import numpy as np

        def encoded() -> Any:
            found = np.asarray(self._held.encode(texts, kind), dtype=np.float32)
            if found.shape != (len(texts), self.dimensions) or not np.isfinite(found).all():
                raise ValueError(f"{found.shape} is not {len(texts)} rows of {self.dimensions} finite numbers")
            return found

        try:
            found = self._call(encoded)
        except Exception as error:
            message = f"the encoder {self.id!r} failed: {type(error).__name__}"
            raise KernelError(message, hint="navigator doctor lists the plugins that failed") from error
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-6)
