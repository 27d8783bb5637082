"""The words of messages and skills: cut into terms, joined by a glossary, and compared by BM25.

Terms are words, parts of names, and pairs of Chinese characters. The glossary has what a message calls 表格 or "slide
deck", and a skill xlsx or pptx. All is plain Python, because a sure answer by words must not wait for numpy.
"""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path

from msgspec import Struct

from navigator_kernel.text import STOP, STOP_HAN, fold, lazy_compile

K1, B = 1.2, 0.75  # BM25 (Robertson & Zaragoza 2009), with tantivy's constants
FIELDS = ("name", "purpose", "examples", "tags", "against")
COMPARED = ("name", "purpose", "tags")  # fields whose words are also compared by meaning
LEXICAL = (*(f"words_{name}" for name in FIELDS), "coverage", "name_said", "name_whole", "name_grams")
_RUNS = lazy_compile(r"[㐀-䶿一-鿿豈-﫿]+|[^\W_㐀-䶿一-鿿豈-﫿]+", re.UNICODE)
_SPACED = bytes(code if code > 0x7F or chr(code).isalnum() else 0x20 for code in range(256))
_HAN = lazy_compile(r"[㐀-䶿一-鿿豈-﫿]")
_KEPT, _LONG = 1 << 15, 64  # cached words, all dropped if there are more; the longest word to cache, in characters
# Not before the last letter of `PDFs`
CAMEL = lazy_compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])(?![A-Z]s(?![a-z]))")
_STOPS = lazy_compile("|".join(sorted(STOP_HAN, key=len, reverse=True)))
_LATIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_FIRST_HAN = "\u3400"  # the first Chinese character


def terms(text: str) -> list[str]:
    """Lower-case terms in the order of the text; each run of Chinese becomes overlapping pairs."""
    whole = text if text.isascii() else unicodedata.normalize("NFKC", text)
    spaced = whole.encode("utf-8", "surrogatepass").translate(_SPACED).decode("utf-8", "surrogatepass")
    return list(chain.from_iterable(map(_TERMS.__getitem__, spaced.split())))


def content_terms(text: str) -> list[str]:
    """`terms` without stop words."""
    whole = unicodedata.normalize("NFKC", text)
    # stop words, the longest first, become a space each, so that no pair of characters spans one
    spaced = whole if whole.isascii() else _STOPS.sub(" ", whole)
    return [term for term in terms(spaced) if term not in STOP and (len(term) > 1 or not term.isascii())]


class _Terms(dict[str, Sequence[str]]):
    """The terms of each word that occurred, in a text with a space for each ASCII character that is not a letter or a
    digit: most words occur again."""

    def __missing__(self, word: str) -> Sequence[str]:
        parts = _of_run(word) if word.isascii() else [*chain.from_iterable(map(_of_run, _RUNS.findall(word)))]
        if len(word) <= _LONG:
            if len(self) >= _KEPT:
                self.clear()
            self[word] = parts
        return parts


def _of_run(run: str) -> Sequence[str]:
    if not run.isascii() and _HAN.match(run):
        return [run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)]
    lower = run.lower()
    if run == lower or run[1:].islower() or (run.isalpha() and run.isupper()):  # most words are, and have one part
        return (lower,)
    parts = [part.lower() for part in CAMEL.split(run)]
    return parts if len(parts) == 1 else [*parts, lower]


_TERMS = _Terms()


def alike(text: str) -> list[Sequence[str]]:
    """The terms of each phrase of `glossary.tsv` in `text`; of phrases with the same start, the longest counts."""
    return list(dict.fromkeys(_glossary()[phrase] for phrase in _phrases(fold(text))))


