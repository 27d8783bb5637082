"""Fits the router's weights: `python -m bench.fit_router FOLDER`, on the dev sets of FOLDER and nothing else.

A set decides nothing about itself: every figure that is printed, and every probability that the calibration learns
from, comes from weights that were fitted on the other sets. What is written was fitted on all of them.
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

from bench.routing_metrics import Answered, auroc, coverage, ece, top
from bench.routing_sets import SKILL_LIKE, RoutingSet, read_sets, with_shots
from navigator_kernel.adapters.files import FolderWriter
from navigator_kernel.model_ports import Encoder
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.model import CERTAIN, MEANT, PRECISIONS, Model, Tier, evidence
from navigator_kernel.routing.ranker import MEASURED, PLACES, SEMANTIC, Measured, Ranker
from navigator_kernel.text import clean

# what a set counts for: variants of one share it, intents and APIs are less like skills than skills
SHARES = {"realskills": 2.0, "toole": 1.5, "clinc150": 0.7, "banking77": 0.7, "toollens": 0.5, "idaibin": 0.5}
RIDGE = 0.02
SCALE = {"near": 8.0, "name": 8.0, "coverage": 8.0}  # of MEASURED by how a name begins, else 4: what a ridge is fair to
QUESTIONS = 400  # of each set that a fit looks at
TOLD = "+told"  # the name of a set whose examples are its bodies
STRAYS = {
    "strict": 0.003,
    "balanced": 0.008,
    "eager": 0.03,
}  # of the questions for no skill, how many one tier may take
BORDERING = {
    "strict": 0.01,
    "balanced": 0.03,
    "eager": 0.06,
}  # where all of them are of the kind that borders on skills
UNUSED = ("words_against", "name_said")  # of MEASURED: no set needs them
TEXTUAL = ("near_name", "near_text", "near_shot", *PLACES)  # where there are examples, `near_learned` has these in it

_KNOWN = {name for names in CERTAIN.values() for name in names}

Array = np.ndarray[Any, Any]
Slope = Callable[[Array], tuple[float, Array, Array]]


@dataclass(frozen=True)
class Sample:
    """The candidates of a set's questions, measured: `found` by question, `right` which of them are meant."""

    name: str
    found: list[list[Measured]]
    right: list[list[bool]]
    labels: list[int]
    lengths: list[int]

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
    lengths = [said.length for said in asked]
    return Sample(found.name, rows, right, [len(one.labels) for one in found.questions], lengths)


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
    while True:  # what speaks for a skill never counts against it: such a weight is a quirk of a set
        weights = descend(_slope(parts, free), len(free))
        if (weights >= 0).all():
            break
        free = free[weights > 0]
    scale = [SCALE.get(names[at].split("_")[0], 4.0) for at in free]
    return {names[at]: float(weight * by) for at, weight, by in zip(free, weights, scale, strict=True)}


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


@dataclass(frozen=True)
class Ranked:
    """A question's first place: what is known of it, whether it is right, at which places the right ones came."""

    known: Mapping[str, float]
    ranks: tuple[int, ...]
    labels: int


def ranked(sample: Sample, order: Mapping[str, float]) -> list[Ranked]:
    model, found = Model(rank=order, meant={}, certain={}, bands={}), []
    every = zip(sample.found, sample.right, sample.labels, sample.lengths, strict=True)
    for row, right, labels, length in every:
        scores = model.scores(row)
        places = sorted(range(len(row)), key=lambda at: -scores[at])
        ranks = tuple(place for place, at in enumerate(places) if right[at])
        if row:
            known = evidence([row[at] for at in places], [scores[at] for at in places], length)
            found.append(Ranked(known, ranks, labels))
        else:
            found.append(Ranked(dict.fromkeys((*_KNOWN, *MEANT), 0.0), (), labels))
    return found


def fit_certainty(
    sets: Mapping[str, Sequence[Ranked]], groups: Mapping[str, str], names: Sequence[str]
) -> dict[str, float]:
    """Weights of the probability that the first is right."""
    held = {name: (rows, [0 in one.ranks for one in rows]) for name, rows in sets.items()}
    return fit_logistic(held, groups, names)


def fit_meant(sets: Mapping[str, Sequence[Ranked]], groups: Mapping[str, str]) -> dict[str, float]:
    """Weights of the probability that a skill is meant, from the groups that have questions of both kinds."""
    both = {
        group: {bool(one.labels) for name in sets if groups[name] == group for one in sets[name]}
        for group in groups.values()
    }
    chosen = {name: rows for name, rows in sets.items() if len(both[groups[name]]) == 2}
    return fit_logistic(
        {name: (rows, [one.labels > 0 for one in rows]) for name, rows in chosen.items()}, groups, MEANT
    )


