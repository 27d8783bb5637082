"""Equivalent terms, and Latin words among Chinese characters."""

from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.routing import words
from navigator_kernel.routing.entries import Entry
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.meaning import SemanticRanker
from navigator_kernel.routing.words import alike, content_terms
from navigator_kernel.text import fold
from tables import cases


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("给机器配上Prometheus，CPU超85%就告警", {"prometheus", "cpu"}),
        ("把合同v3.docx里的甲方换掉", {"v3", "docx"}),
        ("接Stripe按月扣费，webhook回调也弄好", {"stripe", "webhook"}),
    ],
)
def test_a_latin_word_ends_where_chinese_begins(text: str, found: set[str]) -> None:
    assert found <= set(content_terms(text))


@cases("text, term")
def test_a_phrase_has_the_terms_that_stand_for_it(text: str, term: str) -> None:
    assert any(term in terms for terms in alike(text))


def test_a_latin_phrase_counts_as_a_whole_word_only() -> None:
    assert alike("prsent cards") == []


@pytest.mark.parametrize(
    ("text", "other"), [("clean up my gmail", "outlook"), ("a discord机器人", "telegram"), ("查jira", "confluence")]
)
def test_a_product_does_not_stand_for_another(text: str, other: str) -> None:
    assert not any(other in terms for terms in alike(text))


def test_each_line_has_terms_in_lower_case_and_folded_phrases() -> None:
    text = (Path(words.__file__).parent / "glossary.tsv").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    halves = [line.split("\t") for line in lines]
    assert [
        line for line, held in zip(lines, halves, strict=True) if len(held) != 2 or not all(map(str.split, held))
    ] == []
    assert [terms for terms, _ in halves if not terms.isascii() or terms != terms.lower()] == []
    phrases = [one for _, held in halves for one in held.split()]
    assert [one for one in phrases if fold(one) != one.replace("_", "-")] == []


def test_a_skill_is_found_by_a_term_for_its_name_without_an_encoder(tmp_path: Path) -> None:
    held = SemanticRanker(RoutingIndex(tmp_path / "index", FolderWriter([tmp_path]), None))
    held.learn([Entry(id=name, name=name, description=f"Work with {name} files") for name in ("pptx", "xlsx", "pdf")])
    assert held.judged("帮我做一个幻灯片", 3).candidates[0].name == "pptx"
