"""Finds candidates by words and by meaning, and measures what speaks for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from navigator_kernel.routing.features import (
    COMPARED,
    FIELDS,
    LEXICAL,
    Asked,
    Told,
    gram_hashes,
    lexical,
    rarity,
    term_hash,
)
from navigator_kernel.routing.terms import content_terms, terms

if TYPE_CHECKING:
    from navigator_kernel.ports import Encoder
    from navigator_kernel.routing.view import IndexView, Row

SEARCHED = {"name": 3.0, "examples": 2.0, "tags": 1.5, "purpose": 1.5, "body": 0.3}
BY_WORDS, BY_BODY, BY_MEANING = 20, 8, 32  # candidates that are looked at closely
SCORED = 200  # rows whose score by words is asked for
FEW = 8  # candidates by words that a sure answer is looked for among
SPOKEN = 0.2  # by which an example is nearer to what people say than a description is
TERM_LIMIT = 48  # terms of a message that are searched for: a long text is told by its rarest
SEMANTIC = ("near_name", "near_text", "near_examples", "near_shot", "near_learned", "near_words", "near_title")
MEASURED = (*LEXICAL, "words_all", "words_body", *SEMANTIC)
WORDS = 12  # of these that are compared by meaning
KEPT = 4_096  # rows that are kept as they were read
_RARITY_FIELDS = ("name", "purpose", "examples", "tags")
_COMPARED = [FIELDS.index(name) for name in COMPARED]


class Measured(Struct, frozen=True):
    """A candidate with its numbers, in the order of MEASURED; those of meaning are 0 without an encoder."""

    row: Row
    numbers: tuple[float, ...]


class Said(Struct, frozen=True):
    """A message as rows are measured against it: how many terms of it say something, its stems, rarest first, each with
    a word that has it, and the rows that were found by them, in every field and in the body alone."""

    text: str
    length: int
    asked: Asked
    words: Mapping[str, str]
    by_words: Mapping[int, float]
    by_body: Mapping[int, float]


class _Known(NamedTuple):
    entry: Row
    told: Told


class Ranker:
    """Over one view. Without an encoder it goes by words."""

    def __init__(self, view: IndexView, encoder: Encoder | None) -> None:
        self._view, self._encoder = view, encoder
        self._rarity: dict[str, float] = {}
        self._known: dict[int, _Known] = {}
        self._placed: dict[int, Any] = {}

    def said(self, text: str) -> Said:
        """The message, searched for once."""
        content = content_terms(text)
        said = content or terms(text)
        words = dict(zip(self._view.words.stems(said), said, strict=True))
        found = {stem: self._rare(stem) for stem in words}
        rarest = sorted(found, key=lambda stem: -found[stem])[:TERM_LIMIT]
        weights = {term_hash(stem): found[stem] for stem in rarest}
        asked = Asked(weights, sum(weights.values()) or 1.0, gram_hashes(text[:2_000]))
        search = self._view.words.search
        by_words, by_body = search(rarest, SEARCHED, SCORED), search(rarest, {"body": 1.0}, SCORED)
        return Said(text, len(content), asked, {stem: words[stem] for stem in rarest}, dict(by_words), dict(by_body))

    def measured(self, said: Said, *, meaning: bool = True) -> list[Measured]:
        """Every candidate, in no order. Without `meaning` only the first few by words, and no numpy."""
        dead = self._view.head.dead
        rows = list(said.by_words)[: BY_WORDS if meaning else FEW]
        query: Any = None
        asked = {term_hash(stem): (word, self._rare(stem)) for stem, word in list(said.words.items())[:WORDS]}
        if meaning:
            rows += list(said.by_body)[:BY_BODY]
        if meaning and self._encoder is not None and self._view.vectors is not None:
            query = self._encoded(self._encoder, said.text, asked)
            near_rows = self._view.vectors.near(query, BY_MEANING + len(dead))[0].tolist()
            rows += [row for row in near_rows if row not in dead][:BY_MEANING]
        rows = [row for row in dict.fromkeys(rows) if row not in dead]
        averages, mass = self._view.averages, said.asked.mass
        found = []
        for row, near in zip(rows, self._near(query, asked, rows), strict=True):
            entry, told = self._row(row)
            scored = (said.by_words.get(row, 0.0) / mass, said.by_body.get(row, 0.0) / mass)
            found.append(Measured(entry, (*lexical(said.asked, told, averages), *scored, *near)))
        return found

    def _row(self, row: int) -> _Known:
        held = self._known.get(row)
        if held is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            entry, fields = self._view.row(row), self._view.fields(row)
            title = {term_hash(stem): self._rare(stem) for stem in entry.stems}
            every = frozenset(term for terms in fields for term in terms)
            held = self._known[row] = _Known(entry, Told(fields, every, title, gram_hashes(entry.name)))
        return held

    def _encoded(self, encoder: Encoder, text: str, asked: Mapping[int, tuple[str, float]]) -> Any:
        """The vector of the message; its words get theirs in the same go."""
        new = self._view.lexicon.unknown(asked) if self._view.lexicon is not None else {}
        both: Callable[[str, Sequence[str]], tuple[Any, Any]] | None = getattr(encoder, "message", None)
        if both is not None:
            query, vectors = both(text, list(new.values()))
        else:
            query = encoder.encode([text], "query")[0]
            vectors = encoder.encode(list(new.values()), "word") if new else ()
        if self._view.lexicon is not None:
            self._view.lexicon.keep(new, vectors)
        return query

    def _near(self, query: Any, asked: Mapping[int, tuple[str, float]], rows: Sequence[int]) -> list[Sequence[float]]:
        """The numbers of SEMANTIC for each; 0 without an encoder."""
        if query is None or self._view.vectors is None:
            return [(0.0,) * len(SEMANTIC)] * len(rows)
        return [
            (name, max(text, shot - SPOKEN), middle, shot, learned, *said)
            for (name, text, middle, shot, learned), said in zip(
                self._view.vectors.measured(query, rows), self._said(asked, rows), strict=True
            )
        ]

    def _said(self, asked: Mapping[int, tuple[str, float]], rows: Sequence[int]) -> list[tuple[float, float]]:
        """How near the words of the message come to those of each row, and those of its title to the message's."""
        found = [(0.0, 0.0)] * len(rows)
        placed = [self._places(row) for row in rows]
        worded = [at for at, (places, _) in enumerate(placed) if len(places)]
        if self._view.lexicon is None or not asked or not worded:
            return found
        near = self._view.lexicon.near(asked, [placed[at] for at in worded])
        for at, said, named in zip(worded, *(numbers.tolist() for numbers in near), strict=True):
            found[at] = (said, named)
        return found

    def _places(self, row: int) -> Any:
        """Where the words of a row are in the lexicon, and the share that each has in the row's title."""
        held = self._placed.get(row)
        if held is None and self._view.lexicon is not None:
            if len(self._placed) >= KEPT:
                self._placed.clear()
            told = self._row(row).told
            left, whole = dict(told.title), sum(told.title.values()) or 1.0
            hashes = [term for at in _COMPARED for term in told.fields[at]]
            shares = [left.pop(term, 0.0) / whole for term in hashes]  # a word of the title counts once
            held = self._placed[row] = self._view.lexicon.placed(hashes, shares)
        return held

    def _rare(self, stem: str) -> float:
        """How rare a stem is in this index, from 0."""
        held = self._rarity.get(stem)
        if held is None:
            seen = max(self._view.words.seen(field, stem) for field in _RARITY_FIELDS)
            held = self._rarity[stem] = rarity(seen, self._view.count)
        return held