def fit_logistic(
    sets: Mapping[str, tuple[Sequence[Ranked], Sequence[bool]]], groups: Mapping[str, str], names: Sequence[str]
) -> dict[str, float]:
    """Logistic regression by Newton's method, every group of sets counting for its share."""
    parts = []
    for name, (rows, answers) in sets.items():
        numbers = np.array([[*(one.known[key] for key in names), 1.0] for one in rows])
        kin = sum(groups[other] == groups[name] for other in sets)
        parts.append((numbers, np.array(answers, float), SHARES.get(groups[name], 1.0) / kin / len(rows)))

    def slope(weights: Array) -> tuple[float, Array, Array]:
        ridge = np.full(len(weights), RIDGE)
        loss, gradient, curve = float(ridge @ weights**2) / 2, ridge * weights, np.diag(ridge)
        for numbers, right, weight in parts:
            odds = 1 / (1 + np.exp(-np.clip(numbers @ weights, -30, 30)))
            loss -= weight * float((right * np.log(odds + 1e-12) + (1 - right) * np.log(1 - odds + 1e-12)).sum())
            gradient = gradient + weight * numbers.T @ (odds - right)
            curve = curve + weight * (numbers * (odds * (1 - odds))[:, None]).T @ numbers
        return loss, gradient, curve

    return dict(zip((*names, "bias"), descend(slope, len(names) + 1).tolist(), strict=True))


def left_out(
    samples: Sequence[Sample], names: Sequence[str], certain: Sequence[str]
) -> tuple[dict[str, list[Ranked]], dict[str, list[Answered]]]:
    """Each set as weights answer it that were fitted on the sets of other groups; those that teach what a body is worth
    teach nothing about certainty."""
    groups = {sample.name: sample.group for sample in samples}
    rows: dict[str, list[Ranked]] = {}
    for group in dict.fromkeys(groups.values()):
        order = fit_order([sample for sample in samples if sample.group != group], names)
        chosen = [sample for sample in samples if sample.group == group and not sample.name.endswith(TOLD)]
        rows |= {sample.name: ranked(sample, order) for sample in chosen}
    answers: dict[str, list[Answered]] = {}
    for group in dict.fromkeys(groups.values()):
        others = {name: held for name, held in rows.items() if groups[name] != group}
        sure = fit_certainty(others, groups, certain)
        model = Model(rank={}, meant=fit_meant(others, groups), certain=sure, bands={})
        for name, held in rows.items():
            if groups[name] == group:
                answers[name] = [
                    Answered(one.ranks, one.labels, model.probability(one.known), routed=False) for one in held
                ]
    return rows, answers


def thresholds(answers: Mapping[str, Sequence[Answered]], strays: Mapping[str, float]) -> dict[str, float]:
    """The probability from which on the first is right as often as is wanted, and as few questions for no skill are
    taken, over the skill-like sets without bodies; over all sets where there are none."""
    chosen = [name for name in answers if name.split(",")[0] in (*SKILL_LIKE, "toole_direct")]
    if not any("toole_direct" in name for name in chosen):
        chosen = list(answers)
    held = sorted((one for name in chosen for one in answers[name]), key=lambda one: -one.confidence)
    found: dict[str, float] = {}
    idle = sum(not one.labels for one in held)
    for word, wanted in PRECISIONS.items():
        right, stray, least = 0, 0, 1.0
        for at, one in enumerate(held, 1):
            right, stray = right + one.right, stray + (not one.labels)
            if right / at >= wanted and stray <= strays[word] * idle:
                least = one.confidence
        found[word] = round(least, 4)
    return found


def report(title: str, answers: Mapping[str, Sequence[Answered]]) -> None:
    print(f"{title}\n{'set':24} top-1  r@5    cover.90  AUROC  ECE")
    for name, rows in answers.items():
        asked = any(one.labels for one in rows)
        told = f"{top(rows, 1):.3f}  {top(rows, 5):.3f}" if asked else "  -      -  "
        parted = auroc(rows)
        shown = "  -  " if parted is None else f"{parted:.3f}"
        print(f"{name:24} {told}  {coverage(rows, 0.9):.3f}     {shown}  {ece(rows):.3f}")
    held = {
        name: [*rows, *(answers.get("toole_direct", ()) if name == "toole_single" else ())]
        for name, rows in answers.items()
    }
    errors = {name: ece(rows) for name, rows in held.items() if name != "toole_direct"}  # the same catalogue's, without
    print(f"mean ECE {np.mean(list(errors.values())):.3f}, worst {max(errors, key=lambda name: errors[name])}")
    joint = [one for name in (*SKILL_LIKE, "toole_direct") if name in answers for one in answers[name]]
    if joint:
        print(f"skill-like sets together: coverage at .90 {coverage(joint, 0.9):.3f}")


def tier(
    which: Tier, samples: Sequence[Sample], names: Sequence[str], title: str, strays: Mapping[str, float] = STRAYS
) -> dict[str, Any]:
    rows, answers = left_out(samples, names, CERTAIN[which])
    report(title, answers)
    bands = thresholds(answers, strays)
    print("bands", bands)
    order = fit_order(samples, names)
    groups = {sample.name: sample.group for sample in samples}
    meant, certain = fit_meant(rows, groups), fit_certainty(rows, groups, CERTAIN[which])
    return {"rank": _rounded(order), "meant": _rounded(meant), "certain": _rounded(certain), "bands": bands}


def _rounded(weights: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in weights.items()}


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
    body = {
        "meaning": tier("meaning", [one for one, shown in held if not shown], meant, "meaning"),
        "taught": tier("taught", [one for one, shown in held if shown], taught, "meaning, with examples", BORDERING),
        "words": tier("words", [one for one, _ in words], spoken, "words"),
    }
    target.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    package = Path(__file__).parents[2] / "kernel" / "navigator_kernel" / "routing"
    main(Path(sys.argv[1]), package / "weights.json")
