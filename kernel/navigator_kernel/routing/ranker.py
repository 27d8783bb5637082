"""Finds candidates by words and meaning, and computes their features."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.language.clauses import asked_for
from navigator_kernel.routing.features import (
    COMPARED,
    FIELDS,
    LEXICAL,
    DocumentFeatures,
    QueryFeatures,
    gram_hashes,
    lexical,
    rarity,
    term_hash,
)
from navigator_kernel.routing.glossary import alike
from navigator_kernel.routing.terms import content_terms, terms
from navigator_kernel.routing.wanted import wanted_by
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from navigator_kernel.model_ports import Encoder
    from navigator_kernel.routing.arrays import TermBatch
    from navigator_kernel.routing.view import IndexedEntry, IndexSnapshot

SEARCHED = {"name": 3.0, "examples": 2.0, "tags": 1.5, "purpose": 1.5, "body": 0.3}
BY_WORDS, BY_BODY, BY_MEANING = 20, 8, 32  # candidates measured in detail
SCORED = 200  # rows in a search by words
FEW = 8  # candidates by words among which a sure answer is searched
UNKNOWN = 0.25  # weight of a term unknown to all skills in the mass of a message: in another language all are unknown
ALIKE = 0.5  # weight of a term from the glossary
GLOSSED = 1_000  # characters of a message whose phrases are looked up in the glossary
TERM_LIMIT = 64  # terms of a message to search for, the rarest ones
PLACES = ("place_words", "place_text")  # reciprocal ranks by words and by meaning (Cormack et al. 2009)
SEMANTIC = ("near_name", "near_text", "near_shot", "taught", "near_learned", "near_words", "near_title", *PLACES)
MEASURED = (*LEXICAL, "words_all", "words_body", *SEMANTIC)
WORDS = 12  # terms of a message compared by meaning
KEPT = 65_536  # name terms with cached rarities, and an eighth as many rows with cached rarities
_RARITY_FIELDS = ("name", "purpose", "examples", "tags")
_PURPOSE = FIELDS.index("purpose")
_COMPARED = [FIELDS.index(name) for name in COMPARED]
_ASKING = lazy_compile(
    r"[?？吗呢]\s*$|^\s*(?:who|what|when|where|why|which|how|is|are|was|were|does|do|did)\b|谁|什么|哪|为什么|怎么|多少|几个",
    re.IGNORECASE,
)
_POLITE = lazy_compile(
    r"^\s*(?:please\s+)?(?:can|could|would|will)\s+you\s+(?:please\s+)?(?!(?:tell|explain|know|think|be|do|ever|still|also)\b)\w"
    r"|^\s*[你您]?(?:能不能|可不可以|能否|可以|能)(?:请你?)?(?:帮|给|把|替)",
    re.IGNORECASE,
)
_FILE_TYPE = lazy_compile(r"(?<!\w)@(\w+)")
# A file, or a text after a colon or in quotes: whoever gives one wants work done on it
_BRINGS = lazy_compile(
    r"[:：]\s*+(?:\S{1,200}+(?:\s++|$)){3}|[:：]\s*[㐀-鿿]{4}|[\w㐀-鿿-]\.[a-z]\w{1,4}\b|@\w|`[^`]+`|\"[^\"]{8,}\"|“[^“”]{4,}”"
)
_UNMEANT = (0.0,) * len(SEMANTIC)


class ScoredCandidate(Struct, frozen=True):
    """A candidate with its numbers, in the order of MEASURED; those of meaning are 0 without an encoder."""

    at: int
    numbers: Sequence[float]
    view: IndexSnapshot

    @property
    def row(self) -> IndexedEntry:
        """Read on demand: most candidates are not among the best."""
        return self.view.row(self.at)


class Query(Struct, frozen=True):
    """What a message asks for, which rows are measured against: its text, the number of its content terms, its stems,
    rarest first, each with one of its words, and the rows that were found by them, in every field and in the body
    alone. `known` is the share of its stems that some skill has."""

    text: str
    message: str
    length: int
    asked: QueryFeatures
    words: Mapping[str, str]
    by_words: Mapping[int, float]
    by_body: Mapping[int, float]
    known: float

    @property
    def asks(self) -> bool:
        """Whether the message is a question, with or without a mark, not a polite wish, and has nothing to work on."""
        asks = _ASKING.search(self.message) is not None and _POLITE.match(self.message) is None
        return asks and _BRINGS.search(self.message) is None


class Ranker:
    """Ranks the rows of one view. Without an encoder it uses words alone."""

    def __init__(self, view: IndexSnapshot, encoder: Encoder | None) -> None:
        self._view, self._encoder = view, encoder
        self._rarity: dict[str, float] = {}
        self._known: dict[str, bool] = {}
        self._named: dict[int, float] = {}
        self._titles: dict[int, list[float]] = {}
        self._last: tuple[str, Any] = ("", None)

    def said(self, message: str) -> Query:
        """Searches once for what the message asks for."""
        asks = asked_for(message)
        text = _FILE_TYPE.sub(self._known_type, asks) if len(content_terms(_FILE_TYPE.sub("", asks))) > 1 else asks
        content = content_terms(text)
        said = content or terms(text)
        words = dict(zip(self._view.words.stems(said), said, strict=True))
        found = {stem: self._rare(stem) for stem in words}
        known = {stem for stem in words if self._is_known(stem)}
        rarest = sorted(found, key=lambda stem: (stem not in known, -found[stem]))[:TERM_LIMIT]
        mass = sum(found[stem] * (1.0 if stem in known else UNKNOWN) for stem in rarest)
        shares, more = self._alike(text, rarest)
        weights = {term_hash(stem): self._rare(stem) * share for stem, share in shares.items()}
        asked = QueryFeatures(weights, mass + more or 1.0, gram_hashes(text[:2_000]))
        search = self._view.words.search
        by_words, by_body = search(shares, SEARCHED, SCORED), search(shares, {"body": 1.0}, SCORED)
        kept = {stem: words[stem] for stem in rarest}
        share = len(known) / max(len(words), 1)
        return Query(text, message, len(content), asked, kept, dict(by_words), dict(by_body), share)

    def _alike(self, text: str, stems: Sequence[str]) -> tuple[dict[str, float], float]:
        """The weight of each term: 1 for `stems`, ALIKE for the terms that the glossary has for a phrase of `text`; and
        the mass of the latter: of each phrase the rarest term, because a skill contains one of them."""
        shares, mass = dict.fromkeys(stems, 1.0), 0.0
        for same in alike(text[:GLOSSED]):
            new = [stem for stem in self._view.words.stems(same) if stem not in shares and self._is_known(stem)]
            shares |= dict.fromkeys(new, ALIKE)
            mass += ALIKE * max(map(self._rare, new), default=0.0)
        return shares, mass

    def _known_type(self, mark: re.Match[str]) -> str:
        """The mark of a file's type as it is, or nothing if no skill has that word."""
        return mark[0] if any(map(self._is_known, self._view.words.stems([mark[1].lower()]))) else ""

    def _is_known(self, stem: str) -> bool:
        """Whether any skill contains the stem."""
        self._rare(stem)
        return self._known[stem]

    def measured(self, said: Query, *, meaning: bool = True) -> list[ScoredCandidate]:
        """Every candidate with its numbers, in no order. Without `meaning`, only the first few by words, and numpy is
        not loaded."""
        dead = self._view.head.dead
        rows = list(said.by_words)[: BY_WORDS if meaning else FEW]
        query: Any = None
        asked = {term_hash(stem): (word, self._rare(stem)) for stem, word in list(said.words.items())[:WORDS]}
        if meaning:
            rows += list(said.by_body)[:BY_BODY]
        if meaning and self._encoder is not None and self._view.vectors is not None:
            query = self._encoded(self._encoder, said.text, asked)
            self._last = said.text, query
            near_rows = self._view.vectors.near(query, BY_MEANING + len(dead))[0].tolist()
            rows += [row for row in near_rows if row not in dead][:BY_MEANING]
        rows = [row for row in dict.fromkeys(rows) if row not in dead]
        mass = said.asked.mass
        scored = [(said.by_words.get(row, 0.0) / mass, said.by_body.get(row, 0.0) / mass) for row in rows]
        known = self._view.cut if rows and (meaning or self._titles) else None  # `_titles` is filled only with numpy
        if known is None:
            numbers = [(*self._lexical(said.asked, row), *found) for row, found in zip(rows, scored, strict=True)]
            return [
                ScoredCandidate(row, (*held, *_UNMEANT), self._view) for row, held in zip(rows, numbers, strict=True)
            ]
        return self._at_once(known.of(rows), said.asked, asked, query, rows, scored)

    def vector(self, said: Query) -> Any:
        """The vector of the message that was last measured by meaning; None for another message."""
        text, vector = self._last
        return vector if text == said.text else None

    def _lexical(self, asked: QueryFeatures, row: int) -> list[float]:
        """The numbers by words of a single row, before numpy is loaded."""
        entry, fields = self._view.row(row), self._view.fields(row)
        title = {term_hash(stem): self._rare(stem) for stem in entry.stems}
        every = frozenset(term for terms in fields for term in terms)
        return lexical(asked, DocumentFeatures(fields, every, title, gram_hashes(entry.name)), self._view.averages)

    def _at_once(
        self,
        cut: TermBatch,
        asked: QueryFeatures,
        words: Mapping[int, tuple[str, float]],
        query: Any,
        rows: Sequence[int],
        scored: Sequence[tuple[float, float]],
    ) -> list[ScoredCandidate]:
        """Measures all rows at once in arrays; with a `query`, by meaning, too."""
        import numpy as np

        from navigator_kernel.routing.arrays import places

        wholes, shares = cut.titles(self._titled(cut, rows))
        told, near = cut.told(asked, wholes), np.zeros((len(rows), len(SEMANTIC)))
        if query is not None and self._view.vectors is not None:
            known = None if self._encoder is None else wanted_by(self._encoder.id)
            near[:, :5] = self._view.vectors.measured(query, rows, None if known is None else known.nearest(query))
            if self._view.lexicon is not None:
                near[:, 5], near[:, 6] = self._view.lexicon.near(words, *cut.compared(_COMPARED, shares))
            near[:, 7], near[:, 8] = places(told[:, _PURPOSE]), places(near[:, 1])
        numbers = np.concatenate([told, scored, near], axis=1).tolist()
        return [ScoredCandidate(row, held, self._view) for row, held in zip(rows, numbers, strict=True)]

    def _titled(self, cut: TermBatch, rows: Sequence[int]) -> list[list[float]]:
        """The rarity of each term of these rows' names; a repeated term counts once."""
        if len(self._titles) > KEPT // 8:
            self._titles.clear()
        new = [at for at, row in enumerate(rows) if row not in self._titles]
        for at, name in zip(new, cut.names(new) if new else (), strict=True):
            named = self._rarities(rows[at], name)
            self._titles[rows[at]] = [0.0 if key in name[:so_far] else named[key] for so_far, key in enumerate(name)]
        return [self._titles[row] for row in rows]

    def _rarities(self, row: int, name: Sequence[int]) -> Mapping[int, float]:
        """The rarity of each term of a row's name, by its hash; the row is read only for a term not known yet."""
        if len(self._named) > KEPT:
            self._named.clear()
        if not all(key in self._named for key in name):
            self._named |= {term_hash(stem): self._rare(stem) for stem in self._view.row(row).stems}
        return self._named

    def _encoded(self, encoder: Encoder, text: str, asked: Mapping[int, tuple[str, float]]) -> Any:
        """The vector of the message; the vectors of its new words are made together with it."""
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

    def _rare(self, stem: str) -> float:
        """How rare a stem is in this index, from 0."""
        held = self._rarity.get(stem)
        if held is None:
            seen = max(self._view.words.seen(field, stem) for field in _RARITY_FIELDS)
            held = self._rarity[stem] = rarity(seen, self._view.count)
            self._known[stem] = seen > 0 or self._view.words.seen("body", stem) > 0
        return held
