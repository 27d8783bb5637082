"""Fits the order of candidates: `python -m bench.fit_router FOLDER`, on the dev sets of FOLDER and nothing else.

A set decides nothing about itself: what is printed comes from weights that were fitted on the other sets. What is written
was fitted on all of them. `bench.fit_decision` fits what is then done with the order, and is run after it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from msgspec.structs import replace

from bench.routing_metrics import Answered, top
from bench.routing_sets import RoutingSet, read_sets, with_shots
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.model_ports import Encoder
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.model import Model
from navigator_kernel.routing.ranker import MEASURED, PLACES, SEMANTIC, Ranker, ScoredCandidate
from navigator_kernel.text import clean

# weight of each set, shared by its variants: intents and APIs resemble skills less than real skills do
SHARES = {"realskills": 2.0, "toole": 1.5, "clinc150": 0.7, "banking77": 0.7, "toollens": 0.5, "idaibin": 0.5}
RIDGE = 0.02
SCALE = {"near": 8.0, "name": 8.0, "coverage": 8.0}  # of MEASURED by the prefix of a name, else 4: for a fair ridge
QUESTIONS = 400  # highest number of questions per set in a fit
TOLD = "+told"  # end of the name of a set whose examples serve as bodies
UNUSED = ("words_against", "name_said")  # of MEASURED: no set needs them
TEXTUAL = ("near_name", "near_text", "near_shot", *PLACES)  # if there are examples, `near_learned` includes these

Array = np.ndarray[Any, Any]
Slope = Callable[[Array], tuple[float, Array, Array]]


@dataclass(frozen=True)
class Sample:
    """The candidates of a set's questions, measured: `found` by question, `right` which of them are meant."""

    name: str
    found: list[list[ScoredCandidate]]
    right: list[list[bool]]
    labels: list[int]
    lengths: list[int]
    asks: list[bool]

    @property
    def group(self) -> str:
        return self.name.split("+")[0].split(",")[0].split("_")[0]

    @property
    def kind(self) -> tuple[str, bool]:
        """What shares a weight: the variants of a set, those that teach the worth of a body by themselves."""
        return self.group, self.name.endswith(TOLD)


def sampled(found: RoutingSet, encoder: Encoder | None, folder: Path) -> Sample:
    """The set as the router sees it, with or without meaning."""
    index = RoutingIndex(folder / found.name, FolderWriter([folder]), encoder)
    index.sync(found.entries)
    assert index.view is not None
    ranker = Ranker(index.view, encoder)
    asked = [ranker.said(clean(one.text)) for one in found.questions]
    rows = [ranker.measured(said, meaning=encoder is not None) for said in asked]
    right = [[c.row.id in one.labels for c in row] for row, one in zip(rows, found.questions, strict=True)]
    lengths, asks = [said.length for said in asked], [said.asks for said in asked]
    return Sample(found.name, rows, right, [len(one.labels) for one in found.questions], lengths, asks)


def tensors(sample: Sample, names: Sequence[str]) -> tuple[Array, Array, Array]:
    """Numbers (questions, candidates, names), which candidates there are, and which are right."""
    most = max(map(len, sample.found)) or 1
    at = [MEASURED.index(name) for name in names]
    numbers = np.zeros((len(sample.found), most, len(names)))
    scale = np.array([SCALE.get(name.split("_")[0], 4.0) for name in names])
    there, right = np.zeros(numbers.shape[:2], bool), np.zeros(numbers.shape[:2], bool)
    for i, (row, answers) in enumerate(zip(sample.found, sample.right, strict=True)):
        if row:
            numbers[i, : len(row)] = np.array([one.numbers for one in row])[:, at] * scale
            there[i, : len(row)], right[i, : len(row)] = True, answers
    return numbers, there, right


def fit_order(samples: Sequence[Sample], names: Sequence[str]) -> dict[str, float]:
    """Weights by which the right candidate comes first: a conditional logit (McFadden 1974) by Newton's method."""
    chance, parts = np.random.default_rng(0), []
    for sample in samples:
        numbers, there, right = tensors(sample, names)
        known = chance.permutation(np.flatnonzero(right.any(axis=1)))[:QUESTIONS]
        if len(known):
            kin = sum(other.kind == sample.kind and any(map(any, other.right)) for other in samples)
            weight = SHARES.get(sample.group, 1.0) / kin / len(known)
            parts.append((numbers[known], there[known], right[known], weight))

    free = np.arange(len(names))
    while True:  # evidence for a skill never counts against it: a negative weight is a quirk of a set
        weights = descend(_slope(parts, free), len(free))
        if (weights >= 0).all():
            break
        free = free[weights > 0]
    kept = [names[int(at)] for at in free]
    scale = [SCALE.get(name.split("_")[0], 4.0) for name in kept]
    return {name: float(weight * by) for name, weight, by in zip(kept, weights, scale, strict=True)}


