"""The type of functions that remove secrets from a value."""

from __future__ import annotations

from typing import Any, Protocol


class Redact(Protocol):
    def __call__(self, value: Any, /) -> Any:
        """Returns a JSON value with every known secret in its texts replaced."""


def same(value: Any) -> Any:
    """Returns the value unchanged."""
    return value
