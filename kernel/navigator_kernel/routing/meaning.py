"""Tier 2: whether a skill is wanted, which one, and whether to take or to offer it (X-1, X-45, RTE-21)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from operator import mul
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.language.clauses import is_long, remark
from navigator_kernel.routing.entries import Entry, entry_of
from navigator_kernel.routing.ranker import (
    EVIDENCE,
    LONG,
    MEASURED,
    OFFERED,
    Bands,
    Model,
    Query,
    Ranker,
    ScoredCandidate,
    Way,
    bands,
    evidence,
    shipped,
)
from navigator_kernel.routing.words import terms
from navigator_kernel.text import clean, fold, lazy_compile
from navigator_kernel.values.owner import looked_up
from navigator_kernel.values.route import Boldness, Candidate, Retrieval

if TYPE_CHECKING:
    from navigator_kernel.routing.index import RoutingIndex
    from navigator_kernel.values.resource import SkillDef

NEAR = 0.02  # share of the first one's odds from which another skill is offered
TIE = 0.7  # difference of the scores of two skills that are about equally likely: one is at most twice as likely
SAME_WORK = 0.55  # cosine of the texts of skills that do the same, of which either is right
RIVALS = 8  # candidates of which one may do something else than the first
TWIN = 0.005  # largest difference by words between skills with the same description
APART = 0.05  # least difference of the scores of two skills of which the first may be taken
NAMES_APART = 0.08  # the same in nearness, which their names affect
SAYS = 0.05  # share of a message's words that the first skill must cover for others to be counted
MORE = 0.55  # share of the first one's coverage from which another skill is counted
SAME = 0.95  # nearness to an example from which the message is that example
PLAIN = range(2, 9)  # numbers of content terms for which words alone may decide
READ_WHOLE = 2_000  # characters of a message of which also what it excludes says whether it wants any skill
WITH_FILE = 0.6  # least probability that a message that names a file wants any skill
ASKED = 0.25  # probability that one of the first is right from which they are offered to a question
SURE = 0.97  # probability for a name or an example: the fit has no messages of that kind
KNOWN = 0.75  # share of a message's words known to some skill from which words alone may decide
CLEAR = 4.0  # log-odds from which no other skill comes near
_NAMES = lazy_compile(r"(?<![\w./@-])/?([A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)+)(?![\w/-]|\.\w)", re.ASCII)
_AGAINST = lazy_compile(r"(?:\b(?:not|without|never|no|instead of)\b|n't\b|不要|不用|别|除了|而不是)", re.IGNORECASE)
_FILE = lazy_compile(r"(?<![\w.])@\w")  # the mark of a file
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
_ODDS = EVIDENCE.index("odds")
_NAMED, _COVERED = MEASURED.index("name_whole"), MEASURED.index("coverage")
_NOTHING = Retrieval(candidates=(), band="direct", reason="nothing_known")


class Weighed(Struct, frozen=True):
    """What is asked, of how many skills; the candidates, best first, with their scores by the model; and the
    probabilities that the message wants any skill (None without an encoder), that the first is right, and that one of
    the first OFFERED is. `alone` says that the first may be taken, `same` that the message is an example of it, `quiet`
    that the message only says what somebody feels."""

    query: Query
    count: int
    candidates: Sequence[ScoredCandidate]
    model: Model
    scores: Sequence[float]
    wanted: float | None
    first: float
    among: float
    alone: bool = True
    same: bool = False
    quiet: bool = False


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
            retrieval = self.judged(text, k)
            return retrieval if servers is None else self._with_servers(retrieval, text, k, frozenset(servers))

        return self._retrieved(skills, judged)

    def _with_servers(self, retrieval: Retrieval, text: str, k: int, servers: frozenset[str]) -> Retrieval:
        """If the leader cannot work here: takes the skill that would be taken without such skills, else offers the
        leader."""
        lacks = {each.name: lack for each in retrieval.candidates if (lack := self._lacks(each.name, servers))}
        if not lacks or retrieval.band == "direct" or retrieval.candidates[0].name not in lacks:
            return replace(retrieval, lacks=lacks) if lacks else retrieval
        other = self.judged(text, k, lambda name: not self._lacks(name, servers))
        if other.band == "route":
            return replace(other, lacks=lacks)
        least = NEAR * retrieval.candidates[0].confidence
        likely = tuple(each.name for each in retrieval.candidates if each.confidence >= least)[:OFFERED]
        offered = retrieval.offered or likely
        return replace(retrieval, band="ambiguous", reason="no_server", offered=offered, lacks=lacks)

    def _lacks(self, name: str, servers: frozenset[str]) -> tuple[str, ...]:
        return tuple(each for each in self._entries[name][0].needed_servers if each not in servers)

    def by_words(self, skills: tuple[SkillDef, ...], text: str, k: int) -> Retrieval:
        """As `retrieve`, by words alone, without vectors."""
        return self._retrieved(skills, lambda: self.judged(text, k, meaning=False))

    def varied(self, names: Sequence[str]) -> Sequence[str]:
        """`names`, those of skills that do nearly the same as an earlier one last; unchanged without vectors."""
        with self._lock:
            view = self.index.view
            if view is None or view.vectors is None:
                return names
            rows, known = view.rows_by_digest, [name for name in names if name in self._entries]
            different = view.vectors.different([rows[self._entries[name][2].digest] for name in known])
            return tuple(dict.fromkeys((*(known[at] for at in different), *names)))

    def _retrieved(self, skills: tuple[SkillDef, ...], judged: Callable[[], Retrieval]) -> Retrieval:
        """The result of `judged`, after `skills` became the skills to choose from. If a file of the index has the right
        length and foreign contents, the index is built again."""
        with self._lock:
            learned = self.lessons()
            if self._ranker is None or skills != self._skills or learned != self._learned:
                self.learn(self._updated(skills, learned))
                self._skills, self._learned = skills, learned
            with suppress(ValueError, LookupError, TypeError):
                retrieval = judged()
                if all(candidate.name in self._entries for candidate in retrieval.candidates):
                    return retrieval
            self.index.forget()
            self.learn(self._updated(skills, learned))
            return judged()

    def _updated(self, skills: Sequence[SkillDef], learned: Mapping[str, Sequence[str]]) -> list[Entry]:
        """An entry for each skill; an unchanged skill keeps its entry, whose digest is known."""
        before, self._entries = self._entries, {}
        for skill in skills:
            examples, known = learned.get(skill.name, ()), before.get(skill.name)
            if known is None or known[0] is not skill or known[1] != examples:
                known = skill, examples, entry_of(skill, examples)
            self._entries[skill.name] = known
        return [entry for _, _, entry in self._entries.values()]

    def learn(self, entries: Sequence[Entry]) -> None:
        """Makes `entries` the skills to choose from."""
        self.index.sync(entries)
        if self.index.view is not None:
            self._ranker = Ranker(self.index.view, self.index.encoder)

    def judged(
        self, text: str, k: int, usable: Callable[[str], bool] | None = None, *, meaning: bool = True
    ) -> Retrieval:
        """The candidates and the band for `text`. A skill that the message names in full is taken before a vector is
        used, or numpy imported. Only the `usable` ones are candidates. Without `meaning`, words alone decide."""
        if self._ranker is None or self.index.view is None:
            return _NOTHING
        text, count = clean(text), self.index.view.count
        query = self._ranker.query(text)

        def weighed(way: Way) -> Weighed | None:
            candidates = allowed(ranker.measured(query, meaning=way == "meaning"), text)
            if usable is not None:
                candidates = [each for each in candidates if usable(each.row.id)]
            wanted = self._wanted(ranker, query, text) if way == "meaning" else None
            return weigh(candidates, query, shipped(way), count, wanted) if candidates else None

        ranker = self._ranker
        way: Way = "meaning" if meaning and self.index.encoder is not None else "words"
        if way == "meaning" and query.length in PLAIN and not query.asks:
            words = weighed("words")
            # Words alone may decide if skills have most words of the message, or it names the first one in full. A word
            # that no skill has hardly counts for words, and may be the topic of the message: `link me to a good song`
            if (
                words is not None
                and words.first >= SURE
                and (query.known >= KNOWN or _named_in_full(words.candidates, query.text) is not None)
            ):
                return banded(words, bands("words"), self.boldness, k)
        result = weighed(way)
        return _NOTHING if result is None else banded(result, bands(way), self.boldness, k)

    def _wanted(self, ranker: Ranker, query: Query, text: str) -> float | None:
        """The probability that the message wants any skill; None if nothing is fitted for this encoder."""
        from navigator_kernel.routing.vectors import wanted_by

        encoder = self.index.encoder
        if encoder is None or (fitted := wanted_by(encoder.id)) is None:
            return None
        is_apart = query.text != text and is_long(text) and len(text) <= READ_WHOLE
        whole = looked_up((encoder.id, text), lambda: encoder.encode([text], "query")[0]) if is_apart else None
        wanted = float(fitted.probabilities(ranker.vector(query) if whole is None else whole))
        return max(wanted, WITH_FILE) if _FILE.search(text) else wanted


def weigh(
    candidates: Sequence[ScoredCandidate], query: Query, model: Model, count: int, wanted: float | None
) -> Weighed:
    """Orders the candidates, of `count` skills, and estimates how sure the first ones are."""
    scores = model.scores(candidates, query.length, count)
    order = _ordered(candidates, scores)
    named = _named_in_full(candidates, query.text)
    spoken = max(order, key=lambda at: candidates[at].numbers[_SHOT])
    same = candidates[spoken].numbers[_SHOT] >= SAME
    near = [at for at in order if scores[order[0]] - scores[at] <= TIE]
    by_name = [at for at in near if candidates[at].numbers[_NAMED] >= 1.0 - 1e-9 and "-" in candidates[at].row.name]
    tied = len(near) > len(by_name) == 1 and named is None and not same  # the message says the name of one of them
    leader = named.at if named is not None else spoken if same else by_name[0] if tied else order[0]
    rival = next((scores[at] for at in order if at not in near), min(scores)) if tied else None
    order.remove(leader)
    order.insert(0, leader)
    scores[leader] = max(scores)
    ahead = named is not None or same or tied or len(order) == 1
    if not ahead:
        apart = scores[order[0]] - scores[order[1]] >= APART
        ahead = apart and leads(candidates[order[0]], candidates[order[1]])
    if not ahead and candidates[order[1]].row.priority > candidates[order[0]].row.priority:
        order[:2] = order[1], order[0]
    ordered, scores = [candidates[at] for at in order], sorted(scores, reverse=True)
    numbers = evidence(ordered, scores, query, count, 0.5 if wanted is None else wanted)
    remarked = remark(query.message) if named is None and not same else ""
    # a single word says little, unless it is a name
    declined = named is None and (
        _DECLINES.search(query.text) is not None  # what is not needed may be the very thing that the candidates do
        or remarked != ""
        or (not same and ordered[0].numbers[_NAMED] < 1.0 - 1e-9 and len(terms(query.message)) == 1)
    )
    # the probability that the first is right rather than the next that does something else: both are at most 1
    if rival is None:  # a candidate that does the same as the first is none
        rows = [each.at for each in ordered[:RIVALS]]
        vectors = None if wanted is None else ordered[0].view.vectors  # words alone must not wait for numpy
        others = range(len(rows)) if vectors is None else vectors.different(rows, SAME_WORK)
        rival = scores[others[1]] if len(others) > 1 else None
    over_rival = 1.0 if rival is None else 1 / (1 + math.exp(rival - scores[0]))
    first, among = min(model.first.probability(numbers), over_rival), model.among.probability(numbers)
    # a short message with the whole name and only words of the skill, which no other skill comes near
    first_numbers = ordered[0].numbers
    whole = first_numbers[_NAMED] >= 1.0 - 1e-9 and first_numbers[_COVERED] >= 1.0 - 1e-9
    is_plain = whole and query.length in PLAIN and numbers[_ODDS] >= CLEAR
    plain = wanted is None and not query.asks and not declined and is_plain
    if same or plain or named is not None:
        first = max(first, SURE)
    if same or plain or (named is not None and named.begins):
        wanted = 1.0
    among, alone = max(first, among), ahead and not declined
    return Weighed(query, count, ordered, model, scores, wanted, first, among, alone, same, remarked == "feeling")


class _Named(NamedTuple):
    """The candidate at the index `at` is named in full; `begins` says that the message begins with its name."""

    at: int
    begins: bool


def _written(text: str) -> dict[str, int]:
    """The names of several parts that the message contains as written, folded, with their positions."""
    hits = _NAMES.finditer(text) if "-" in text or "_" in text else ()
    return {fold(hit[1]): hit.start() for hit in hits}


def allowed(candidates: Sequence[ScoredCandidate], text: str) -> Sequence[ScoredCandidate]:
    """The candidates without those that the message rules out by name: `without internal-comms`."""
    against = {name for name, at in _written(text).items() if _AGAINST.search(_ENDS.split(text[:at])[-1])}
    return [each for each in candidates if fold(each.row.name) not in against] if against else candidates


def _named_in_full(candidates: Sequence[ScoredCandidate], text: str) -> _Named | None:
    """The only candidate whose name of several parts occurs in the message as written, or with which the message
    begins: `word count of this: …`."""
    whole = [at for at, each in enumerate(candidates) if each.numbers[_NAMED] >= 1.0 - 1e-9]
    names = {at: name for at in whole if "-" in (name := fold(candidates[at].row.name))}
    start, written = fold(text), _written(text)
    begun = [at for at, name in names.items() if start.startswith(name) and _AFTER.match(start[len(name) :])]
    if len(begun) == 1:
        return _Named(begun[0], begins=True)
    hits = [at for at, name in names.items() if name in written]
    return _Named(hits[0], begins=False) if len(hits) == 1 else None


def _ordered(candidates: Sequence[ScoredCandidate], scores: Sequence[float]) -> list[int]:
    """The indexes, best first; ties by priority, then by id, and only for ties are rows read."""
    order: list[int] = []
    for _, equal in groupby(sorted(range(len(candidates)), key=lambda at: -scores[at]), key=lambda at: scores[at]):
        tied = list(equal)
        if len(tied) > 1:
            rows = {at: candidates[at].row for at in tied}
            tied.sort(key=lambda at: (-rows[at].priority, rows[at].id))
        order += tied
    return order


def banded(weighed: Weighed, limits: Bands, boldness: Boldness, k: int) -> Retrieval:
    """Takes the first, offers up to OFFERED, or leaves the message alone (X-45)."""
    scores = weighed.scores
    odds = [math.exp(score - scores[0]) for score in scores]
    candidates = tuple(
        Candidate(name=each.row.id, score=score, confidence=weighed.first * odd, parts=_parts(each, weighed))
        for each, score, odd in list(zip(weighed.candidates, scores, odds, strict=True))[:k]
    )
    wanted = weighed.wanted or 0.0
    retrieval = Retrieval(candidates=candidates, band="direct", reason="unwanted", wanted=wanted)
    if weighed.quiet:
        return retrieval
    doubts = weighed.query.asks and wanted < limits.question
    least = limits.sure if doubts else limits.least(boldness, weighed.count, weighed.query.length)
    if weighed.alone and weighed.first >= least:
        return replace(retrieval, band="route", reason="example" if weighed.same else "leader")
    offer = limits.offer_long if weighed.query.length >= LONG else limits.offer
    offer = max(offer, ASKED) if weighed.query.asks else offer
    unread = weighed.query.foreign and not weighed.candidates[0].numbers[_NAMED]
    if unread or weighed.among < (offer if wanted >= limits.want else limits.likely):
        return replace(retrieval, reason="unlikely") if wanted >= limits.want else retrieval
    best = weighed.candidates
    names = tuple(each.row.id for each, odd in zip(best[:OFFERED], odds, strict=False) if odd >= NEAR)
    # those that are not offered but say nearly as much of the message as the first one does
    covers = best[0].numbers[_COVERED]
    more = sum(each.numbers[_COVERED] >= MORE * covers for each in best[len(names) :]) if covers >= SAYS else 0
    return replace(retrieval, band="ambiguous", reason="likely", offered=names, more=more)


def leads(first: ScoredCandidate, second: ScoredCandidate) -> bool:
    """Whether more of the first one's name is said, or the two differ in more than their names."""
    if first.numbers[_NAMED] > second.numbers[_NAMED] or not first.numbers[_PURPOSE]:
        return True
    far = abs(first.numbers[_TEXT] - second.numbers[_TEXT]) >= NAMES_APART
    return far or any(abs(first.numbers[at] - second.numbers[at]) >= TWIN for at in _WORDS)


def _parts(candidate: ScoredCandidate, weighed: Weighed) -> dict[str, float]:
    """The parts of the score: each number times its weight, the strongest first."""
    weights = weighed.model.weights(candidate, weighed.query.length, weighed.count)
    parts = zip(map(mul, weights, candidate.numbers), MEASURED, strict=True)
    large = [(part, name) for part, name in parts if part >= 0.005 or part <= -0.005]
    return {name: part for part, name in sorted(large, key=lambda each: -abs(each[0]))}