def _slope(parts: Sequence[tuple[Array, Array, Array, float]], free: Array) -> Slope:
    """Loss, gradient and curvature of the conditional logit, in the weights that are free."""

    def slope(weights: Array) -> tuple[float, Array, Array]:
        loss, gradient = RIDGE / 2 * float(weights @ weights), RIDGE * weights
        curve = RIDGE * np.eye(len(weights))
        for whole, there, right, weight in parts:
            numbers = whole[..., free]
            scores = np.where(there, numbers @ weights, -1e9)
            odds = np.exp(scores - scores.max(axis=1, keepdims=True))
            odds /= odds.sum(axis=1, keepdims=True)
            hit = (odds * right).sum(axis=1) + 1e-12
            loss -= weight * float(np.log(hit).sum())
            gradient = gradient + weight * np.einsum("npf,np->f", numbers, odds - odds * right / hit[:, None])
            middle = np.einsum("npf,np->nf", numbers, odds)
            spread = np.einsum("npf,np,npg->fg", numbers, odds, numbers, optimize=True) - middle.T @ middle
            curve = curve + weight * spread
        return loss, gradient, curve

    return slope


def descend(slope: Slope, size: int) -> Array:
    """The lowest point, by Newton steps that are halved until they lead down."""
    weights = np.zeros(size)
    loss, gradient, curve = slope(weights)
    for _ in range(60):
        step, share = np.linalg.solve(curve, gradient), 1.0
        while share > 1e-4 and slope(weights - share * step)[0] >= loss:
            share /= 2
        before, weights = loss, weights - share * step
        loss, gradient, curve = slope(weights)
        if before - loss < 1e-8:
            break
    return weights


def places(sample: Sample, order: Mapping[str, float]) -> list[Answered]:
    """At which places the right ones come by these weights."""
    model = Model(rank=order, meant={}, first={}, among={}, right=(1.0, 0.0), offered=(1.0, 0.0))
    held = []
    for row, right, labels in zip(sample.found, sample.right, sample.labels, strict=True):
        scores = model.scores(row)
        ordered = sorted(range(len(row)), key=lambda at: -scores[at])
        held.append(Answered(tuple(place for place, at in enumerate(ordered) if right[at]), labels, 0.0, routed=False))
    return held


def report(samples: Sequence[Sample], names: Sequence[str], title: str) -> None:
    """Each set by weights that were fitted on the sets of other groups; those that teach what a body is worth are not
    asked."""
    print(f"{title}\n{'set':24} top-1  r@5")
    for group in dict.fromkeys(sample.group for sample in samples):
        order = fit_order([sample for sample in samples if sample.group != group], names)
        for sample in samples:
            if sample.group == group and not sample.name.endswith(TOLD) and any(sample.labels):
                held = places(sample, order)
                print(f"{sample.name:24} {top(held, 1):.3f}  {top(held, 5):.3f}")


def tier(samples: Sequence[Sample], names: Sequence[str], title: str) -> dict[str, float]:
    report(samples, names, title)
    return {name: round(value, 4) for name, value in fit_order(samples, names).items()}


def variants(folder: Path) -> Iterator[tuple[RoutingSet, bool]]:
    """Every set, and again with examples where there are any: those are fitted by themselves."""
    for found in read_sets(folder):
        yield found, False
        taught = with_shots(found, folder)
        if taught is not None:
            yield taught, True
            yield told(taught), False


def told(found: RoutingSet) -> RoutingSet:
    """The set with its examples in place of bodies. Hardly a set has bodies, and one that has must not be the one that
    says what they are worth: what people ask is what the body of a skill talks of."""
    entries = tuple(replace(entry, examples=(), body="\n".join(entry.examples)) for entry in found.entries)
    return RoutingSet(found.name.split(",")[0] + TOLD, found.questions, entries)


def main(folder: Path, target: Path) -> None:
    from bench.encoders import default_encoder

    encoder = default_encoder()
    meant = [name for name in MEASURED if name not in UNUSED]
    taught = [name for name in meant if name not in TEXTUAL]
    spoken = [name for name in meant if name not in SEMANTIC]
    with TemporaryDirectory() as scratch:
        held = [(sampled(found, encoder, Path(scratch)), taught) for found, taught in variants(folder)]
        words = [(sampled(found, None, Path(scratch)), taught) for found, taught in variants(folder)]
    orders = {
        "meaning": tier([one for one, shown in held if not shown], meant, "meaning"),
        "taught": tier([one for one, shown in held if shown], taught, "meaning, with examples"),
        "words": tier([one for one, _ in words], spoken, "words"),
    }
    body = json.loads(target.read_text(encoding="utf-8"))
    for which, order in orders.items():
        body[which]["rank"] = order
    target.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    package = Path(__file__).parents[2] / "kernel" / "navigator_kernel" / "routing"
    main(Path(sys.argv[1]), package / "weights.json")
