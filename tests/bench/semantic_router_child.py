"""Answers with the package `semantic-router`, in its own environment: a file of vectors and an aggregation on the command
line, texts, routes and questions as JSON on standard input; a route and its confidence for each on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import numpy as np
from semantic_router import IndexedRouter, Route
from semantic_router.encoders import DenseEncoder

_PATH, _HOW = sys.argv[1:]
_GIVEN = json.load(sys.stdin)
_HELD = dict(zip(_GIVEN["texts"], np.load(_PATH).tolist(), strict=True))


class Same(DenseEncoder):  # type: ignore[misc]  # the package is not installed where mypy runs
    """The vectors that it was given."""

    def __call__(self, docs: Sequence[str]) -> list[list[float]]:
        return [_HELD[text] for text in docs]


_ROUTES = [Route(name=name, utterances=said) for name, said in _GIVEN["routes"].items()]
_ROUTER = IndexedRouter(Same(name="same"), _ROUTES, aggregation=_HOW)
_FOUND = [_ROUTER(text) for text in _GIVEN["asked"]]
print(json.dumps([(one.name or "", float(one.confidence or 0.0)) for one in _FOUND]))
