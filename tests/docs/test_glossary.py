"""Every name in the glossary and the word list exists, and the word list finds the words that it should."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import yaml

from tables import cases

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(r"^\| ([\w ]+) \| `(\w+)` \|", (ROOT / "docs/concepts/glossary.md").read_text("utf-8"), re.MULTILINE)
WORDS = yaml.safe_load((ROOT / "docs/contributing/words.yaml").read_text("utf-8"))


def classes() -> set[str]:
    files = (ROOT / "kernel" / "navigator_kernel").rglob("*.py")
    trees = (ast.parse(path.read_text("utf-8")) for path in files if "shipped" not in path.parts)
    return {node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}


def test_every_term_of_the_glossary_is_a_class_of_the_kernel() -> None:
    assert len(ROWS) > 20
    assert {name for _, name in ROWS} - classes() == set()


def test_the_glossary_has_each_term_and_each_class_once() -> None:
    assert len({term for term, _ in ROWS}) == len({name for _, name in ROWS}) == len(ROWS)


@cases("text, found")
def test_the_word_list_finds_what_it_names_and_nothing_else(text: str, found: bool) -> None:
    assert any(re.search(source, text, re.IGNORECASE) for source in WORDS) == found
