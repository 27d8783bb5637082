"""Lists the words of `contributing/words.yaml` that stand in pages, in the strings and comments of the code, or in the
docstrings, comments and names of the tests.

`python tests/maintenance/plain_words.py` prints `path:line: word (write: …)` for each one, and ends with 1 where there is one. Vale
does the same with more rules, but its package fetches the program from a host that a build may not reach.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "CLAUDE.md", "docs/**/*.md", ".claude/**/*.md")
TESTS = "tests/**/*.py"
IN_TESTS = re.compile(r'def \w+|#.*|"""(?:.|\n)*?"""')
CODE = ("kernel/*/**/*.py", "agents/**/*.py", "bin/*.py", "tests/maintenance/*.py")
LEFT_OUT = (
    "docs/contributing",
    "docs/reference/routing-errors.md",
    "docs/skills-mapping.md",
    "kernel/navigator_kernel/shipped",
)


def main() -> int:
    """The exit code: 0 where no such word was found, else 1."""
    words = yaml.safe_load((ROOT / "docs" / "contributing" / "words.yaml").read_text("utf-8"))
    found = [f"{path}:{line}: {word!r} (write: {better})" for path, line, word, better in hits(words)]
    print(*found, sep="\n" if found else "", end="\n" if found else "")
    return 1 if found else 0


def hits(words: dict[str, str]) -> Iterator[tuple[str, int, str, str]]:
    """Path from the root, line from 1, the words as they stand there, and what to write."""
    patterns = [(re.compile(source, re.IGNORECASE), better) for source, better in words.items()]
    for path in files():
        for line, text in prose(path):
            for pattern, better in patterns:
                for hit in pattern.finditer(text):
                    yield str(path.relative_to(ROOT)), line + text.count("\n", 0, hit.start()), hit.group(), better


def files() -> Iterator[Path]:
    """Pages, code and tests, in the order of their paths."""
    found = sorted(path for shape in (*PAGES, *CODE, TESTS) for path in ROOT.glob(shape) if path.is_file())
    yield from (path for path in found if not str(path.relative_to(ROOT)).startswith(LEFT_OUT))


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The line at which a text begins, and the text: a page as a whole, each string and comment of code. A string of a
    test may be what a person types: of tests the names of functions, the comments and the docstrings."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        yield 1, text
    elif path.is_relative_to(ROOT / "tests"):
        for part in IN_TESTS.finditer(text):
            yield 1 + text.count("\n", 0, part.start()), part.group().replace("_", " ")
    else:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in {tokenize.STRING, tokenize.COMMENT}:
                yield token.start[0], token.string


if __name__ == "__main__":
    sys.exit(main())
