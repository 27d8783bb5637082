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


class PluginEncoder:
    """Implements `model_ports.Encoder` over a plugin's encoder. `failed` is called with each of its errors; the caller
    gets a KernelError and continues without it. TypeError if its id or its number of dimensions is invalid."""

    def __init__(self, held: Encoder, failed: Callable[[BaseException], None]) -> None:
        name, dimensions = str(held.id), int(held.dimensions)
        if not _ID.fullmatch(name) or not 0 < dimensions <= DIMENSIONS:
            raise TypeError(f"an encoder needs a plain id and 1 to {DIMENSIONS} dimensions, not {name[:80]!r}")
        self.id, self.dimensions = f"plugin-{name}", dimensions
        self._held, self._failed = held, failed

    def encode(self, texts: Sequence[str], kind: TextKind) -> Any:
        import numpy as np

        try:
            found = np.asarray(self._held.encode(texts, kind), dtype=np.float32)
            if found.shape != (len(texts), self.dimensions) or not np.isfinite(found).all():
                raise ValueError(f"{found.shape} is not {len(texts)} rows of {self.dimensions} finite numbers")
        except Exception as error:
            self._failed(error)
            message = f"the encoder {self.id!r} failed: {type(error).__name__}"
            raise KernelError(message, hint="navigator doctor lists the plugins that failed") from error
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-6)
