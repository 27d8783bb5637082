"""Fits whether a message wants any skill: a network of one hidden layer over its vector, on everyday messages, `messages.tsv`
and the routing sets.

It separates "the docker sweatshirt shrank" from "the docker image grew" better than a regression over the vector does
(decision 37)."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.routing_catalogues import elsewhere
from bench.routing_sets import everyday, written_messages
from navigator_kernel.model_ports import Encoder
from navigator_kernel.routing.vectors import Wanted
from tables import table

# Weight of each set; other sets are not used
WANTING = table(__file__, "WANTING")
WANTING |= {"azure": 0.5, "smp2017_zh": 0.5, "clinc150": 0.3, "toole_single": 0.3, "idaibin": 0.2}
CHAT = ("smp2017_zh", "clinc150")  # of these, only messages for no skill: their domains are not those of skills
FOLDS = 5
HIDDEN, EPOCHS, BATCH = 64, 30, 128
RATE, DECAY = 0.003, 0.02  # Adam's step size (Kingma & Ba 2015), and the weight decay
DIGITS = 3

Array = np.ndarray[Any, Any]


def wanting(folder: Path, encoder: Encoder) -> tuple[dict[str, Any], dict[str, float]]:
    """The weights that say by a message's vector whether it wants a skill, and the chance of each text by those that
    were fitted without it."""
    rows = list(_texts(folder))
    vectors = np.asarray(encoder.encode([text for text, _, _ in rows], "query"), dtype=np.float64)
    answers = np.array([wants for _, wants, _ in rows], float)
    names = np.array([name for _, _, name in rows])
    weights = np.array([WANTING[name] / (names == name).sum() for name in names])
    folds, chances = np.random.default_rng(2).permutation(len(rows)) % FOLDS, np.zeros(len(rows))
    for at in range(FOLDS):
        learns = folds != at
        found = _network(vectors[learns], answers[learns], weights[learns])
        chances[~learns] = Wanted(encoder=encoder.id, others=np.zeros((0, 0), np.float32), **found).probabilities(
            vectors[~learns]
        )
    found = _network(vectors, answers, weights)
    body = {name: np.round(np.asarray(value), DIGITS).tolist() for name, value in found.items()}
    return {"encoder": encoder.id, **body, "others": others(encoder)}, dict(
        zip((text for text, _, _ in rows), chances.tolist(), strict=True)
    )


def others(encoder: Encoder) -> str:
    """The vectors of messages that are for no shipped skill, as bytes in base64."""
    vectors = np.asarray(encoder.encode([one.text for one in elsewhere()[0]], "query"), np.float32)
    return b64encode(np.rint(vectors * (127 / np.abs(vectors).max())).astype(np.int8).tobytes()).decode()


def _network(vectors: Array, answers: Array, weights: Array) -> dict[str, Any]:
    """The fields of `Wanted`. A vector has length 1; multiplied by `spread`, its numbers have a spread of 1."""
    spread = np.sqrt(vectors.shape[1])
    found = network_fit(vectors * spread, answers, weights, HIDDEN, EPOCHS, DECAY)
    return {**found, "inner": found["inner"] * spread}


def network_fit(
    inputs: Array, answers: Array, weights: Array, hidden: int, epochs: int, decay: float
) -> dict[str, Any]:
    """A network of one hidden layer: `inner` and `shift` lead to it, `outer` and `bias` to the log-odds; by Adam over
    weighted cross entropy. `weights` are those of the rows of `inputs`, whose columns have a spread of 1."""
    chance, size, weights = np.random.default_rng(0), inputs.shape[1], weights / weights.mean()
    found = [
        chance.normal(0, 1 / np.sqrt(size), (size, hidden)),
        np.zeros(hidden),
        chance.normal(0, 1 / np.sqrt(hidden), hidden),
        np.zeros(()),
    ]
    mean, square, step = [np.zeros_like(one) for one in found], [np.zeros_like(one) for one in found], 0
    for epoch in range(epochs):
        order, rate = chance.permutation(len(inputs)), RATE * (1 - epoch / epochs) + RATE / 30
        for rows in np.split(order, range(BATCH, len(order), BATCH)):
            step += 1
            slopes = _slopes(found, inputs[rows], answers[rows], weights[rows], decay)
            for at, slope in enumerate(slopes):
                mean[at] = 0.9 * mean[at] + 0.1 * slope
                square[at] = 0.999 * square[at] + 0.001 * slope**2
                by = mean[at] / (1 - 0.9**step) / (np.sqrt(square[at] / (1 - 0.999**step)) + 1e-8)
                found[at] = found[at] - rate * by
    return {"inner": found[0], "shift": found[1], "outer": found[2], "bias": float(found[3])}


def _slopes(found: list[Array], inputs: Array, answers: Array, weights: Array, decay: float) -> list[Array]:
    """The gradient of the loss in each part of the network."""
    inner, shift, outer, bias = found
    hidden = np.tanh(inputs @ inner + shift)
    wrong = weights * (1 / (1 + np.exp(-(hidden @ outer + bias))) - answers) / len(inputs)
    back = np.outer(wrong, outer) * (1 - hidden**2)
    return [inputs.T @ back + decay * inner, back.sum(axis=0), hidden.T @ wrong + decay * outer, wrong.sum()]


def _texts(folder: Path) -> Iterator[tuple[str, bool, str]]:
    """Each text, whether it wants a skill, and its set."""
    for path in sorted((folder / "dev").glob("*.jsonl")):
        if path.stem in WANTING:
            for line in path.read_text(encoding="utf-8").split("\n"):
                row = json.loads(line) if line else {}
                if row and not (path.stem in CHAT and row["labels"]):
                    yield row["query"], bool(row["labels"]), path.stem
    for _, asked in list(everyday(folder))[:1]:
        yield from ((one.text, bool(one.labels), "everyday") for one in asked)
    for line in (folder / "long" / "dev.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield row["query"], bool(row["labels"]), "long"
    for kind, _, text in written_messages():
        yield text, kind in ("want", "vague"), "messages"
