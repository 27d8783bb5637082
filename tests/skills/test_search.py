from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.skills.search import search
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
        (skill("x", tags=("pdf",)), "pdf", 30, "tag"),
        (skill("x", category="pdf"), "pdf", 20, "category"),
        (skill("pdf-tools", "reads tables"), "pdf tables", 110, "prefix"),
        (skill("pdf-tools", "reads tables"), "pdf nothing", 90, "prefix"),
        (skill("code-review"), "code review", 120, "exact"),
    ],
)
def test_the_score_is_the_documented_one(held: SkillDef, query: str, score: int, reason: str) -> None:
    (hit,) = search([held], query, {})
    assert (hit.score, hit.reason) == (score, reason)


@pytest.mark.requirement("LIF-16")
@pytest.mark.parametrize(("uses", "bonus"), [(0, 0), (1, 3), (5, 15), (90, 15)])
def test_uses_add_three_each_and_fifteen_at_most(uses: int, bonus: int) -> None:
    (hit,) = search([skill("pdf")], "pdf", {"pdf": uses})
    assert hit.score == 100 + bonus


@pytest.mark.requirement("LIF-3")
def test_what_no_keyword_matches_is_not_found_however_much_it_is_used() -> None:
    assert search([skill("pdf")], "docx", {"pdf": 9}) == ()
    assert search([skill("pdf")], " ", {}) == ()


@pytest.mark.requirement("LIF-16")
def test_the_best_come_first_and_ties_by_name() -> None:
    hits = search([skill("z-pdf"), skill("a-pdf"), skill("pdf")], "pdf", {})
    assert [hit.skill.name for hit in hits] == ["pdf", "a-pdf", "z-pdf"]
