"""Fits the router's decision: `python -m bench.fit_decision FOLDER`, on the sets of FOLDER and `messages.tsv`.

Three things are fitted for an order that is fixed: whether a message wants any skill, whether the first is the right one,
whether one of the first three is. A set decides nothing about itself: what is printed comes from weights that were fitted
without it, and of the everyday messages without a fifth of them at a time. What is written was fitted on all.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import numpy as np

from bench.fit_router import TOLD, Sample, descend, sampled, variants
from bench.fit_wanted import wanting
from bench.routing_metrics import FOUR, Decided, four
from bench.routing_sets import Asked, Question, RoutingSet, everyday
from bench.routing_sets import scale as skills
from navigator_kernel.model_ports import Encoder
from navigator_kernel.routing.meaning import TALK, declines, leads
from navigator_kernel.routing.model import AMONG, FIRST, MEANT, OFFERED, Model, Tier, evidence, log_odds

# Weight of each set: people type everyday messages; intents and APIs resemble skills less than real skills do
SHARES = {"everyday": 3.0, "realskills": 1.0, "azure": 1.0, "fastskills": 1.0, "toole": 0.4, "idaibin": 0.3}
OTHERS = 0.1
SPOILED = 0.3  # factor for a question whose right skills were removed from the candidates
QUESTIONS, FOLDS = 500, 5
RIDGE, SCALE = 0.5, 1000.0
BANDS: Mapping[Tier, Mapping[str, Any]] = {
    "meaning": {
        "take": {"cautious": 0.85, "balanced": 0.76, "bold": 0.62},
        "offer": 0.04,
        "offer_few": 0.3,
        "want": 0.55,
        "likely": 0.8,
        "sure": 0.9,
    },
    "taught": {
        "take": {"cautious": 0.75, "balanced": 0.63, "bold": 0.5},
        "offer": 0.1,
        "offer_few": 0.45,
        "want": 0.55,
        "likely": 0.8,
        "sure": 0.9,
    },
    "words": {  # without an encoder
        "take": {"cautious": 0.75, "balanced": 0.64, "bold": 0.5},
        "offer": 0.35,
        "offer_few": 0.35,
        "want": 0.85,
        "likely": 0.9,
        "sure": 0.95,
    },
}
PLAIN: Mapping[str, Any] = {"meant": {}, "first": {}, "among": {}, "right": (1.0, 0.0), "offered": (1.0, 0.0)}
FEWER = "~"  # in the name of a small catalogue, before its number of skills
DRAWN = {2: 30, 6: 16, 14: 10, 40: 5}  # catalogues drawn from a set, by their number of skills
DRAWN_FROM = ("everyday", "realskills", "fastskills_zh", "toole_single")
ASKED = 20  # highest number of questions for the skills of a small catalogue
# The sets that calibrate a tier. Everyday messages name every suitable skill; most other sets name one of several, so
# confidences fitted on them are too low. By words alone, an almost sure skill is taken at once: other sets count too
CALIBRATED: Mapping[Tier, Sequence[str]] = {
    "meaning": ("everyday",),
    "words": ("everyday", "realskills", "azure", "fastskills"),
}

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Row:
    """A question's evidence; `labelled` says that it is for a skill, `spoiled` that the right ones were taken out."""

    set_name: str
    text: str
    known: Mapping[str, float]
    first: bool
    among: bool
    labelled: bool
    spoiled: bool
    fold: int
    leads: bool = True
    asks: bool = False
    kind: str = ""
    lang: str = ""

    @property
    def group(self) -> str:
        return re.split(r"[+,_~]", self.set_name)[0]


def logistic_fit(numbers: Array, answers: Array, weights: Array, ridge: float) -> Array:
    """Weights of a logistic regression, the bias last and hardly held back; `weights` are those of the rows."""
    whole = np.column_stack([numbers, np.ones(len(numbers))])
    held = np.append(np.full(whole.shape[1] - 1, ridge), 0.01)

    def slope(found: Array) -> tuple[float, Array, Array]:
        total = np.clip(whole @ found, -30, 30)
        odds = 1 / (1 + np.exp(-total))
        loss = float(held @ found**2) / 2 + float(weights @ (np.logaddexp(0, total) - answers * total))
        gradient = held * found + whole.T @ (weights * (odds - answers))
        return loss, gradient, np.diag(held) + (whole * (weights * odds * (1 - odds))[:, None]).T @ whole

    return descend(slope, whole.shape[1])


def chances(found: Array, numbers: Array) -> Array:
    found_chances: Array = 1 / (1 + np.exp(-np.clip(numbers @ found[:-1] + found[-1], -30, 30)))
    return found_chances


