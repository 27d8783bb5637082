"""Terms that stand for each other, and Latin words that stand among Chinese characters."""

from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.routing.entries import Entry
from navigator_kernel.routing.glossary import alike
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.meaning import SemanticRanker
from navigator_kernel.routing.terms import content_terms


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


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("帮我做一个幻灯片", "pptx"),
        ("make me a slide deck", "pptx"),
        ("这个电子表格", "xlsx"),
        ("the build fails again", "ci"),
    ],
)
def test_a_phrase_has_the_terms_that_stand_for_it(text: str, term: str) -> None:
    assert any(term in terms for terms in alike(text))


def test_a_latin_phrase_counts_as_a_whole_word_only() -> None:
    assert alike("prsent cards") == []


def test_words_alone_find_a_skill_by_what_stands_for_its_name(tmp_path: Path) -> None:
    held = SemanticRanker(RoutingIndex(tmp_path / "index", FolderWriter([tmp_path]), None))
    held.learn([Entry(id=name, name=name, description=f"Work with {name} files") for name in ("pptx", "xlsx", "pdf")])
    assert held.judged("帮我做一个幻灯片", 3).candidates[0].name == "pptx"
