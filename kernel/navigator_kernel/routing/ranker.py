"""Finds candidates by words and by meaning, and measures what speaks for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from navigator_kernel.ports import Encoder
from navigator_kernel.routing.features import COMPARED, FIELDS, LEXICAL, Asked, gram_hashes, lexical, rarity, term_hash
from navigator_kernel.routing.terms import content_terms, terms
from navigator_kernel.routing.view import IndexView, Row
from navigator_kernel.text import clean

SEARCHED = {"name": 3.0, "examples": 2.0, "tags": 1.5, "purpose": 1.5, "body": 0.3}
BY_WORDS, BY_BODY, BY_MEANING = 40, 24, 64  # candidates that are looked at closely
SCORED = 200  # rows whose score by words is asked for
FEW = 8  # candidates by words that a sure answer is looked for among
SPOKEN = 0.2  # by which an example is nearer to what people say than a description is
TERM_LIMIT = 48  # terms of a message that are searched for: a long text is told by its rarest
SEMANTIC = ("near_name", "near_text", "near_examples", "near_shot", "near_words", "near_title")
MEASURED = (*LEXICAL, "words_all", "words_body", *SEMANTIC)
WORDS = 12  # of these that are compared by meaning
_RARITY_FIELDS = ("name", "purpose", "examples", "tags")
_COMPARED = [FIELDS.index(name) for name in COMPARED]


@dataclass(frozen=True, slots=True)
class Measured:
    """A candidate with its numbers, in the order of MEASURED; those of meaning are 0 without an encoder."""

    row: Row
    numbers: tuple[float, ...]


class _LookedAt(NamedTuple):
    """A candidate's row, the hashes of its stems by FIELDS, and how rare those of its name are."""

    row: int
    entry: Row
    fields: list[list[int]]
    title: Mapping[int, float]


class Ranker:
    """Over one view. Without an encoder it goes by words."""

    def __init__(self, view: IndexView, encoder: Encoder | None) -> None:
        self._view, self._encoder = view, encoder
        self._rarity: dict[str, float] = {}

    def asked(self, text: str) -> tuple[Asked, dict[str, str]]:
        """The message as it is compared, and its stems to search for, rarest first, each with a word that has it."""
        said = content_terms(text) or terms(text)
        words = dict(zip(self._view.words.stems(said), said, strict=True))
        found = {stem: self._rare(stem) for stem in words}
        rarest = sorted(found, key=lambda stem: -found[stem])[:TERM_LIMIT]
        weights = {term_hash(stem): found[stem] for stem in rarest}
        return Asked(terms=weights, grams=gram_hashes(text[:2_000])), {stem: words[stem] for stem in rarest}

    def length(self, text: str) -> int:
        """How many terms the message has that say something."""
        return len(content_terms(clean(text)))

    def measured(self, text: str, *, meaning: bool = True) -> list[Measured]:
        """Every candidate, in no order. Without `meaning` only the first few by words, and no numpy."""
        asked, words = self.asked(text)
        dead = self._view.head.dead
        by_words = dict(self._view.words.search(list(words), SEARCHED, SCORED if meaning else FEW))
        body = dict(self._view.words.search(list(words), {"body": 1.0}, SCORED))
        rows = list(by_words)[:BY_WORDS] + (list(body)[:BY_BODY] if meaning else [])
        query: Any = None
        if meaning and self._encoder is not None and self._view.vectors is not None:
            query = self._encoder.encode([text], "query")[0]
            near_rows = self._view.vectors.near(query, BY_MEANING + len(dead))[0].tolist()
            rows += [row for row in near_rows if row not in dead][:BY_MEANING]
        looked_at = [self._looked_at(row) for row in dict.fromkeys(rows) if row not in dead]
        near = self._near(query, words, looked_at)
        averages = self._view.averages
        found = []
        for held, (row, entry, fields, title) in zip(near, looked_at, strict=True):
            numbers = lexical(asked, fields, averages, entry.name, title)
            scored = (by_words.get(row, 0.0) / asked.mass, body.get(row, 0.0) / asked.mass)
            found.append(Measured(entry, (*numbers, *scored, *held)))
        return found

    def _looked_at(self, row: int) -> _LookedAt:
        entry = self._view.row(row)
        title = {term_hash(stem): self._rare(stem) for stem in entry.stems}
        return _LookedAt(row, entry, self._view.fields(row), title)

    def _near(self, query: Any, words: Mapping[str, str], found: Sequence[_LookedAt]) -> list[Sequence[float]]:
        """The numbers of SEMANTIC for each; 0 without an encoder."""
        if query is None or (vectors := self._view.vectors) is None or (lexicon := self._view.lexicon) is None:
            return [(0.0,) * len(SEMANTIC)] * len(found)
        asked = {term_hash(stem): (word, self._rare(stem)) for stem, word in list(words.items())[:WORDS]}
        entries = [[term for at in _COMPARED for term in one.fields[at]] for one in found]
        said = lexicon.near(asked, entries, [one.title for one in found])
        whole = vectors.measured(query, [one.row for one in found])
        return [
            (name, max(text, shot - SPOKEN), middle, shot, *more)
            for (name, text, middle, shot), more in zip(whole, said, strict=True)
        ]

    def _rare(self, stem: str) -> float:
        """How rare a stem is in this index, from 0."""
        held = self._rarity.get(stem)
        if held is None:
            seen = max(self._view.words.seen(field, stem) for field in _RARITY_FIELDS)
            held = self._rarity[stem] = rarity(seen, self._view.count)
        return held
