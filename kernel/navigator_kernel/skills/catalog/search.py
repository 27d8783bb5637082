"""The documented score of a keyword search over skills (LIF-3, LIF-16), and the router's part of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from navigator_kernel.text import fold, lazy_compile

if TYPE_CHECKING:
    from navigator_kernel.values.resource import SkillDef

SEVERAL = 20  # bonus if at least two keywords match
USES_LIMIT = 15  # highest bonus for uses, three points for each
SURE = 50  # the router is almost certain of the skill: the same score as for a description
STANDS, NEAR = 15, 12  # the router finds the skill: its text has a keyword, or another form of one
BEGINS, LETTERS = 14, 10  # the name begins with a keyword's letters; a word in the texts contains them
_Match = tuple[int, str]  # score and reason
_LATIN = "a-z\u00df-\u024f"
_APART = lazy_compile(r"[\s,，、]+")
_STARTS_LATIN = lazy_compile(f"[{_LATIN}]")
_ENDS_LATIN = lazy_compile(f"[{_LATIN}]$")


class Hit(NamedTuple):
    """`reason` is the best match of any keyword: exact, prefix, contains, description, keywords_cn, tag or category;
    without one of these, router or letters."""

    skill: SkillDef
    score: int
    reason: str


class _Word(NamedTuple):
    """A keyword in the forms of names and of texts."""

    folded: str
    plain: str


def search(
    skills: Iterable[SkillDef],
    query: str,
    uses: Mapping[str, int],
    order: Sequence[str] = (),
    sure: Collection[str] = (),
) -> tuple[Hit, ...]:
    """The skills that any keyword of `query` matches, best first. `uses` counts uses by folded name.

    A keyword matches as a whole word. `order` are the names that the router finds, best first: those without a matching
    keyword are included, and ties are ordered by it, then by name. `sure` are those that the router is sure of.
    """
    held = {fold(word): word.casefold() for word in _APART.split(query.strip()) if word}
    words = tuple(_Word(*one) for one in held.items())
    rank = {name: at for at, name in reversed(list(enumerate(order)))}

    def found(skill: SkillDef) -> Hit | None:
        name = fold(skill.name)
        exact = bool(words) and name == fold(query)  # a name of several words, written with spaces
        matches = [match for word in words if (match := _match(skill, name, word))]
        best = max([*matches, (100, "exact") if exact else (0, "")])
        best = best if best[0] else _other(skill, name, words, rank, sure)
        bonus = (SEVERAL if len(matches) >= 2 else 0) + min(3 * uses.get(name, 0), USES_LIMIT)
        return Hit(skill, best[0] + bonus, best[1]) if best[0] else None

    hits = [hit for skill in skills if (hit := found(skill))]
    return tuple(sorted(hits, key=lambda hit: (-hit.score, rank.get(hit.skill.name, len(rank)), hit.skill.name)))


def _match(skill: SkillDef, name: str, word: _Word) -> _Match | None:
    if name == word.folded:
        return 100, "exact"
    if word.folded in name and (stands := _as_word(word.folded).search(name)):
        return (80, "contains") if stands.start() else (90, "prefix")
    if _stands(word.plain, skill.description):
        return 50, "description"
    if any(_stands(word.plain, key) or _stands(key.casefold(), word.plain) for key in skill.keywords_cn if key):
        return 40, "keywords_cn"
    if any(_stands(word.plain, tag) for tag in skill.tags):
        return 30, "tag"
    return (20, "category") if _stands(word.plain, skill.category) else None


def _other(
    skill: SkillDef, name: str, words: Sequence[_Word], rank: Mapping[str, int], sure: Collection[str]
) -> _Match:
    """The match of a skill by the router or by letters, if no keyword matches as a word."""
    best = (0, "")
    if skill.name in rank:
        stands = any(_stands(word.plain, skill.sop) for word in words)
        best = (SURE if skill.name in sure else STANDS if stands else NEAR), "router"
    text = "\n".join((name, skill.description, *skill.tags, *skill.keywords_cn, skill.category)).casefold()
    if any(name.startswith(word.folded) for word in words):
        return max(best, (BEGINS, "letters"))
    return max(best, (LETTERS, "letters")) if any(w.folded in name or w.plain in text for w in words) else best


def _stands(word: str, text: str) -> bool:
    text = text.casefold()
    return word in text and _as_word(word).search(text) is not None


@lru_cache(512)
def _as_word(word: str) -> re.Pattern[str]:
    """A pattern of `word` without a letter around it, except for the plural; Chinese has no gaps between words."""
    before = f"(?<![{_LATIN}])" if _STARTS_LATIN.match(word) else r"(?<!\d)" if word[:1].isdigit() else ""
    after = f"(?:e?s)?(?![{_LATIN}])" if _ENDS_LATIN.search(word) else r"(?!\d)" if word[-1:].isdigit() else ""
    return lazy_compile(before + re.escape(word) + after)
