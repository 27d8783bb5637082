"""Made-up secrets of every known kind, one or more for each shape."""

from __future__ import annotations

import random
import re
import string
from pathlib import Path
from typing import NamedTuple

LETTERS = {
    "A": string.ascii_letters + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "L": string.ascii_lowercase + string.digits,
    "H": "0123456789abcdef",
    "D": string.digits,
    "W": string.ascii_letters + string.digits + "_-",
    "Z": string.ascii_letters,
}
_MADE = re.compile(r"\{(?:([AULHDWZ])(\d+)|(uuid))\}")


class Example(NamedTuple):
    kind: str
    before: str
    secret: str
    behind: str

    @property
    def text(self) -> str:
        return self.before + self.secret + self.behind


def examples() -> list[Example]:
    """Always the same examples, so that none is a real secret."""
    lines = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
    return [_example(line) for line in lines if not line.startswith("#")]


def _example(line: str) -> Example:
    kind, text = line.split("\t")
    chance = random.Random(line)

    def made(letters: str, length: int) -> str:
        found = chance.choices(LETTERS[letters], k=length)
        return "".join(found).strip("-_").ljust(length, "a")  # a - at either end is not part of a word

    def value(hit: re.Match[str]) -> str:
        return "-".join(made("H", length) for length in (8, 4, 4, 4, 12)) if hit[3] else made(hit[1], int(hit[2]))

    before, secret, behind = re.split("[«»]", _MADE.sub(value, text).replace("↵", "\n"))
    return Example(kind, before, secret, behind)
