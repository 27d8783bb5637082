"""The features of a candidate as numbers, the same for fitting, routing and explaining.

Plain Python: a hundred candidates take a millisecond, and a sure answer by words must not wait for numpy.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from msgspec import Struct

K1, B = 1.2, 0.75  # BM25 (Robertson & Zaragoza 2009), with tantivy's constants
FIELDS = ("name", "purpose", "examples", "tags", "against")
COMPARED = ("name", "purpose", "tags")  # fields whose words are also compared by meaning
Term = TypeVar("Term", int, str)  # a term's hash, or the term itself
LEXICAL = (*(f"words_{name}" for name in FIELDS), "coverage", "name_said", "name_whole", "name_grams")


class QueryFeatures(Struct, frozen=True):
    """A message: `terms` maps the hash of each content stem to its rarity (IDF), `mass` is their sum, `grams` are the
    hashes of its runs of three characters."""

    terms: Mapping[int, float]
    mass: float
    grams: frozenset[int]


class DocumentFeatures(Struct, frozen=True):
    """The features of a row: the hashes of its stems by FIELDS and all together, the rarity of each stem of its name,
    and the hashes of its name's runs of three characters."""

    fields: Sequence[Sequence[int]]
    terms: frozenset[int]
    title: Mapping[int, float]
    grams: frozenset[int]


def lexical(asked: QueryFeatures, told: DocumentFeatures, averages: Sequence[float]) -> list[float]:
    """The numbers of LEXICAL for one candidate; `averages` are the average lengths of FIELDS. Each number is a share, 0
    to about 2."""
    weights, mass, title = asked.terms, asked.mass, told.title
    alike = len(told.grams & asked.grams) / len(told.grams) if told.grams else 0.0
    if told.terms.isdisjoint(weights):
        return [0.0] * (len(LEXICAL) - 1) + [alike]
    counts = [_counts(weights, terms) for terms in told.fields]
    found = [
        bm25(weights, held, len(terms), average) / mass
        for held, terms, average in zip(counts, told.fields, averages, strict=True)
    ]
    said = counts[0].keys() | counts[1].keys() | counts[3].keys()
    found.append(sum(weights[term] for term in said) / mass)
    found.append(sum(weights[term] for term in counts[0]) / mass)
    whole = sum(title.values())
    found.append(sum(weights.get(term, 0.0) for term in title) / whole if whole else 0.0)
    found.append(alike)
    return found


def _counts(weights: Mapping[int, float], terms: Sequence[int]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for term in terms:
        if term in weights:
            counts[term] = counts.get(term, 0) + 1
    return counts


def bm25(weights: Mapping[Term, float], counts: Mapping[Term, int], length: int, average: float) -> float:
    """The BM25 score of a field of `length` terms, where `average` is the average length: `weights` are the rarities of
    the terms that are asked for, `counts` how often the field has each."""
    norm = K1 * (1 - B + B * length / max(average, 1.0))
    return sum(weights[term] * count * (K1 + 1) / (count + norm) for term, count in counts.items())


def term_hash(term: str) -> int:
    """A hash of a term, of 32 bits. Among the few thousand terms of a language some share a hash, which costs next to
    nothing."""
    return zlib.crc32(term.encode("utf-8", errors="surrogatepass"))


@lru_cache(maxsize=4096)
def gram_hashes(text: str) -> frozenset[int]:
    spaced = f" {text.casefold()} "
    return frozenset(term_hash(spaced[at : at + 3]) for at in range(len(spaced) - 2))


def rarity(seen: int, total: int) -> float:
    """Inverse document frequency, as in BM25."""
    return math.log(1 + (total - seen + 0.5) / (seen + 0.5))
