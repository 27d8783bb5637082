"""Splitting text into terms: cached word by word, with the same result as without the cache."""

from __future__ import annotations

import unicodedata
from random import Random

import pytest

from navigator_kernel.routing import words as words_module
from navigator_kernel.routing.words import terms

LETTERS = ["a", "B", "c", "9", "_", "-", " ", "中", "文", "é", "Ａ", "ﬀ", "—", "\xa0", "\u3000", "İ", "ß", "\u0301", "😀", "٣"]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("codeReview-v2 of PDFs", ["code", "review", "codereview", "v2", "of", "pdfs"]),
        ("getURLs HTMLFiles", ["get", "urls", "geturls", "html", "files", "htmlfiles"]),
        ("merge_these, ＰＤＦ files", ["merge", "these", "pdf", "files"]),
        ("审查合同x中", ["审查", "查合", "合同", "x", "中"]),
        ("“naïve”—ﬀ", ["naïve", "ff"]),
        ("", []),
        ("\ud800 a", ["\ud800", "a"]),
    ],
)
def test_words_parts_of_names_and_pairs_of_chinese_come_in_order(text: str, wanted: list[str]) -> None:
    assert terms(text) == wanted


def test_a_text_has_the_terms_of_its_runs_of_letters_and_digits() -> None:
    chance = Random(3)
    for _ in range(500):
        text = "".join(chance.choices(LETTERS, k=chance.randint(1, 12)))
        runs = words_module._RUNS.findall(unicodedata.normalize("NFKC", text))
        assert terms(text) == [term for run in runs for term in words_module._of_run(run)]
