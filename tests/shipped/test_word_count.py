"""word-count: the figures match the generated text."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from shipped.place import Place

pytestmark = pytest.mark.sample(2)

WORDS = ("be", "Not", "don't", "well-known", "naïve", "42", "Ünïcödé")
HAN = "天地玄黄宇宙洪荒"
BETWEEN = (" ", ", ", "\n", " — ", "_", "...")


def put_together(seed: int) -> tuple[str, Counter[str]]:
    """A generated text, and the count of each of its words in lower case."""
    dice = random.Random(seed)
    pieces = [dice.choice((*WORDS, *HAN)) for _ in range(dice.randint(1, 300))]
    text = "".join(piece + dice.choice(BETWEEN) for piece in pieces)
    return text, Counter(piece.lower() for piece in pieces)


@pytest.mark.parametrize("seed", range(8))
def test_words_characters_and_lines_are_counted(place: Place, seed: int) -> None:
    text, counts = put_together(seed)
    place.write("text.md", text)
    data = place.data("/word-count @text.md --top 500")
    assert (data["words"], data["characters"]) == (counts.total(), len(text))
    assert data["lines"] == len(text.splitlines())
    assert data["han"] == sum(number for word, number in counts.items() if word in HAN)
    assert {top["word"]: top["count"] for top in data["top"]} == counts


@pytest.mark.parametrize(
    ("text", "words", "lines"),
    [("", 0, 0), ("\n", 0, 1), ("a", 1, 1), ("a\n\n", 1, 2), ("你好，world", 3, 1), ("--x", 1, 1)],
)
def test_the_smallest_texts(place: Place, text: str, words: int, lines: int) -> None:
    data = place.script("word-count", "--", text).data
    assert (data["words"], data["lines"]) == (words, lines)
