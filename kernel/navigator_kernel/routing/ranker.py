"""Finds candidates by words and by meaning, and measures what speaks for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from navigator_kernel.ports import Encoder
from navigator_kernel.routing.features import LEXICAL, Asked, gram_hashes, lexical, rarity, term_hash
from navigator_kernel.routing.terms import content_terms, terms
from navigator_kernel.routing.view import IndexView, Row
from navigator_kernel.text import clean

SEARCHED = {"name": 3.0, "examples": 2.0, "tags": 1.5, "purpose": 1.5, "body": 0.3}
BY_WORDS, BY_BODY, BY_MEANING = 40, 24, 64  # candidates that are looked at closely
SCORED = 200  # rows whose score by words is asked for
FEW = 8  # candidates by words that a sure answer is looked for among
TERM_LIMIT = 48  # terms of a message that are searched for: a long text is told by its rarest
SEMANTIC = ("near_name", "near_text", "near_examples", "near_shot")
MEASURED = (*LEXICAL, "words_all", "words_body", *SEMANTIC)
_RARITY_FIELDS = ("name", "purpose", "examples", "tags")


@dataclass(frozen=True, slots=True)
class Measured:
    """A candidate with its numbers, in the order of MEASURED; those of meaning are 0 without an encoder."""

    row: Row
    numbers: tuple[float, ...]


class Ranker:
    """Over one view. Without an encoder it goes by words."""

    def __init__(self, view: IndexView, encoder: Encoder | None) -> None:
        self._view, self._encoder = view, encoder
        self._rarity: dict[str, float] = {}

    def asked(self, text: str) -> tuple[Asked, list[str]]:
        """The message as it is compared, and its stems to search for, rarest first."""
        stems = self._view.words.stems(content_terms(text)) or self._view.words.stems(terms(text))
        found = {stem: self._rare(stem) for stem in dict.fromkeys(stems)}
        rarest = sorted(found, key=lambda stem: -found[stem])[:TERM_LIMIT]
        weights = {term_hash(stem): found[stem] for stem in rarest}
        return Asked(terms=weights, grams=gram_hashes(text[:2_000])), rarest

    def length(self, text: str) -> int:
        """How many terms the message has that say something."""
        return len(content_terms(clean(text)))

    def measured(self, text: str, *, meaning: bool = True) -> list[Measured]:
        """Every candidate, in no order. Without `meaning` only the first few by words, and no numpy."""
        asked, stems = self.asked(text)
        dead = self._view.head.dead
        by_words = dict(self._view.words.search(stems, SEARCHED, SCORED if meaning else FEW))
        body = dict(self._view.words.search(stems, {"body": 1.0}, SCORED))
        rows = list(by_words)[:BY_WORDS] + (list(body)[:BY_BODY] if meaning else [])
        vectors = self._view.vectors if meaning and self._encoder is not None else None
        query: Any = None
        if vectors is not None and self._encoder is not None:
            query = self._encoder.encode([text], "query")[0]
            rows += vectors.near(query, BY_MEANING)[0].tolist()
        rows = [row for row in dict.fromkeys(rows) if row not in dead]
        near = vectors.measured(query, rows) if vectors is not None else [[0.0] * len(SEMANTIC)] * len(rows)
        averages = self._view.averages
        found = []
        for at, row in enumerate(rows):
            held = self._view.row(row)
            rarities = {term_hash(stem): self._rare(stem) for stem in held.stems}
            numbers = lexical(asked, self._view.fields(row), averages, held.name, rarities)
            scored = (by_words.get(row, 0.0) / asked.mass, body.get(row, 0.0) / asked.mass)
            found.append(Measured(held, (*numbers, *scored, *near[at])))
        return found

    def _rare(self, stem: str) -> float:
        """How rare a stem is in this index, from 0."""
        held = self._rarity.get(stem)
        if held is None:
            seen = max(self._view.words.seen(field, stem) for field in _RARITY_FIELDS)
            held = self._rarity[stem] = rarity(seen, self._view.count)
        return held
