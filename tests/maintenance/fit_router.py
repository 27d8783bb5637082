"""Fits the router: `PYTHONPATH=tests:kernel python -m maintenance.fit_router FOLDER`, on the sets of FOLDER and `messages.tsv`.

Two things are fitted for routing by words and for routing by meaning: the order of candidates, and the probabilities
that the first is right and that one of the first three is. A message decides nothing about itself: what is printed comes
from weights that were fitted without its set, or, of the sets in PARTED, without a third of their messages at a time.
What is written was fitted on all.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
from msgspec.structs import replace

from bench.routing_catalogues import ALONE, Message, catalogues
from bench.routing_metrics import Decided, report
from maintenance.fit_wanted import network_fit, wanting
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.model_ports import Encoder
from navigator_kernel.routing.index import IndexSnapshot, RoutingIndex
from navigator_kernel.routing.meaning import allowed, banded, weigh
from navigator_kernel.routing.ranker import (
    MEASURED,
    OFFERED,
    USUAL,
    USUAL_COUNT,
    Bands,
    Model,
    Network,
    Query,
    Ranker,
    ScoredCandidate,
    Way,
    evidence,
)
from navigator_kernel.routing.vectors import wanted_of
from navigator_kernel.text import clean
from tables import table

# Weight of each set in the order: people type everyday messages; intents and APIs resemble skills less
SHARES = {"everyday": 1.5, "long": 1.5, "realskills": 1.0, "fastskills_zh": 0.8, "shipped": 1.6}
OTHERS, TAUGHT = 0.25, 2.5  # of the sets for the order alone, and of those whose entries all have examples
# The same in the probabilities, and the weight of each presence; other sets are not used for them
DECIDED = {"everyday": 1.5, "long": 1.2, "realskills": 0.8, "fastskills_zh": 0.6, "shipped": 1.0}
PRESENCE = {"present": 1.0, "absent": 0.6, "none": 0.5, "near": 0.3}
PARTED, PARTS = ("everyday", "long", "realskills", "shipped"), 3
# The features in the order, and those whose weight depends on something, see `Model`
RANKED = (
    "coverage", "name_whole", "words_body", "near_text", "near_name", "taught", "near_shot", "near_learned",
    "near_words", "place_words", "place_text",
)  # fmt: skip
BY: Mapping[str, Sequence[str]] = {
    "rank": RANKED,
    "by_length": ("coverage", "words_body", "words_purpose", "near_words"),
    "by_count": ("words_body",),
    "by_examples": ("near_text", "near_name", "near_words", "coverage", "place_words", "words_body"),
}
RIDGE, TOTAL = 0.02, 4.0  # the ridge, and the sum of all weights beside it
SCALE = {"near": 8.0, "name": 8.0, "coverage": 8.0}  # of MEASURED by the prefix of a name, else 4: for a fair ridge
BY_EXAMPLES = 0.6  # the same for the shifts by examples: descriptions must still count beside many examples
HIDDEN, EPOCHS, DECAY = 16, 60, 0.003  # of the networks
DIGITS = 4
BANDS: Mapping[Way, Mapping[str, Any]] = table(__file__, "BANDS")

Array = np.ndarray[Any, Any]
Chance = Callable[[str], float | None]


@dataclass(frozen=True)
class Row:
    """A message whose candidates were measured: `at` are their rows in `view`, `numbers` their MEASURED."""

    set_name: str
    size: int
    message: Message
    said: Query
    at: Sequence[int]
    numbers: Array
    right: Array
    view: IndexSnapshot
    wanted: float | None

    @property
    def group(self) -> str:
        return self.set_name.split("+")[0].split(",")[0]

    @property
    def part(self) -> tuple[str, int]:
        """What a fit that answers this row must not have seen."""
        return self.group, crc32(self.message.text.encode()) % PARTS if self.group in PARTED else 0

    @property
    def candidates(self) -> list[ScoredCandidate]:
        return [ScoredCandidate(at, held, self.view) for at, held in zip(self.at, self.numbers.tolist(), strict=True)]


def measured(folder: Path, encoder: Encoder | None, chance: Chance, scratch: Path) -> Iterator[Row]:
    """Each message of each catalogue that has a candidate; `chance` is the probability that a text wants a skill."""
    for number, found in enumerate(catalogues(folder)):
        index = RoutingIndex(scratch / str(number), FolderWriter([scratch]), encoder)
        index.sync(found.entries)
        assert index.view is not None
        ranker = Ranker(index.view, encoder)
        for one in found.messages:
            said = ranker.query(clean(one.text))
            held = allowed(ranker.measured(said, meaning=encoder is not None), one.text)
            if held:
                right = np.array([candidate.row.id in one.right for candidate in held])
                numbers = np.array([candidate.numbers for candidate in held], np.float32)
                rows, wanted = [candidate.at for candidate in held], chance(one.text)
                yield Row(found.set_name, found.size, one, said, rows, numbers, right, index.view, wanted)


# The order


class Order:
    """The candidates of `rows` in arrays, to fit the order on some of them: a conditional logit (McFadden 1974)."""

    def __init__(self, rows: Sequence[Row], names: Sequence[str]) -> None:
        self.rows = [row for row in rows if row.right.any()]
        self.names = [(by, name) for by, held in BY.items() for name in held if name in names]
        scales = [
            SCALE.get(name.split("_")[0], 4.0) * (BY_EXAMPLES if by == "by_examples" else 1.0)
            for by, name in self.names
        ]
        self._scale = np.array(scales, np.float32)
        at = [MEASURED.index(name) for _, name in self.names]
        self._ends = np.append(0, np.cumsum([len(row.at) for row in self.rows]))
        self._right = np.concatenate([row.right for row in self.rows])
        parts = []
        for row in self.rows:
            longer, more = np.log1p(row.said.length) - USUAL, np.log(row.view.count / USUAL_COUNT)
            taught = row.numbers[:, [MEASURED.index("taught")]]
            shifts = {"rank": 1.0, "by_length": longer, "by_count": more, "by_examples": taught}
            by = [np.broadcast_to(shifts[by], taught.shape) for by, _ in self.names]
            parts.append(row.numbers[:, at] * np.hstack(by).astype(np.float32) * self._scale)
        self._numbers = np.concatenate(parts)

    def fit(self, use: Callable[[Row], bool]) -> dict[str, dict[str, float]]:
        """The weights of a Model for the order, from the rows to `use`."""
        kept = [at for at, row in enumerate(self.rows) if use(row)]
        counts = Counter((self.rows[at].set_name, self.rows[at].size) for at in kept)
        shares = [(self.rows[at].set_name, self.rows[at].size) for at in kept]
        weights = np.array([_share(name, size) / counts[name, size] for name, size in shares])
        spans = [np.arange(self._ends[at], self._ends[at + 1]) for at in kept]
        starts = np.append(0, np.cumsum([len(span) for span in spans]))[:-1]
        owners, rows = np.repeat(np.arange(len(kept)), [len(span) for span in spans]), np.concatenate(spans)
        slope = _slope(self._numbers[rows], self._right[rows], weights * (TOTAL / weights.sum()), starts, owners)
        found = descend(slope, len(self.names)) * self._scale
        fields: dict[str, dict[str, float]] = {by: {} for by in BY}
        for (by, name), value in zip(self.names, found, strict=True):
            fields[by][name] = round(float(value), DIGITS)
        return fields


def _share(name: str, size: int) -> float:
    if size != ALONE:
        return SHARES[name]
    return TAUGHT if name.endswith("shots") else OTHERS


def _slope(
    numbers: Array, right: Array, weights: Array, starts: Array, owners: Array
) -> Callable[[Array], tuple[float, Array, Array]]:
    """Loss, gradient and curvature of the conditional logit; the candidates of a message follow each other."""

    def slope(found: Array) -> tuple[float, Array, Array]:
        scores = numbers @ found.astype(np.float32)
        odds = np.exp((scores - np.maximum.reduceat(scores, starts)[owners]).astype(np.float64))
        odds /= np.add.reduceat(odds, starts)[owners]
        hit = np.add.reduceat(odds * right, starts) + 1e-12
        loss = RIDGE / 2 * float(found @ found) - float(weights @ np.log(hit))
        wrong = ((odds - odds * right / hit[owners]) * weights[owners]).astype(np.float32)
        spread = numbers * np.sqrt(odds * weights[owners]).astype(np.float32)[:, None]
        middle = np.add.reduceat(numbers * odds.astype(np.float32)[:, None], starts, axis=0)
        curve = spread.T @ spread - (middle * weights[:, None].astype(np.float32)).T @ middle
        return loss, RIDGE * found + numbers.T @ wrong, RIDGE * np.eye(len(found)) + curve

    return slope


def descend(slope: Callable[[Array], tuple[float, Array, Array]], size: int) -> Array:
    """The lowest point, by Newton steps that are halved until they lead down."""
    weights = np.zeros(size)
    loss, gradient, curve = slope(weights)
    for _ in range(60):
        step, share = np.linalg.solve(curve, gradient), 1.0
        while share > 1e-3 and slope(weights - share * step)[0] >= loss:
            share /= 2
        before, weights = loss, weights - share * step
        loss, gradient, curve = slope(weights)
        if before - loss < 1e-6:
            break
    return weights


# The probabilities

NOTHING = Network(inner=(), shift=(), outer=(), bias=0.0)


def fitted(order: Order, rows: Sequence[Row], use: Callable[[Row], bool]) -> Model:
    """All weights, from the rows to `use`."""
    model = Model(**order.fit(use), first=NOTHING, among=NOTHING)
    used = [row for row in rows if row.group in DECIDED and row.size != ALONE and use(row)]
    counts = Counter((row.set_name, row.size, row.message.presence) for row in used)
    weights = []
    known, first, among = [], [], []
    for row in used:
        presence = row.message.presence
        weights.append(DECIDED[row.group] * PRESENCE[presence] / counts[row.set_name, row.size, presence])
        told = weigh(row.candidates, row.said, model, row.view.count, row.wanted)
        wanted = 0.5 if row.wanted is None else row.wanted
        known.append(evidence(told.candidates, told.scores, row.said, row.view.count, wanted))
        hits = [row.message.presence == "present" and one.row.id in row.message.right for one in told.candidates]
        first.append(hits[0])
        among.append(any(hits[:OFFERED]))
    numbers, share = np.array(known), np.array(weights)
    nets = [network(numbers, np.array(answers, float), share) for answers in (first, among)]
    return replace(model, first=nets[0], among=nets[1])


def network(numbers: Array, answers: Array, weights: Array) -> Network:
    middle, spread = numbers.mean(axis=0), numbers.std(axis=0) + 1e-6
    found = network_fit((numbers - middle) / spread, answers, weights, HIDDEN, EPOCHS, DECAY)
    inner = found["inner"] / spread[:, None]
    shift = found["shift"] - middle @ inner
    return Network(
        inner=_rounded(inner.T),
        shift=_rounded(shift),
        outer=_rounded(found["outer"]),
        bias=round(found["bias"], DIGITS),
    )


def _rounded(found: Array) -> Any:
    return np.round(found, DIGITS).tolist()


def left_out(order: Order, rows: Sequence[Row], way: Way) -> Iterator[tuple[Row, Decided]]:
    """What is decided about each row of DECIDED by weights that were fitted without its part."""
    for part in sorted({row.part for row in rows if row.group in DECIDED}):
        texts = {row.message.text for row in rows if row.part == part}
        model = fitted(order, rows, partial(_is_other, part, texts))
        for row in rows:
            if row.part == part and row.size != ALONE:
                yield row, decided(row, model, way)


def _is_other(part: tuple[str, int], texts: Collection[str], row: Row) -> bool:
    return row.part != part and row.message.text not in texts


def decided(row: Row, model: Model, way: Way) -> Decided:
    told = weigh(row.candidates, row.said, model, row.view.count, row.wanted)
    found = banded(told, Bands(**BANDS[way]), "balanced", OFFERED)
    names, right = [one.row.id for one in told.candidates[:OFFERED]], row.message.right
    takes, offers = found.band == "route", found.band == "ambiguous"
    excused = names[0] in row.message.excused
    kind = "vague" if row.message.kind == "vague" else "clear"
    among = bool(right & set(found.offered if offers else names))
    sure = found.candidates[0].confidence
    return Decided(kind, row.message.presence, takes, offers, names[0] in right, among, sure, excused)


def chances(folder: Path, encoder: Encoder) -> tuple[dict[str, Any], Chance]:
    """The weights that say whether a message wants any skill, and what weights say that have not seen the message."""
    body, known = wanting(folder, encoder)
    wanted = wanted_of(body)

    def chance(text: str) -> float:
        found = known.get(text)
        return float(wanted.probabilities(encoder.encode([text], "query")[0])) if found is None else found

    return body, cache(chance)


def tables(folder: Path, encoder: Encoder) -> dict[str, Any]:
    """What is decided, by set and language and by size, see `routing_metrics.report`."""
    with TemporaryDirectory() as scratch:
        rows = list(measured(folder, encoder, chances(folder, encoder)[1], Path(scratch)))
        found = left_out(Order(rows, _names(encoder)), rows, _way(encoder))
        return report([(f"{row.set_name} {row.message.lang}", row.size, one) for row, one in found])


def _way(encoder: Encoder | None) -> Way:
    return "words" if encoder is None else "meaning"


def _names(encoder: Encoder | None) -> Sequence[str]:
    return [name for name in MEASURED if encoder is not None or not name.startswith(("near_", "place_", "taught"))]


def main(folder: Path, target: Path) -> None:
    from bench.encoders import Remembering, default_encoder

    encoder = Remembering(default_encoder())
    body: dict[str, Any] = {"bands": BANDS}
    wanted, chance = chances(folder, encoder)
    target.with_name("wanted.json").write_text(json.dumps(wanted) + "\n", encoding="utf-8")
    for used in (encoder, None):
        with TemporaryDirectory() as scratch:
            rows = list(measured(folder, used, chance if used else lambda _: None, Path(scratch)))
            print(f"{len(rows)} messages are measured", flush=True)
            order = Order(rows, _names(used))
            model = fitted(order, rows, lambda _: True)
            body[_way(used)] = msgspec.to_builtins(model)
            print(_way(used), {by: getattr(model, by) for by in BY})
            report([(row.set_name, row.size, one) for row, one in left_out(order, rows, _way(used))])
    target.write_text(json.dumps(body) + "\n", encoding="utf-8")


if __name__ == "__main__":
    package = Path(__file__).parents[2] / "kernel" / "navigator_kernel" / "routing"
    main(Path(sys.argv[1]), package / "weights.json")
