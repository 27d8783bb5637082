"""The encoders that benchmarks measure."""

from __future__ import annotations

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.config.settings import user_state


def default_encoder() -> UseEncoder:
    """The one that a person gets, from the cache that a person has."""
    folder = user_state() / "cache" / "encoders"
    return UseEncoder(folder, lambda: FolderWriter([folder]))
