"""The documented score of a keyword search over skills (LIF-3, LIF-16)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from navigator_kernel.text import fold

if TYPE_CHECKING:
    from navigator_kernel.values.resource import SkillDef

SEVERAL = 20  # at least two keywords matched
USES_LIMIT = 15  # three for each use


class Hit(NamedTuple):
    """`reason` is the best match of any keyword: exact, prefix, contains, description, keywords_cn, tag or category."""

    skill: SkillDef
    score: int
    reason: str
    matched: tuple[str, ...]


def search(
    skills: Iterable[SkillDef], query: str, uses: Mapping[str, int], order: Sequence[str] = ()
) -> tuple[Hit, ...]:
    """The skills that any keyword of `query` matches, best first. `uses` counts uses by folded name.

    Ties go by `order`, the names as retrieval ranks them, then by name.
    """
    words = tuple({fold(word): word for word in re.split(r"[\s,，、]+", query.strip()) if word}.values())
    rank = {name: at for at, name in reversed(list(enumerate(order)))}
    hits = [hit for skill in skills if (hit := _hit(skill, query, words, uses.get(fold(skill.name), 0)))]
    return tuple(sorted(hits, key=lambda hit: (-hit.score, rank.get(hit.skill.name, len(rank)), hit.skill.name)))


def _hit(skill: SkillDef, query: str, words: tuple[str, ...], uses: int) -> Hit | None:
    found = {word: match for word in words if (match := _match(skill, word))}
    best = max(found.values(), default=(0, ""))
    if words and fold(skill.name) == fold(query):
        best = max(best, (100, "exact"))  # a name of several words, written with spaces
    if not best[0]:
        return None
    several = SEVERAL if len(found) >= 2 else 0
    return Hit(skill, best[0] + several + min(3 * uses, USES_LIMIT), best[1], tuple(found))


def _match(skill: SkillDef, word: str) -> tuple[int, str] | None:
    folded, name, plain = fold(word), fold(skill.name), word.casefold()
    if name == folded:
        return 100, "exact"
    if name.startswith(folded):
        return 90, "prefix"
    if folded in name:
        return 80, "contains"
    if plain in skill.description.casefold():
        return 50, "description"
    if any(plain in key.casefold() or key.casefold() in plain for key in skill.keywords_cn if key):
        return 40, "keywords_cn"
    if any(plain in tag.casefold() for tag in skill.tags):
        return 30, "tag"
    return (20, "category") if plain in skill.category.casefold() else None