def rows_of(sample: Sample, asked: Sequence[Asked], model: Model, texts: Sequence[str]) -> Iterator[Row]:
    """Each question, and again without its right skills: what a catalogue looks like that has none for it. Every
    question of a small catalogue wants a skill, whether it has one or not."""
    small = FEWER in sample.name
    for at, (found, right) in enumerate(zip(sample.found, sample.right, strict=True)):
        labelled = small or sample.labels[at] > 0
        kind = "none" if not labelled else "clear" if sample.labels[at] else "absent"
        about = asked[at] if asked else Asked(texts[at], "", kind, ())
        spoiled = [one for one, is_right in zip(found, right, strict=True) if not is_right]
        for spoils, held in ((False, found), (True, spoiled if sample.labels[at] and not small else [])):
            if not held:
                continue
            scores = model.scores(held)
            order = sorted(range(len(held)), key=lambda one: -scores[one])
            known = evidence([held[one] for one in order], [scores[one] for one in order], sample.lengths[at])
            hits = [not spoils and right[one] for one in order[:OFFERED]]
            fold = crc32(texts[at].encode()) % FOLDS
            row = Row(sample.name, texts[at], known, hits[0], any(hits), labelled, spoils, fold)
            ahead = len(order) == 1 or leads(held[order[0]], held[order[1]])
            ahead = ahead and not declines(texts[at])
            yield replace(row, kind=about.kind, lang=about.lang, leads=ahead, asks=sample.asks[at])


