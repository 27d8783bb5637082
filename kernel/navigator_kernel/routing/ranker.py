"""Finds candidates by words and meaning, computes their numbers, and weighs these with the shipped weights."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from operator import mul
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.language.clauses import asked_for
from navigator_kernel.routing.words import (
    COMPARED,
    FIELDS,
    LEXICAL,
    DocumentFeatures,
    QueryFeatures,
    alike,
    content_terms,
    gram_hashes,
    lexical,
    rarity,
    term_hash,
    terms,
)
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.route import Boldness

if TYPE_CHECKING:
    from navigator_kernel.model_ports import Encoder
    from navigator_kernel.routing.index import IndexedEntry, IndexSnapshot

Way = Literal["words", "meaning"]  # without an encoder, and with one
# What the first candidate's numbers, and those of the best of all, are called in the evidence
OF_FIRST = {
    "near": "near_text", "shot": "near_shot", "taught": "taught", "learned": "near_learned",
    "words": "near_words", "covered": "coverage", "purpose": "words_purpose", "body": "words_body",
    "whole": "name_whole", "name": "name_said",
}  # fmt: skip
OF_BEST = {"best_text": "near_text", "best_covered": "coverage"}
EVIDENCE = (
    "odds", "together", "score", "gap", "gap_third", *OF_FIRST, *OF_BEST, "count", "length", "known", "wanted", "asks",
)  # fmt: skip
OFFERED = 3  # most skills to offer
LEAST, MOST = -4.0, 6.0  # bounds of log-odds: catalogues differ in how sharp their scores are
ALONE = 5.0  # the gap to a candidate that does not exist
LONG = 30  # terms of a long message
USUAL, USUAL_COUNT = 2.2, 100  # log of 1 and the number of terms of a usual message; number of skills
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
RECENT = 16  # texts whose candidates stay in memory
KEPT = 4_096  # rows whose features stay in memory
WORDS = 12  # terms of a message compared by meaning
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
_TAUGHT = MEASURED.index("taught")
_OF_FIRST = {name: MEASURED.index(of) for name, of in OF_FIRST.items()}
_OF_BEST = {name: MEASURED.index(of) for name, of in OF_BEST.items()}


class ScoredCandidate(Struct, frozen=True):
    """A candidate with its numbers, in the order of MEASURED; those of meaning are 0 without an encoder."""

    at: int
    numbers: Sequence[float]
    view: IndexSnapshot

    @property
    def row(self) -> IndexedEntry:
        """Read on demand: most candidates are not among the best."""
        return self.view.row(self.at)


class Query(Struct, frozen=True, dict=True):
    """What a message asks for, which rows are measured against: its text, the number of its content terms, its stems,
    rarest first, each with one of its words, and the rows that were found by them, in every field and in the body
    alone. `known` is the share of its stems that some skill has; `foreign` says that its files hold no text, and
    that no skill speaks of their kinds."""

    text: str
    message: str
    length: int
    features: QueryFeatures
    words: Mapping[str, str]
    by_words: Mapping[int, float]
    by_body: Mapping[int, float]
    known: float
    foreign: bool = False

    @cached_property
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
        self._document = lru_cache(maxsize=KEPT)(self._read)
        # a turn asks for the same texts several times
        self._search, self._measured = lru_cache(RECENT)(self._searched), lru_cache(RECENT)(self._measured_anew)

    def query(self, message: str) -> Query:
        """Searches once for what the message asks for."""
        asks = asked_for(message)
        text = _FILE_TYPE.sub(self._known_type, asks) if len(content_terms(_FILE_TYPE.sub("", asks))) > 1 else asks
        types = {kind.lower() for kind in _FILE_TYPE.findall(asks)}
        return replace(self._search(text), message=message, foreign=bool(types) and all(map(self._is_foreign, types)))

    def _searched(self, text: str) -> Query:
        content = content_terms(text)
        every = content or terms(text)
        words = dict(zip(self._view.words.stems(every), every, strict=True))
        rarities = {stem: self._rare(stem) for stem in words}
        known = {stem for stem in words if self._known[stem]}
        rarest = sorted(rarities, key=lambda stem: (stem not in known, -rarities[stem]))[:TERM_LIMIT]
        mass = sum(rarities[stem] * (1.0 if stem in known else UNKNOWN) for stem in rarest)
        shares, more = self._alike(text, rarest)
        weights = {term_hash(stem): self._rare(stem) * share for stem, share in shares.items()}
        features = QueryFeatures(weights, mass + more or 1.0, gram_hashes(text[:2_000]))
        search = self._view.search
        by_words, by_body = search(shares, SEARCHED, SCORED), search(shares, {"body": 1.0}, SCORED)
        known_words = {stem: words[stem] for stem in rarest}
        share = len(known) / max(len(words), 1)
        return Query(text, text, len(content), features, known_words, dict(by_words), dict(by_body), share)

    def _alike(self, text: str, stems: Sequence[str]) -> tuple[dict[str, float], float]:
        """The weight of each term: 1 for `stems`, ALIKE for the terms that the glossary has for a phrase of `text`; and
        the mass of the latter: of each phrase the rarest term, because a skill contains one of them."""
        shares, mass = dict.fromkeys(stems, 1.0), 0.0
        for same in alike(text[:GLOSSED]):
            new = [stem for stem in self._view.words.stems(same) if stem not in shares and self._is_known(stem)]
            shares |= dict.fromkeys(new, ALIKE)
            mass += ALIKE * max(map(self._rare, new), default=0.0)
        return shares, mass

    def _is_foreign(self, ending: str) -> bool:
        from navigator_kernel.language.stated import media

        names = media(ending)
        return bool(names) and not any(map(self._is_known, self._view.words.stems(names)))

    def _known_type(self, mark: re.Match[str]) -> str:
        """The mark of a file's type as it is, or nothing if no skill has that word."""
        return mark[0] if any(map(self._is_known, self._view.words.stems([mark[1].lower()]))) else ""

    def _is_known(self, stem: str) -> bool:
        """Whether any skill contains the stem."""
        self._rare(stem)
        return self._known[stem]

    def measured(self, query: Query, *, meaning: bool = True) -> Sequence[ScoredCandidate]:
        """Every candidate with its numbers, in no order. Without `meaning`, only the first few by words, and numpy is
        not loaded."""
        if meaning:
            return self._measured(query.text)[0]
        few = [(row, self._by_words(query, row, self._document(row))) for row in list(query.by_words)[:FEW]]
        return [ScoredCandidate(row, (*numbers, *_UNMEANT), self._view) for row, numbers in few]

    def _measured_anew(self, text: str) -> tuple[Sequence[ScoredCandidate], Any]:
        """The candidates of a text with their numbers, and its vector."""
        query, view = self._search(text), self._view
        words = {term_hash(stem): (word, self._rare(stem)) for stem, word in list(query.words.items())[:WORDS]}
        by_meaning: Sequence[Sequence[float]]
        rows, vector = [*list(query.by_words)[:BY_WORDS], *list(query.by_body)[:BY_BODY]], None
        if self._encoder is not None and view.vectors is not None:
            vector = self._encoded(self._encoder, query.text, words)
            dead = view.head.dead
            nearest = view.vectors.near(vector, BY_MEANING + len(dead))[0].tolist()
            rows += [row for row in nearest if row not in dead][:BY_MEANING]
        rows = list(dict.fromkeys(rows))
        documents = [self._document(row) for row in rows]
        by_words = [self._by_words(query, row, document) for row, document in zip(rows, documents, strict=True)]
        by_meaning = [_UNMEANT] * len(rows)
        if vector is not None and rows:
            by_meaning = self._by_meaning(words, vector, rows, documents, [numbers[_PURPOSE] for numbers in by_words])
        candidates = [
            ScoredCandidate(row, (*first, *second), view)
            for row, first, second in zip(rows, by_words, by_meaning, strict=True)
        ]
        return candidates, vector

    def vector(self, query: Query) -> Any:
        """The vector of what a message asks for."""
        return self._measured(query.text)[1]

    def _read(self, row: int) -> DocumentFeatures:
        *fields, grams = self._view.hashes(row)
        title = {key: self._rare(stem) for key, stem in zip(fields[0], self._view.row(row).stems, strict=True)}
        return DocumentFeatures(fields, title, frozenset(grams))

    def _by_words(self, query: Query, row: int, document: DocumentFeatures) -> list[float]:
        """The numbers of LEXICAL, and the scores of the searches in every field and in the body."""
        mass = query.features.mass
        scores = query.by_words.get(row, 0.0) / mass, query.by_body.get(row, 0.0) / mass
        return [*lexical(query.features, document, self._view.averages), *scores]

    def _by_meaning(
        self,
        words: Mapping[int, tuple[str, float]],
        vector: Any,
        rows: Sequence[int],
        documents: Sequence[DocumentFeatures],
        purposes: Sequence[float],
    ) -> Sequence[Sequence[float]]:
        """The numbers of SEMANTIC for each row; `purposes` are those of their purposes by words."""
        import numpy as np

        from navigator_kernel.routing.vectors import places, wanted_by

        near = np.zeros((len(rows), len(SEMANTIC)))
        known = None if self._encoder is None else wanted_by(self._encoder.id)
        if self._view.vectors is not None:
            others = None if known is None else known.nearest(vector)
            near[:, :5] = self._view.vectors.measured(vector, rows, others)
        if self._view.lexicon is not None:
            hashes: list[int] = []
            counts, shares = [], []
            for document in documents:
                stems = [key for at in _COMPARED for key in document.fields[at]]
                # the share of each word of the name in its rarity; a repeated word counts once
                whole, title = sum(document.title.values()) or 1.0, dict(document.title)
                shares += [title.pop(key, 0.0) / whole for key in document.fields[0]]
                shares += [0.0] * (len(stems) - len(document.fields[0]))
                hashes += stems
                counts.append(len(stems))
            near[:, 5], near[:, 6] = self._view.lexicon.near(words, hashes, counts, shares)
        near[:, 7], near[:, 8] = places(purposes), places(near[:, 1].tolist())
        rounded: list[list[float]] = near.tolist()
        return rounded

    def _encoded(self, encoder: Encoder, text: str, words: Mapping[int, tuple[str, float]]) -> Any:
        """The vector of the message; the vectors of its new words are made together with it."""
        new = self._view.lexicon.unknown(words) if self._view.lexicon is not None else {}
        both: Callable[[str, Sequence[str]], tuple[Any, Any]] | None = getattr(encoder, "message", None)
        if both is not None:
            vector, vectors = both(text, list(new.values()))
        else:
            vector = encoder.encode([text], "query")[0]
            vectors = encoder.encode(list(new.values()), "word") if new else ()
        if self._view.lexicon is not None:
            self._view.lexicon.keep(new, vectors)
        return vector

    def _rare(self, stem: str) -> float:
        """How rare a stem is in this index, from 0."""
        known = self._rarity.get(stem)
        if known is None:
            seen = max(self._view.words.seen(field, stem) for field in _RARITY_FIELDS)
            known = self._rarity[stem] = rarity(seen, self._view.count)
            self._known[stem] = seen > 0 or self._view.words.seen("body", stem) > 0
        return known


