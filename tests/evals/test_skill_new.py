"""`navigator skill new` writes a skill that is found, is valid and has evals of both kinds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.support import Place, place_in


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


@pytest.mark.sample(1)
@pytest.mark.requirement("RTE-37", "RTE-39")
@pytest.mark.parametrize(
    ("words", "query"),
    [
        (["tide-tables"], "help me with tide tables"),
        (
            ["tide-tables", "--description", "Tells the tides of a harbour. Use when the user asks about tides",
             "--query", "when is high tide in Bergen"],
            "when is high tide in Bergen",
        ),
        (["潮汐", "--description", "查询港口潮汐（用户询问涨潮退潮时间时使用）", "--query", "今天几点涨潮"], "今天几点涨潮"),
    ],
)  # fmt: skip
def test_a_new_skill_is_valid_and_passes_its_own_evals(here: Place, words: list[str], query: str) -> None:
    here.said("skill", "new", *words)
    assert here.run("skill", "validate", "--strict", words[0]).code == 0
    told = here.json("eval", words[0], "--require-evals")
    assert (told["exit_code"], told["failures"], told["problems"]) == (0, [], [])
    assert here.json("route", query)["entity"] == words[0]


def test_an_existing_skill_is_not_overwritten(here: Place) -> None:
    here.said("skill", "new", "tide-tables")
    before = here.files()
    assert here.run("skill", "new", "tide-tables", "--description", "other").code == 3
    assert here.files() == before


@pytest.mark.parametrize("name", ["UPPER", "a/b", "..", "-x-", "con\u202etrol", "w\u043erd-count", "a" * 65])
def test_a_skill_with_an_invalid_name_is_refused_and_not_created(here: Place, name: str) -> None:
    done = here.run("skill", "new", "--", name)
    assert done.code in {2, 3}, done
    assert not (here.root / ".claude").exists()


def test_quotes_and_colons_in_a_description_stay_what_they_are(here: Place) -> None:
    text = 'Says "no": a thing # with marks. Use when the user says no'
    here.said("skill", "new", "no-sayer", "--description", text)
    assert here.json("skill", "info", "no-sayer")["description"] == text
    evals = json.loads((here.root / ".claude/skills/no-sayer/evals/trigger-eval.json").read_text())
    assert {row["should_trigger"] for row in evals} == {True, False}
