"""The package `semantic-router`, in an environment of its own, over the very vectors that ours has."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from bench.environments import python_with

_CHILD = Path(__file__).with_name("semantic_router_child.py")


class SemanticRouter:
    """Asks the current release."""

    def __init__(self) -> None:
        probe = "import semantic_router; print(semantic_router.__version__)"
        self._python, self.version = python_with("semantic-router", ("semantic-router>=1.1", "numpy"), probe)

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
            words = [str(self._python), str(_CHILD), file.name, how]
            done = subprocess.run(words, input=json.dumps(given), capture_output=True, text=True, check=True)
        return [(str(name), float(sure)) for name, sure in json.loads(done.stdout.splitlines()[-1])]
