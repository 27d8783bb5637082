"""The figures that `make test-mutation` prints."""

from __future__ import annotations

import tomllib
from collections import Counter

import pytest

from maintenance.mutation import ROOT, Score, interval, row, settings


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"), [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)]
)
def test_the_interval_is_the_one_that_newcombe_published(hits: int, of: int, low: float, high: float) -> None:
    assert list(interval(hits, of)) == pytest.approx([low, high], abs=1e-4)


def test_without_mutants_nothing_is_known() -> None:
    assert interval(0, 0) == (0.0, 1.0)


def test_a_mutant_that_no_test_runs_counts_against_the_score() -> None:
    score = Score("gate", Counter({"killed": 6, "timeout": 2, "survived": 1, "no tests": 1}))
    assert (score.mutants, score.share) == (10, 0.8)
    assert row(score).split()[:7] == ["gate", "10", "6", "1", "2", "1", "80.0%"]


@pytest.mark.parametrize("name", ["routing", "gate", "transactions"])
def test_all_that_a_subject_names_is_there(name: str) -> None:
    subject = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mutation"][name]
    assert all(list((ROOT / "kernel/navigator_kernel").glob(f"{module}.py")) for module in subject["modules"])
    named = [*subject["tests"], *(test.partition("::")[0] for test in subject.get("left_out", ()))]
    assert [test for test in named if not (ROOT / test).exists()] == []
    assert tomllib.loads(settings(subject))["tool"]["mutmut"]["source_paths"] == ["src"]
