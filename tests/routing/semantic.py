"""The real sentence encoder, prepared once per test session, and entries to index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from navigator_kernel.model_ports import Encoder, TextKind
from navigator_kernel.routing.entries import Entry

TOLD = {
    "pdf-merge": "Combines several PDF files into one document and sorts their pages.",
    "travel-planner": "Plans journeys: flights, hotels and trains, with a budget for each day.",
    "code-review": "Reviews source code for defects, security problems and style.",
    "recipe-finder": "Suggests dishes to cook from the ingredients at hand.",
    "budget-tracker": "Keeps an account of income and expenses and warns of overspending.",
    "image-resize": "Changes the size and format of pictures and photographs.",
    "会议纪要": "把会议录音或聊天记录整理成会议纪要，列出结论和待办事项。",
    "weather-report": "Tells the weather forecast for a city.",
}


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
