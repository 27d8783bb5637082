"""The router: tier 1 by names and verbs, tier 2 by retrieval with a band of doubt (X-1, COV-1..7)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.errors import KernelError
from navigator_kernel.routing.lexical import LexicalIndex
from navigator_kernel.routing.verbs import Names, changes_skills, recognise
from navigator_kernel.text import clean, fold
from navigator_kernel.values.route import Action, Candidate, Retrieval

if TYPE_CHECKING:
    from navigator_kernel.ports import Catalogue, KnownSkills
    from navigator_kernel.routing.meaning import Meaning
    from navigator_kernel.values.resource import SkillDef

ROUTE_AT = 0.62  # confidence from which one candidate is taken
ASK_AT = 0.45  # confidence from which two near candidates are worth a question
MARGIN = 0.12  # share of the best score by which it must lead


class CascadeRouter(Struct):
    """Implements `ports.Router`. `meaning` ranks; without it words decide alone, over an index in memory that is made
    anew when the catalogue's list changes."""

    catalogue: Catalogue
    mapping: KnownSkills
    scripts: Mapping[str, Path]
    servers: Sequence[str] = ()
    meaning: Meaning | None = None
    _skills: tuple[SkillDef, ...] = ()
    _index: LexicalIndex | None = None

    def recognise(self, text: str) -> Action | None:
        names = Names(catalogue=self.catalogue, mapping=self.mapping, scripts=self.scripts, servers=self.servers)
        return recognise(clean(text, lines=False), names)

    def retrieve(self, text: str, k: int = 12) -> Retrieval:
        skills = tuple(s for s in self.catalogue.list_resources() if s.type == "skill" and s.implicit)
        if self.meaning is not None:
            try:
                found = self.meaning.retrieve(skills, text, k)
            except KernelError as error:
                import logging

                logging.getLogger("navigator").warning("routing by words only: %s", error.message)
                self.meaning = None
            else:
                if len(_unharmed(found.candidates, text)) == len(found.candidates):
                    return found
        return self._by_words(skills, text, k)

    def _by_words(self, skills: tuple[SkillDef, ...], text: str, k: int) -> Retrieval:
        if self._index is None or skills != self._skills:
            self._skills, self._index = skills, LexicalIndex(skills)
        found = [replace(c, confidence=confidence(c)) for c in self._index.rank(clean(text), k)]
        return banded(_unharmed(found, text))


def _unharmed(found: Sequence[Candidate], text: str) -> list[Candidate]:
    """Without what an order to remove or to switch off names."""
    if not changes_skills(text):
        return list(found)
    return [candidate for candidate in found if fold(candidate.name) not in fold(text)]


def confidence(candidate: Candidate) -> float:
    """A probability by hand, until the routing issue fits one: a logistic of what was matched."""
    parts = candidate.parts
    evidence = 5.5 * parts["coverage"] + 2.0 * parts["name"] + 4.0 * parts["example"] - 4.2
    return 1 / (1 + math.exp(-evidence))


def banded(found: Sequence[Candidate]) -> Retrieval:
    """`route` for a sure and clear leader, `ambiguous` for two that are equally likely, else `direct` (RTE-21)."""
    if not found:
        return Retrieval(candidates=(), band="direct", reason="nothing_known")
    best = found[0]
    lead = 1.0 if len(found) == 1 else (best.score - found[1].score) / best.score
    if best.confidence < ASK_AT:
        return Retrieval(candidates=tuple(found), band="direct", reason="unlikely")
    if lead < MARGIN and found[1].confidence >= ASK_AT and best.parts["example"] < 0.9:
        return Retrieval(candidates=tuple(found), band="ambiguous", reason="equal")
    if best.confidence < ROUTE_AT:
        return Retrieval(candidates=tuple(found), band="direct", reason="unlikely")
    return Retrieval(candidates=tuple(found), band="route", reason="leader")
