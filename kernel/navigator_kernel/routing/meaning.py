"""Tier 2: whether a skill is wanted, which one, and whether to take or to offer it (X-1, X-45, RTE-21)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import mul
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.routing.entries import Entry, entry_of
from navigator_kernel.routing.model import FEW, OFFERED, Model, Tier, bands, evidence, shipped, wanted_by
from navigator_kernel.routing.ranker import MEASURED, Query, Ranker, ScoredCandidate
from navigator_kernel.text import clean, fold, lazy_compile
from navigator_kernel.values.route import Boldness, Candidate, Retrieval

if TYPE_CHECKING:
    from navigator_kernel.routing.index import RoutingIndex
    from navigator_kernel.values.resource import SkillDef

NEAR = 0.02  # share of the first one's odds from which another skill is offered
TALK = 0.15  # probability that any skill is wanted, below which a message is small talk, whatever the candidates
TWIN = 0.005  # largest difference by words between skills with the same description
NAMES_APART = 0.08  # the same in nearness, which their names affect
SAYS = 0.05  # share of a message's words that the first skill must cover for others to be counted
COVERED = 0.15  # share of a message's words from which the first of few skills is offered as if one of many
MORE = 0.55  # share of the first one's coverage from which another skill is counted
SAID = 0.7  # nearness to an example from which a message is nearly the example
SAME = 0.95  # nearness from which it is the example, and its skill is wanted
PLAIN = range(2, 9)  # numbers of content terms for which words alone may decide
SURE = 0.97  # probability for a plain name: the fit has no messages of that kind
KNOWN = 0.75  # share of a message's words known to some skill from which words alone may decide
CLEAR = 4.0  # log-odds from which no other skill comes near
_NAMES = lazy_compile(r"(?<![\w./@-])/?([A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)+)(?![\w/-]|\.\w)", re.ASCII)
_AGAINST = lazy_compile(r"(?:\b(?:not|without|never|no|instead of)\b|n't\b|不要|不用|别|除了|而不是)", re.IGNORECASE)
_ENDS = lazy_compile(r"[.;,。；，]")
_DECLINES = lazy_compile(
    r"\bno need (?:for|to)\b|\bnot needed\b|\bnever ?mind\b|不用(?:你|再|帮)|不用[^，。；]{0,4}了|不需要(?:你|了)"
    r"|已经[^，。；]{0,8}[完好]了\W*$",
    re.IGNORECASE,
)
_AFTER = lazy_compile(r"[:：]|-(?:of|for|on|in|this|these|my|the)\b|$")
_SHOT = MEASURED.index("near_shot")
_WORDS = [MEASURED.index(f"words_{name}") for name in ("purpose", "examples", "tags", "body")]
_PURPOSE, _TEXT = MEASURED.index("words_purpose"), MEASURED.index("near_text")
_NAMED, _COVERED = MEASURED.index("name_whole"), MEASURED.index("coverage")
_NOTHING = Retrieval(candidates=(), band="direct", reason="nothing_known")


class _Weighed(Struct, frozen=True):
    """Candidates, best first, with their scores and probabilities: `wanted` that any skill is wanted, `given` that the
    first is right if one is wanted, `first` that it is right overall, `among` that one of the first OFFERED is. `ahead`
    says that the first is not a twin of the second, `same` that the message is an example of it, `few` that the
    catalogue has fewer than FEW skills."""

    found: Sequence[ScoredCandidate]
    scores: Sequence[float]
    model: Model
    tier: Tier
    wanted: float
    given: float
    first: float
    among: float
    ahead: bool = True
    same: bool = False
    few: bool = False


class SemanticRanker(Struct):
    """Ranks by words and meaning together; threads take turns. `boldness` shifts how sure it must be to take a skill,
    `lessons` are the messages that people confirmed for skills, by skill name."""

    index: RoutingIndex
    boldness: Boldness = "balanced"
    lessons: Callable[[], Mapping[str, Sequence[str]]] = dict
    _learned: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _skills: tuple[SkillDef, ...] | None = None
    _entries: dict[str, tuple[SkillDef, Sequence[str], Entry]] = field(default_factory=dict)
    _ranker: Ranker | None = field(default=None)
    _lock: Any = field(default_factory=RLock)

    def retrieve(
        self, skills: tuple[SkillDef, ...], text: str, k: int, servers: Collection[str] | None = None
    ) -> Retrieval:
        """The candidates among `skills`, best first, and the band of the leader's probability. With `servers`, the ones
        that are set up, a skill that needs another server is not taken."""

        def judged() -> Retrieval:
            found = self.judged(text, k)
            return found if servers is None else self._with_servers(found, text, k, frozenset(servers))

        return self._retrieved(skills, judged)

    def _with_servers(self, found: Retrieval, text: str, k: int, servers: frozenset[str]) -> Retrieval:
        """If the leader cannot work here: takes the skill that would be taken without such skills, else offers the
        leader."""
        lacks = {one.name: lack for one in found.candidates if (lack := self._lacks(one.name, servers))}
        if not lacks or found.band == "direct" or found.candidates[0].name not in lacks:
            return replace(found, lacks=lacks) if lacks else found
        other = self.judged(text, k, lambda name: not self._lacks(name, servers))
        if other.band == "route":
            return replace(other, lacks=lacks)
        least = NEAR * found.candidates[0].confidence
        names = found.offered or tuple(one.name for one in found.candidates if one.confidence >= least)[:OFFERED]
        return replace(found, band="ambiguous", reason="no_server", offered=names, lacks=lacks)

    def _lacks(self, name: str, servers: frozenset[str]) -> tuple[str, ...]:
        return tuple(one for one in self._entries[name][0].needed_servers if one not in servers)

    def by_words(self, skills: tuple[SkillDef, ...], text: str, k: int) -> Retrieval:
        """As `retrieve`, by words alone, without vectors."""
        return self._retrieved(skills, lambda: self._judged_by_words(text, k))

    def _judged_by_words(self, text: str, k: int) -> Retrieval:
        if self._ranker is None:
            return _NOTHING
        found = self._weighed(self._ranker, self._ranker.said(clean(text)), meaning=False)
        return _NOTHING if found is None else _banded(found, self.boldness, k)

    def _retrieved(self, skills: tuple[SkillDef, ...], judged: Callable[[], Retrieval]) -> Retrieval:
        """The result of `judged`, after `skills` became the skills to choose from."""
        with self._lock:
            return self._retrieved_alone(skills, judged)

    def _retrieved_alone(self, skills: tuple[SkillDef, ...], judged: Callable[[], Retrieval]) -> Retrieval:
        learned = self.lessons()
        entries = partial(self._told, skills, learned)
        if self._ranker is None or skills != self._skills or learned != self._learned:
            self.learn(entries())
            self._skills, self._learned = skills, learned
        try:
            return self._known(skills, judged())
        except (ValueError, LookupError, TypeError):  # a file of the right length with foreign contents
            self.index.forget()
            self.learn(entries())
            return self._known(skills, judged())

    def _told(self, skills: Sequence[SkillDef], learned: Mapping[str, Sequence[str]]) -> list[Entry]:
        """An entry for each skill; an unchanged skill keeps its entry, whose digest is known."""
        before, self._entries = self._entries, {}
        for skill in skills:
            said, held = learned.get(skill.name, ()), before.get(skill.name)
            if held is None or held[0] is not skill or held[1] != said:
                held = skill, said, entry_of(skill, said)
            self._entries[skill.name] = held
        return [entry for _, _, entry in self._entries.values()]

    def _known(self, skills: tuple[SkillDef, ...], found: Retrieval) -> Retrieval:
        """`found`; ValueError if it names a skill that is not in `skills`: a folder may bring its own index."""
        if not {one.name for one in found.candidates} <= {skill.name for skill in skills}:
            raise ValueError("the index is of other skills")
        return found

    def learn(self, entries: Sequence[Entry]) -> None:
        """Makes `entries` the skills to choose from."""
        self.index.sync(entries)
        if self.index.view is not None:
            self._ranker = Ranker(self.index.view, self.index.encoder)

    def judged(self, text: str, k: int, usable: Callable[[str], bool] | None = None) -> Retrieval:
        """The candidates and the band for `text`. A skill that the message names in full is taken before a vector is
        used, or numpy imported. Only the `usable` ones are candidates."""
        if self._ranker is None:
            return _NOTHING
        said, meaning = self._ranker.said(clean(text)), self.index.encoder is not None
        if meaning and said.length in PLAIN and not said.asks:
            words = self._weighed(self._ranker, said, meaning=False, usable=usable)
            if words is not None and words.first >= SURE and _says_most(words.found, said):
                return _banded(words, self.boldness, k)
        found = self._weighed(self._ranker, said, meaning=meaning, usable=usable)
        return _NOTHING if found is None else _banded(found, self.boldness, k)

    def _weighed(
        self, ranker: Ranker, said: Query, *, meaning: bool, usable: Callable[[str], bool] | None = None
    ) -> _Weighed | None:
        found = _allowed(ranker.measured(said, meaning=meaning), said.text)
        if usable is not None:
            found = [one for one in found if usable(one.row.id)]
        if not found:
            return None
        tier: Tier = self._tier(found) if meaning else "words"
        model = shipped(tier)
        scores = model.scores(found)
        order = _ordered(found, scores)
        if (named := _named_in_full(found, said.text)) is not None:
            order.remove(named.at)
            order.insert(0, named.at)
            scores[named.at] = max(scores)
        ahead = named is not None or len(order) == 1 or leads(found[order[0]], found[order[1]])
        if not ahead and found[order[1]].row.priority > found[order[0]].row.priority:
            order[:2] = order[1], order[0]
        ordered, held = [found[at] for at in order], sorted(scores, reverse=True)
        known = evidence(ordered, held, said.length)
        declined = named is None and declines(said.text)
        if not meaning and not said.asks and not declined and _is_plain(ordered[0], known, said.length):
            return _Weighed(ordered, held, model, tier, SURE, SURE, SURE, SURE)
        given = model.given(known)
        wanted = self._wanted(ranker.vector(said) if meaning else None, model, known)
        same = ordered[0].numbers[_SHOT] >= SAME
        if wanted < TALK:
            given = 0.0
        if same or (given >= bands(tier).sure and not said.asks) or (named is not None and named.begins):
            wanted = 1.0
        first, among = model.probability(known, wanted), model.probability_among(known, wanted)
        if named is not None:
            first = among = max(first, SURE)
        alone, view = (ahead or same) and not declined, self.index.view
        few = view is not None and view.count < FEW
        return _Weighed(ordered, held, model, tier, wanted, given, first, among, alone, same, few)

    def _wanted(self, vector: Any, model: Model, known: Mapping[str, float]) -> float:
        """The probability that the message wants any skill: from its vector, else from the candidates near it."""
        encoder = self.index.encoder
        fitted = None if vector is None or encoder is None else wanted_by(encoder.id)
        return model.any_meant(known) if fitted is None else float(fitted.probabilities(vector))

    def _tier(self, found: Sequence[ScoredCandidate]) -> Tier:
        """The tier of the weights: those fitted with examples if the message is nearly an example, or if most
        candidates near it have examples."""
        shots = [one.numbers[_SHOT] for one in found]
        taught = sum(shot > 0 for shot in shots)
        return "taught" if max(shots) >= SAID or taught > len(found) / 2 else "meaning"


def declines(text: str) -> bool:
    """Whether the message says that something is not needed, which may be the very thing that the candidates do."""
    return _DECLINES.search(text) is not None


class _Named(NamedTuple):
    """The candidate at the index `at` is named in full; `begins` says that the message begins with its name."""

    at: int
    begins: bool


def _written(text: str) -> dict[str, int]:
    """The names of several parts that the message contains as written, folded, with their positions."""
    hits = _NAMES.finditer(text) if "-" in text or "_" in text else ()
    return {fold(hit[1]): hit.start() for hit in hits}


def _allowed(found: list[ScoredCandidate], text: str) -> list[ScoredCandidate]:
    """The candidates without those that the message rules out by name: `without internal-comms`."""
    against = {name for name, at in _written(text).items() if _AGAINST.search(_ENDS.split(text[:at])[-1])}
    return [one for one in found if fold(one.row.name) not in against] if against else found


def _named_in_full(found: Sequence[ScoredCandidate], text: str) -> _Named | None:
    """The only candidate whose name of several parts occurs in the message as written, or with which the message
    begins: `word count of this: …`."""
    whole = [at for at, one in enumerate(found) if one.numbers[_NAMED] >= 1.0 - 1e-9]
    names = {at: name for at in whole if "-" in (name := fold(found[at].row.name))}
    start, written = fold(text), _written(text)
    begun = [at for at, name in names.items() if start.startswith(name) and _AFTER.match(start[len(name) :])]
    if len(begun) == 1:
        return _Named(begun[0], begins=True)
    hits = [at for at, name in names.items() if name in written]
    return _Named(hits[0], begins=False) if len(hits) == 1 else None


def _ordered(found: Sequence[ScoredCandidate], scores: Sequence[float]) -> list[int]:
    """The indexes, best first; ties by priority, then by id, and only for ties are rows read."""
    order: list[int] = []
    for _, equal in groupby(sorted(range(len(found)), key=lambda at: -scores[at]), key=lambda at: scores[at]):
        tied = list(equal)
        if len(tied) > 1:
            rows = {at: found[at].row for at in tied}
            tied.sort(key=lambda at: (-rows[at].priority, rows[at].id))
        order += tied
    return order


def _banded(weighed: _Weighed, boldness: Boldness, k: int) -> Retrieval:
    """Takes the first, offers up to OFFERED, or leaves the message alone (X-45)."""
    scores, limits = weighed.scores, bands(weighed.tier)
    odds = [math.exp(score - scores[0]) for score in scores]
    candidates = tuple(
        Candidate(name=one.row.id, score=score, confidence=weighed.first * odd, parts=_parts(one, weighed.model))
        for one, score, odd in list(zip(weighed.found, scores, odds, strict=True))[:k]
    )
    found = Retrieval(candidates=candidates, band="direct", reason="unwanted", wanted=weighed.wanted)
    wanted, sure = weighed.wanted >= limits.want, weighed.first >= limits.take[boldness]
    if wanted and sure and weighed.ahead:
        return replace(found, band="route", reason="example" if weighed.same else "leader")
    if not wanted and not sure and weighed.given < limits.likely:
        return found
    said = weighed.found[0].numbers[_COVERED] >= COVERED
    if wanted and weighed.among < (limits.offer_few if weighed.few and not said else limits.offer):
        return replace(found, reason="unlikely")
    names = tuple(one.row.id for one, odd in zip(weighed.found[:OFFERED], odds, strict=False) if odd >= NEAR)
    return replace(found, band="ambiguous", reason="likely", offered=names, more=_more(weighed.found, len(names)))


def _more(found: Sequence[ScoredCandidate], offered: int) -> int:
    """The number of candidates that are not offered but say nearly as much of the message as the first one does."""
    covers = found[0].numbers[_COVERED]
    return sum(one.numbers[_COVERED] >= MORE * covers for one in found[offered:]) if covers >= SAYS else 0


def leads(first: ScoredCandidate, second: ScoredCandidate) -> bool:
    """Whether more of the first one's name is said, or the two differ in more than their names."""
    if first.numbers[_NAMED] > second.numbers[_NAMED] or not first.numbers[_PURPOSE]:
        return True
    far = abs(first.numbers[_TEXT] - second.numbers[_TEXT]) >= NAMES_APART
    return far or any(abs(first.numbers[at] - second.numbers[at]) >= TWIN for at in _WORDS)


def _says_most(found: Sequence[ScoredCandidate], said: Query) -> bool:
    """Whether words alone may decide: skills have most words of the message, or it names the first one in full. A word
    that no skill has hardly counts for words, and may be the topic of the message: `link me to a good song`."""
    return said.known >= KNOWN or _named_in_full(found, said.text) is not None


def _is_plain(first: ScoredCandidate, known: Mapping[str, float], length: int) -> bool:
    """Whether a short message contains the whole name and only words of the skill, and no other skill comes near."""
    whole = first.numbers[_NAMED] >= 1.0 - 1e-9 and first.numbers[_COVERED] >= 1.0 - 1e-9
    return whole and length in PLAIN and known["odds"] >= CLEAR


def _parts(one: ScoredCandidate, model: Model) -> dict[str, float]:
    """The parts of the score: each number times its weight, the strongest first."""
    held = zip(map(mul, model.weights, one.numbers), MEASURED, strict=True)
    told = [(part, name) for part, name in held if part >= 0.005 or part <= -0.005]
    return {name: part for part, name in sorted(told, key=lambda one: -abs(one[0]))}