class Network(Struct, frozen=True, kw_only=True):
    """A probability from numbers in the order of EVIDENCE: a network of one hidden layer in plain Python, because an
    answer by words must not wait for numpy. `inner` has a row of weights for each hidden unit."""

    inner: Sequence[Sequence[float]]
    shift: Sequence[float]
    outer: Sequence[float]
    bias: float

    def probability(self, numbers: Sequence[float]) -> float:
        hidden = (math.tanh(sum(map(mul, row, numbers)) + by) for row, by in zip(self.inner, self.shift, strict=True))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, sum(map(mul, self.outer, hidden)) + self.bias))))


class Model(Struct, frozen=True, kw_only=True, eq=False):
    """The weights of a way of routing. `rank` weighs MEASURED for the order; to it is added a share of `by_examples`,
    how well examples describe the candidate, and for each unit by which a log is above USUAL `by_length`, of the
    message in terms, and `by_count`, of skills. `first` estimates whether the first candidate is right, `among` whether
    one of the first OFFERED is."""

    rank: Mapping[str, float]
    by_length: Mapping[str, float]
    by_count: Mapping[str, float]
    by_examples: Mapping[str, float]
    first: Network
    among: Network

    def scores(self, candidates: Sequence[ScoredCandidate], length: int, count: int) -> list[float]:
        """The score of each candidate for a message of `length` terms, among `count` skills."""
        return [sum(map(mul, self.weights(each, length, count), each.numbers)) for each in candidates]

    def weights(self, candidate: ScoredCandidate, length: int, count: int) -> Sequence[float]:
        """The weight of each of MEASURED for that candidate."""
        return _weights(self, candidate.numbers[_TAUGHT], math.log1p(length) - USUAL, math.log(count / USUAL_COUNT))


