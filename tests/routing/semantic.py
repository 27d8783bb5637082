"""The real sentence encoder, prepared once per test session, and entries to index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from navigator_kernel.model_ports import Encoder, TextKind
from navigator_kernel.routing.entries import Entry
from tables import table

TOLD = table(__file__, "TOLD")


def entries(**told: str) -> list[Entry]:
    return [Entry(id=name, name=name, description=text) for name, text in (told or TOLD).items()]


class Counting:
    """An encoder that records the texts it encodes."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self.id, self.dimensions = encoder, encoder.id, encoder.dimensions
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str], kind: TextKind) -> Any:
        self.texts += texts
        return self._encoder.encode(texts, kind)