def _phrases(text: str) -> Iterator[str]:
    """Yields each phrase in `text`, from left to right. A pattern of all phrases would find the same, but it takes
    each process 12 ms to compile."""
    glossary, lengths, at = _glossary(), _lengths(), 0
    while at < len(text):
        sizes = lengths.get(text[at : at + 2]) or lengths.get(text[at])
        if sizes and (text[at] >= _FIRST_HAN or text[at - 1 : at] not in _LATIN):
            ends = [end for length in sizes if text[at : (end := at + length)] in glossary]
            # a phrase without Chinese characters is a whole word
            whole = (end for end in ends if max(text[at:end]) >= _FIRST_HAN or text[end : end + 1] not in _LATIN)
            if (end := next(whole, at)) > at:
                yield text[at:end]
                at = end - 1
        at += 1


@cache
def _glossary() -> Mapping[str, tuple[str, ...]]:
    """The terms by phrase; a phrase on several lines has the terms of all. The phrases in the file are already folded,
    with `_` for a blank, because folding takes 8 ms."""
    glossary: dict[str, tuple[str, ...]] = {}
    for line in Path(__file__).with_name("glossary.tsv").read_text(encoding="utf-8").replace("_", "-").splitlines():
        words, _, phrases = line.partition("\t")
        for phrase in phrases.split():
            glossary[phrase] = (*glossary.get(phrase, ()), *words.split())
    return glossary


@cache
def _lengths() -> Mapping[str, Sequence[int]]:
    """The lengths of the phrases that begin with two characters, or are one, the longest first."""
    lengths: dict[str, set[int]] = defaultdict(set)
    for phrase in _glossary():
        lengths[phrase[:2]].update((len(phrase), 1) if phrase[0] in _glossary() else (len(phrase),))
    return {first: sorted(each, reverse=True) for first, each in lengths.items()}


class QueryFeatures(Struct, frozen=True):
    """A message: `terms` maps the hash of each content stem to its rarity (IDF), `mass` is their sum, `grams` are the
    hashes of its runs of three characters."""

    terms: Mapping[int, float]
    mass: float
    grams: frozenset[int]


class DocumentFeatures(Struct, frozen=True):
    """The features of a row: the hashes of its stems by FIELDS, the rarity of each stem of its name, and the hashes of
    its name's runs of three characters."""

    fields: Sequence[Sequence[int]]
    title: Mapping[int, float]
    grams: frozenset[int]


def lexical(query: QueryFeatures, document: DocumentFeatures, averages: Sequence[float]) -> list[float]:
    """The numbers of LEXICAL for one candidate; `averages` are the average lengths of FIELDS. Each number is a share, 0
    to about 2."""
    weights, mass, title = query.terms, query.mass, document.title
    common = len(document.grams & query.grams) / len(document.grams) if document.grams else 0.0
    counts = [_counts(weights, terms) for terms in document.fields]
    if not any(counts):
        return [0.0] * (len(LEXICAL) - 1) + [common]
    numbers = []
    for count, terms, average in zip(counts, document.fields, averages, strict=True):
        norm = K1 * (1 - B + B * len(terms) / max(average, 1.0))
        score = sum(weights[term] * times * (K1 + 1) / (times + norm) for term, times in count.items())
        numbers.append(score / mass)
    covered = counts[0].keys() | counts[1].keys() | counts[3].keys()
    whole = sum(title.values())
    return [
        *numbers,
        sum(weights[term] for term in covered) / mass,
        sum(weights[term] for term in counts[0]) / mass,
        sum(weights.get(term, 0.0) for term in title) / whole if whole else 0.0,
        common,
    ]


def _counts(weights: Mapping[int, float], terms: Sequence[int]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for term in terms:
        if term in weights:
            counts[term] = counts.get(term, 0) + 1
    return counts


def term_hash(term: str) -> int:
    """A hash of a term, of 32 bits. Among the few thousand terms of a language some share a hash, which costs next to
    nothing."""
    return zlib.crc32(term.encode("utf-8", errors="surrogatepass"))


@lru_cache(maxsize=4096)
def gram_hashes(text: str) -> frozenset[int]:
    spaced = f" {text.casefold()} "
    return frozenset(map(term_hash, {spaced[at : at + 3] for at in range(len(spaced) - 2)}))


def rarity(seen: int, total: int) -> float:
    """Inverse document frequency, as in BM25."""
    return math.log(1 + (total - seen + 0.5) / (seen + 0.5))