class Bands(Struct, frozen=True, kw_only=True):
    """The lowest probabilities at which a skill is taken, by boldness, or `sure` for a question that does not want any
    skill with the probability `question`; and at which skills are offered: `offer` if the message wants any skill,
    which it does from `want`, and else `likely`. A message of LONG terms is near many skills by chance: then it is
    `offer_long`. `by_count` says from how many skills on the first must be surer by how much."""

    take: Mapping[Boldness, float]
    question: float
    sure: float
    offer: float
    offer_long: float
    want: float
    likely: float
    by_count: Sequence[tuple[int, float]] = ()

    def least(self, boldness: Boldness, count: int, length: int) -> float:
        """The lowest probability at which a skill is taken, of `count` skills, for a message of `length` terms; for a
        long one never less than among few."""
        more = next((more for least, more in reversed(self.by_count) if count >= least), 0.0)
        return self.take[boldness] + (max(more, 0.0) if length >= LONG else more)


def evidence(
    candidates: Sequence[ScoredCandidate], scores: Sequence[float], query: Query, count: int, wanted: float
) -> list[float]:
    """The numbers of EVIDENCE for a ranking with `scores` in order, among `count` skills; `wanted` is the probability
    that the message wants any skill."""
    odds = [math.exp(score - scores[0]) for score in scores]
    first = candidates[0].numbers
    known = {
        "odds": log_odds(1 / sum(odds)),
        "together": log_odds(sum(odds[:OFFERED]) / sum(odds)),
        "score": scores[0],
        "gap": scores[0] - scores[1] if len(scores) > 1 else ALONE,
        "gap_third": scores[0] - scores[2] if len(scores) > OFFERED - 1 else ALONE,
        "count": math.log(count),
        "length": math.log1p(query.length),
        "known": query.known,
        "wanted": log_odds(wanted),
        "asks": float(query.asks),
    }
    known |= {name: first[at] for name, at in _OF_FIRST.items()}
    known |= {name: max(each.numbers[at] for each in candidates) for name, at in _OF_BEST.items()}
    return [known[name] for name in EVIDENCE]


def log_odds(share: float) -> float:
    """The log-odds of a share, from LEAST to MOST."""
    return max(LEAST, min(MOST, math.log((share + 1e-6) / (1 - share + 1e-6))))


@lru_cache(256)
def _weights(model: Model, taught: float, longer: float, more: float) -> Sequence[float]:
    """What is evidence for a skill never counts against it; that it has examples may, because they say a little about
    every message."""
    shifts = (model.by_examples, taught), (model.by_length, longer), (model.by_count, more)
    weights = [sum((by.get(name, 0.0) * share for by, share in shifts), model.rank.get(name, 0.0)) for name in MEASURED]
    return [weight if name == "taught" else max(0.0, weight) for name, weight in zip(MEASURED, weights, strict=True)]


@cache
def _shipped() -> dict[str, Any]:
    weights: dict[str, Any] = json.loads(Path(__file__).with_name("weights.json").read_bytes())
    return weights


@cache
def shipped(way: Way) -> Model:
    """The weights of this release."""
    return msgspec.convert(_shipped()[way], Model)


@cache
def bands(way: Way = "meaning") -> Bands:
    """The thresholds. Without an encoder nothing says whether a message wants any skill: only `likely` counts."""
    return Bands(**_shipped()["bands"][way])
