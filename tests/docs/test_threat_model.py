"""Each promise of the threat model names tests that exist."""

from __future__ import annotations

from pathlib import Path

from navigator_kernel.text import lazy_compile

SOURCE = Path(__file__).parents[2]
PAGE = SOURCE / "docs" / "concepts" / "threat-model.md"
TEST = lazy_compile(r"`(tests/[\w/]+\.py)`")


def test_every_promise_names_tests_that_exist() -> None:
    rows = PAGE.read_text().partition("## Promises")[2].partition("\n## ")[0].splitlines()
    promises = [row for row in rows if row.startswith("| ")][1:]
    assert len(promises) > 15
    for row in promises:
        named = TEST.findall(row)
        assert named and all((SOURCE / name).is_file() for name in named), row
