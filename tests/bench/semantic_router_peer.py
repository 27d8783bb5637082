"""The package `semantic-router`, in an environment of its own, over the very vectors that ours has.

Run by itself it is the child: a file of vectors, top_k and aggregation on its command line, texts, routes and questions
as JSON on its standard input; on its standard output a route and its confidence for each question.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

# Of the person who runs the benchmark.
_PLACE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "navigator-bench" / "semantic-router"
_WANTED = ("semantic-router>=1.1", "numpy")


class Absent(Exception):
    """It cannot be had here; says why."""


class SemanticRouter:
    """Asks the current release, which is put into a cache folder of the person's."""

    def __init__(self) -> None:
        self._python = _PLACE / "bin" / "python"
        if not self._python.exists():
            venv.create(_PLACE, with_pip=True, clear=True)
        install = [str(self._python), "-m", "pip", "install", "--quiet", "--upgrade", *_WANTED]
        done = subprocess.run(install, capture_output=True, text=True)
        probe = [str(self._python), "-c", "import semantic_router; print(semantic_router.__version__)"]
        held = subprocess.run(probe, capture_output=True, text=True)
        if held.returncode:
            raise Absent(f"pip cannot install it: {(done.stderr or held.stderr)[-300:]}")
        self.version = held.stdout.strip()

    def __str__(self) -> str:
        return f"semantic-router {self.version}"

    def answers(
        self, vectors: Mapping[str, Any], routes: Mapping[str, Sequence[str]], questions: Sequence[str], how: str
    ) -> list[tuple[str, float]]:
        """The route of each question with its confidence; `how` is its aggregation. `vectors` has every text."""
        import numpy as np

        texts = list(vectors)
        given = {"texts": texts, "routes": {name: list(said) for name, said in routes.items()}, "asked": questions}
        with NamedTemporaryFile(suffix=".npy") as file:
            np.save(file, np.stack([vectors[text] for text in texts]))
            file.flush()
            words = [str(self._python), __file__, file.name, how]
            done = subprocess.run(words, input=json.dumps(given), capture_output=True, text=True, check=True)
        return [(str(name), float(sure)) for name, sure in json.loads(done.stdout.splitlines()[-1])]


def _child(path: str, how: str) -> None:
    import numpy as np
    from semantic_router import IndexedRouter, Route
    from semantic_router.encoders import DenseEncoder

    given = json.load(sys.stdin)
    held = dict(zip(given["texts"], np.load(path).tolist(), strict=True))

    class Same(DenseEncoder):
        def __call__(self, docs: Sequence[str]) -> list[list[float]]:
            return [held[text] for text in docs]

    routes = [Route(name=name, utterances=said) for name, said in given["routes"].items()]
    router = IndexedRouter(Same(name="same"), routes, aggregation=how)
    found = [router(text) for text in given["asked"]]
    print(json.dumps([(one.name or "", float(one.confidence or 0.0)) for one in found]))


if __name__ == "__main__":
    _child(*sys.argv[1:])
