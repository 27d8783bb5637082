"""Reads the person's preferences: pages with one wish per line (X-30)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import KernelError
from navigator_kernel.text import clean, language_of, lazy_compile
from navigator_kernel.values.context import Memory

TOKENS = 1_000
_FILE_LIMIT = 64 * 1024  # bytes
_TERM = lazy_compile(r"[a-z0-9]+|[\u3400-\u9fff]")


class PreferenceFile(Struct, frozen=True, kw_only=True):
    """A file of wishes, and whether its bytes may be used."""

    source: str
    path: Path
    accepted: Callable[[bytes], bool]


class Preferences(Struct, frozen=True):
    """Implements `ports.MemorySearch` over pages of wishes, each read again for every message."""

    pages: Sequence[PreferenceFile]

    def recall(self, message: str) -> tuple[Memory, ...]:
        """All wishes in their order; if they exceed 1,000 tokens, those that share the most words with `message`."""
        memories: list[Memory] = []
        for page in self.pages:
            try:
                data = read_bounded(page.path, _FILE_LIMIT)
            except (OSError, KernelError):
                continue
            text = data.decode("utf-8-sig", "replace") if page.accepted(data) else ""
            wishes = (line.strip().lstrip("-*").strip() for line in clean(text).split("\n"))
            memories += [Memory(text=wish, source=page.source) for wish in wishes if wish and not wish.startswith("#")]
        if sum(tokens(memory.text) for memory in memories) <= TOKENS:
            return tuple(memories)
        words = _words(message)
        room, chosen = TOKENS, set[int]()
        for at in sorted(range(len(memories)), key=lambda at: -len(words & _words(memories[at].text))):
            if tokens(memories[at].text) <= room:
                room -= tokens(memories[at].text)
                chosen.add(at)
        return tuple(memories[at] for at in sorted(chosen))


def _words(text: str) -> set[str]:
    return set(_TERM.findall(text.lower()))


def tokens(text: str) -> int:
    """An upper estimate: one token per character of a Chinese text, one per three characters of any other."""
    return len(text) if language_of(text) == "zh" else len(text) // 3 + 1
