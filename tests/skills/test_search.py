from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.skills.catalog.search import search
from navigator_kernel.skills.catalog.switches import add_use, use_counts
from navigator_kernel.values.resource import SkillDef


def skill(name: str, description: str = "-", **given: Any) -> SkillDef:
    return SkillDef(name=name, description=description, path=Path(name), folder=None, **given)


@pytest.mark.requirement("LIF-16")
@pytest.mark.parametrize(
    ("held", "query", "score", "reason"),
    [
        (skill("pdf"), "pdf", 100, "exact"),
        (skill("pdf"), "PDF", 100, "exact"),
        (skill("pdf-tools"), "pdf", 90, "prefix"),
        (skill("my-pdf"), "pdf", 80, "contains"),
        (skill("x", "reads PDF files"), "pdf", 50, "description"),
        (skill("x", keywords_cn=("代码审查",)), "审查", 40, "keywords_cn"),
        (skill("x", keywords_cn=("审查",)), "代码审查", 40, "keywords_cn"),
        (skill("x", tags=("pdf",)), "pdf", 30, "tag"),
        (skill("x", category="pdf"), "pdf", 20, "category"),
        (skill("pdf-tools", "reads tables"), "pdf tables", 110, "prefix"),
        (skill("x", category="pdf", tags=("table",)), "pdf，table", 50, "tag"),
        (skill("pdf-tools", "reads tables"), "pdf nothing", 90, "prefix"),
        (skill("pdf-tools", "pdf of any kind", tags=("pdf",), category="pdf"), "pdf", 90, "prefix"),
        (skill("code-review"), "code review", 120, "exact"),
    ],
)
def test_the_score_is_the_documented_one(held: SkillDef, query: str, score: int, reason: str) -> None:
    (hit,) = search([held], query, {})
    assert (hit.score, hit.reason) == (score, reason)


@pytest.mark.requirement("LIF-16")
def test_a_repeated_keyword_counts_once() -> None:
    (hit,) = search([skill("pdf-tools")], "pdf PDF", {})
    assert hit.score == 90


@pytest.mark.requirement("LIF-16")
@pytest.mark.parametrize(("uses", "bonus"), [(0, 0), (1, 3), (5, 15), (90, 15)])
def test_uses_add_three_each_and_fifteen_at_most(uses: int, bonus: int) -> None:
    (hit,) = search([skill("pdf")], "pdf", {"pdf": uses})
    assert hit.score == 100 + bonus


@pytest.mark.requirement("LIF-3")
def test_a_skill_without_a_matching_keyword_is_not_found_however_often_it_is_used() -> None:
    assert search([skill("pdf")], "docx", {"pdf": 9}) == ()
    assert search([skill("pdf")], " ", {}) == ()


@pytest.mark.requirement("LIF-16")
def test_the_best_come_first_and_ties_by_name() -> None:
    hits = search([skill("z-pdf"), skill("a-pdf"), skill("pdf")], "pdf", {})
    assert [hit.skill.name for hit in hits] == ["pdf", "a-pdf", "z-pdf"]


def test_ties_go_by_retrieval_before_the_name() -> None:
    held = [skill("a-pdf"), skill("b-pdf"), skill("c-pdf"), skill("pdf")]
    hits = search(held, "pdf", {}, order=["c-pdf", "b-pdf", "c-pdf", "unknown"])
    assert [hit.skill.name for hit in hits] == ["pdf", "c-pdf", "b-pdf", "a-pdf"]


@pytest.mark.requirement("LIF-16")
@pytest.mark.parametrize(
    "held",
    [
        skill("code-review-excellence", "for excellent reviews"),
        skill("excellence"),
        skill("x", "does it excellently"),
        skill("x", tags=("excellence",)),
    ],
    ids=["name", "begins", "description", "tag"],
)
def test_letters_inside_another_word_come_after_every_word(held: SkillDef) -> None:
    hits = search([held, skill("z", category="excel"), skill("xlsx", sop="Reads Excel.")], "excel", {}, order=["xlsx"])
    assert [hit.skill.name for hit in hits] == ["z", "xlsx", held.name]
    assert hits[-1].reason == "letters"


@pytest.mark.requirement("LIF-16")
@pytest.mark.parametrize(
    ("held", "query", "reason"),
    [
        (skill("x", "makes slides"), "slide", "description"),
        (skill("x", "把表格转换成excel文件"), "excel", "description"),
        (skill("x", "用户要做幻灯片时使用"), "幻灯片", "description"),
        (skill("pdf2text"), "pdf", "prefix"),
        (skill("to-c++"), "c++", "contains"),
    ],
)
def test_a_word_ends_at_its_last_letter(held: SkillDef, query: str, reason: str) -> None:
    (hit,) = search([held], query, {})
    assert hit.reason == reason


def test_a_name_that_is_typed_in_part_is_found_first() -> None:
    hits = search([skill("a", "to brainstorm"), skill("brainstorming")], "brainst", {})
    assert [hit.skill.name for hit in hits] == ["brainstorming", "a"]


@pytest.mark.requirement("LIF-3")
def test_skills_found_only_by_the_router_follow_in_the_routers_order() -> None:
    held = [skill("a"), skill("b"), skill("c", tags=("word",)), skill("d")]
    hits = search(held, "word", {}, order=["d", "b", "c"])
    assert [(hit.skill.name, hit.reason) for hit in hits] == [("c", "tag"), ("d", "router"), ("b", "router")]


@pytest.mark.requirement("LIF-3")
def test_a_skill_that_the_router_is_sure_of_scores_like_a_description_match() -> None:
    held = [skill("a", tags=("word",)), skill("b"), skill("c", "a word")]
    hits = search(held, "word", {}, order=["b"], sure={"b"})
    assert [(hit.skill.name, hit.score) for hit in hits] == [("b", 50), ("c", 50), ("a", 30)]


@pytest.mark.requirement("LIF-16")
def test_a_use_counts_however_the_name_was_written(tmp_path: Path) -> None:
    writer = FolderWriter([tmp_path])
    assert (add_use(tmp_path, "PDF_Tools", writer), add_use(tmp_path, "pdf-tools", writer)) == (1, 2)
    (hit,) = search([skill("PDF-tools")], "pdf-tools", use_counts(tmp_path))
    assert hit.score == 106


@pytest.mark.parametrize("text", ["", "{", "[]", '{"uses": []}', "\0" * 40, "[" * 100_000])
def test_a_damaged_usage_file_yields_no_counts_and_is_not_overwritten(tmp_path: Path, text: str) -> None:
    path = tmp_path / "usage.json"
    path.write_text(text)
    assert use_counts(tmp_path) == {}
    assert add_use(tmp_path, "pdf", FolderWriter([tmp_path])) == 0
    assert path.read_text() == text


def test_invalid_use_counts_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "usage.json").write_text('{"uses": {"a": "x", "b": Infinity, "c": true, "d": -1, "e": 2}}')
    assert use_counts(tmp_path) == {"e": 2}