def shared(rows: Sequence[Row]) -> Array:
    """What each row counts for."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.group] = counts.get(row.group, 0) + 1
    held = [SHARES.get(row.group, OTHERS) / counts[row.group] * (SPOILED if row.spoiled else 1.0) for row in rows]
    return np.array(held) * SCALE


def numbers_of(rows: Sequence[Row], names: Sequence[str]) -> Array:
    return np.array([[row.known[name] for name in names] for row in rows])


def left_out(row: Row) -> tuple[str, int]:
    """What a fit must not have seen that answers this row: its set, of the everyday messages its fold."""
    return row.group, row.fold if row.group == "everyday" else 0


def fitted(
    rows: Sequence[Row], more: Sequence[Row], names: Sequence[str], answers: Array, weights: Array
) -> tuple[Array, Array]:
    """Weights from all `rows` that want a skill, and the chance of each of `rows` and `more` by those that were fitted
    without it."""
    numbers, asked = numbers_of(rows, names), numbers_of([*rows, *more], names)
    wants, held = np.array([row.labelled for row in rows]), np.zeros(len(asked))
    own = [left_out(row) for row in (*rows, *more)]
    for key in dict.fromkeys(own):
        asks = np.array([one == key for one in own])
        use = ~asks[: len(rows)] & wants
        held[asks] = chances(logistic_fit(numbers[use], answers[use], weights[use], RIDGE), asked[asks])
    return logistic_fit(numbers[wants], answers[wants], weights[wants], RIDGE), held


def tier(
    which: Tier,
    rows: Sequence[Row],
    wanted: Mapping[str, float],
    order: Mapping[str, float],
    more: Sequence[Row] = (),
) -> tuple[dict[str, Any], dict[str, list[Decided]]]:
    """A tier's weights, and what is decided about `rows` and `more` by weights that were fitted without them, by set
    and language; `wanted` are the chances that a text wants a skill, else those of what comes near to it."""
    weights, real = shared(rows), np.array([not row.spoiled for row in rows])
    labelled = np.array([row.labelled for row in rows], float)
    near = numbers_of([*rows, *more], MEANT)
    meant = logistic_fit(near[: len(rows)][real], labelled[real], weights[real], RIDGE)
    wants = np.array([wanted.get(row.text, -1.0) for row in (*rows, *more)])
    wants = np.where(wants < 0, chances(meant, near), wants)
    held: dict[str, Any] = {"rank": dict(order), "meant": _named(MEANT, meant)}
    sure, given = {}, {}
    calibrated = CALIBRATED.get(which)
    use = real & np.array([calibrated is None or row.group in calibrated for row in rows])
    for name, names, scale in (("first", FIRST, "right"), ("among", AMONG, "offered")):
        answers = np.array([getattr(row, name) for row in rows], float)
        found, own = fitted(rows, more, names, answers, weights)
        odds = np.array([[log_odds(one)] for one in wants * own])
        scaled = logistic_fit(odds[: len(rows)][use], answers[use], weights[use], 0.01)
        held |= {name: _named(names, found), scale: [round(float(one), 4) for one in scaled]}
        sure[name] = chances(scaled, odds)
        given[name] = own
    return held, decided([*rows, *more], wants, given["first"], sure, BANDS[which])


def decided(
    rows: Sequence[Row], wants: Array, given: Array, sure: Mapping[str, Array], bands: Mapping[str, Any]
) -> dict[str, list[Decided]]:
    """What follows for each message, by set and language."""
    by_set: dict[str, list[Decided]] = {}
    for row, want, held, first, among in zip(rows, wants, given, sure["first"], sure["among"], strict=True):
        if row.spoiled:
            continue
        held = held if want >= TALK else 0.0
        wanted, likely = want >= bands["want"], first >= bands["take"]["balanced"] or held >= bands["likely"]
        surely = held >= bands["sure"] and not row.asks  # as in `meaning`: similarity to a question is weaker evidence
        takes = ((wanted and first >= bands["take"]["balanced"]) or surely) and row.leads
        offers = not takes and (wanted or likely) and (among >= bands["offer"] or not wanted)
        one = Decided(row.kind, takes, offers, row.first, row.among, float(first))
        by_set.setdefault(f"{row.set_name.partition('-')[0]} {row.lang}".strip(), []).append(one)
    return by_set


def report(found: Mapping[str, Sequence[Decided]]) -> None:
    """The four numbers of each set, of everyday messages by language (and kind, see `routing_metrics.four`)."""
    print(f"{'set':24} {'  '.join(FOUR)}")
    for name, decisions in found.items():
        print(f"{name:24} {'  '.join('-' if one is None else f'{one:.3f}' for one in four(decisions))}")


def smaller(found: RoutingSet) -> Iterator[RoutingSet]:
    """Small catalogues drawn from a set, each with questions for its skills and as many for others: most people have
    ten skills, and what they ask for is often none of them."""
    chance, entries = random.Random(0), {entry.id: entry for entry in found.entries}
    asked = [one for one in found.questions if one.labels]
    for size, times in DRAWN.items():
        for time in range(times):
            chance.shuffle(asked)
            ids = dict.fromkeys(label for one in asked[: size // 2] for label in one.labels)
            ids |= dict.fromkeys(chance.sample(sorted(entries), size))
            kept = set(list(ids)[:size])
            inside = [one for one in asked if kept.issuperset(one.labels)][:ASKED]
            outside = [one for one in asked if kept.isdisjoint(one.labels)][: len(inside)]
            questions = (*inside, *(Question(one.text, ()) for one in outside))
            yield RoutingSet(f"{found.name}{FEWER}{size}-{time}", questions, tuple(entries[one] for one in kept))


def few(found: RoutingSet) -> RoutingSet:
    """At most QUESTIONS of a set, the same ones each time."""
    chosen = list(found.questions)
    random.Random(0).shuffle(chosen)
    return replace(found, questions=tuple(chosen[:QUESTIONS]))


def among_many(folder: Path, encoder: Encoder, held: Mapping[str, Any], count: int) -> list[Row]:
    """The everyday messages among `count` skills, the others from `scale`: to be answered, not learned from."""
    rows: list[Row] = []
    with TemporaryDirectory() as scratch:
        for one, asked in everyday(folder):
            names = {entry.name for entry in one.entries}
            others = [entry for entry in skills(folder, 2 * count) if entry.name not in names]
            more = RoutingSet(f"{one.name}, {count}", one.questions, (*one.entries, *others)[:count])
            model = Model(**PLAIN, rank=held["meaning"]["rank"])
            rows += rows_of(sampled(more, encoder, Path(scratch)), asked, model, [text.text for text in one.questions])
    return rows


def measured(folder: Path, encoder: Encoder | None, held: Mapping[str, Any]) -> dict[Tier, list[Row]]:
    """The rows of each tier that this encoder, or none, serves."""
    found: dict[Tier, list[Row]] = {}
    sets = [(one, False, asked) for one, asked in everyday(folder)]
    sets += [(few(one), taught, ()) for one, taught in variants(folder) if not one.name.endswith(TOLD)]
    drawn = [(one, taught) for one, taught, _ in sets if re.split(r"[+,]", one.name)[0] in DRAWN_FROM]
    sets += [(small, taught, ()) for one, taught in drawn for small in smaller(one)]
    with TemporaryDirectory() as scratch:
        for one, taught, asked in sets:
            which: Tier = "words" if encoder is None else "taught" if taught else "meaning"
            model = Model(**PLAIN, rank=held[which]["rank"])
            sample = sampled(one, encoder, Path(scratch))
            texts = [question.text for question in one.questions]
            found.setdefault(which, []).extend(rows_of(sample, asked, model, texts))
    return found


def _named(names: Sequence[str], found: Array) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip((*names, "bias"), found, strict=True)}


def main(folder: Path, target: Path) -> None:
    from bench.encoders import default_encoder

    held, encoder = json.loads(target.read_text(encoding="utf-8")), default_encoder()
    wanted, chance = wanting(folder, encoder)
    target.with_name("wanted.json").write_text(json.dumps(wanted) + "\n", encoding="utf-8")
    body: dict[str, Any] = {"bands": BANDS}
    for used in (encoder, None):
        for which, rows in measured(folder, used, held).items():
            print(which)
            body[which], decisions = tier(which, rows, chance if used else {}, held[which]["rank"])
            report(decisions)
    target.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    package = Path(__file__).parents[2] / "kernel" / "navigator_kernel" / "routing"
    main(Path(sys.argv[1]), package / "weights.json")
