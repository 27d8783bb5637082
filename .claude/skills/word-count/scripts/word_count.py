"""Counts words, characters and lines of a text and prints them as one JSON object."""

import argparse
import json
import re
import sys
from collections import Counter

HAN = r"[㐀-䶿一-鿿豈-﫿]"


def count(text: str, top: int) -> dict[str, object]:
    """The figures of `text`; a Chinese character is one word, a run of other letters and digits is one word."""
    han = re.findall(HAN, text)
    words = re.findall(rf"(?:(?!{HAN})[^\W_])+(?:['’-](?:(?!{HAN})[^\W_])+)*", text)
    lines = text.count("\n") + (1 if text and not text.endswith("\n") else 0)
    common = sorted(Counter(word.lower() for word in [*words, *han]).items(), key=lambda item: (-item[1], item[0]))
    return {
        "summary": f"{len(words) + len(han)} words, {len(text)} characters, {lines} lines",
        "words": len(words) + len(han),
        "characters": len(text),
        "lines": lines,
        "han": len(han),
        "top": [{"word": word, "count": number} for word, number in common[:top]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text")
    parser.add_argument("--top", type=int, default=10)
    given = parser.parse_args()
    sys.stdout.write(json.dumps(count(given.text, given.top), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
