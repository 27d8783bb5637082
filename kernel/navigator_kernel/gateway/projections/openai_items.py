"""The output of a response: reasoning and messages in order of arrival, with the events of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

Kind = Literal["text", "note"]


class OutputItems:
    """One item is open at a time; a piece of another kind closes it. `done` are the closed items."""

    def __init__(self, run: str) -> None:
        self.done: list[dict[str, Any]] = []
        self._run, self._open, self._text = run, "", ""

    def add(self, kind: Kind, text: str) -> Iterator[dict[str, Any]]:
        """Adds a piece and yields its events."""
        if self._open != kind:
            yield from self.close()
            self._open = kind
            item = self._item("in_progress")
            yield {"type": "response.output_item.added", "output_index": len(self.done), "item": item}
            yield {"type": f"{self._part_name}.added", **self._place, "part": self._part("")}
        self._text += text
        yield {"type": f"{self._text_name}.delta", **self._place, "delta": text, **self._more}

    def close(self) -> Iterator[dict[str, Any]]:
        """Closes the open item and yields its last events."""
        if not self._open:
            return
        yield {"type": f"{self._text_name}.done", **self._place, "text": self._text, **self._more}
        yield {"type": f"{self._part_name}.done", **self._place, "part": self._part(self._text)}
        item = self._item("completed", self._part(self._text))
        yield {"type": "response.output_item.done", "output_index": len(self.done), "item": item}
        self.done.append(item)
        self._open = self._text = ""

    @property
    def _is_text(self) -> bool:
        return self._open == "text"

    @property
    def _part_name(self) -> str:
        return "response.content_part" if self._is_text else "response.reasoning_summary_part"

    @property
    def _text_name(self) -> str:
        return "response.output_text" if self._is_text else "response.reasoning_summary_text"

    @property
    def _more(self) -> dict[str, Any]:
        return {"logprobs": []} if self._is_text else {}

    @property
    def _id(self) -> str:
        return f"{'msg' if self._is_text else 'rs'}_{self._run}_{len(self.done)}"

    @property
    def _place(self) -> dict[str, Any]:
        index = "content_index" if self._is_text else "summary_index"
        return {"item_id": self._id, "output_index": len(self.done), index: 0}

    def _part(self, text: str) -> dict[str, Any]:
        if self._is_text:
            return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return {"type": "summary_text", "text": text}

    def _item(self, status: str, *parts: dict[str, Any]) -> dict[str, Any]:
        head = {"id": self._id, "status": status}
        if self._is_text:
            return {**head, "type": "message", "role": "assistant", "content": list(parts)}
        return {**head, "type": "reasoning", "summary": list(parts)}
