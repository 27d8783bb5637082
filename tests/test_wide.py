"""`.ci/run` runs the tests that `make test` leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

from wide import sample

TESTS = Path(__file__).parent
CASES = """
import pytest

@pytest.mark.sample(2)
@pytest.mark.parametrize("number", range(9))
def test_each(number): pass

@pytest.mark.wide
def test_once_more(): pass

def test_once(): pass
"""


@pytest.mark.parametrize(("length", "size"), [(1, 1), (3, 5), (7, 3), (1_000, 10)])
def test_a_sample_has_the_first_case_and_as_many_as_it_says(length: int, size: int) -> None:
    kept = sample(length, size)
    assert len(kept) == min(length, size)
    assert 0 in kept and kept <= set(range(length))


def test_a_sample_is_spread_over_the_cases_and_takes_both_of_two_kinds_in_turn() -> None:
    kept = sorted(sample(100, 8))
    assert max(later - one for one, later in zip(kept, [*kept[1:], 100], strict=True)) <= 25
    assert {place % 2 for place in kept} == {0, 1}


@pytest.mark.ci
@pytest.mark.parametrize("workers", ["0", "2"])
def test_make_test_and_ci_run_each_case_once(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    pytester.makeini("[pytest]\nmarkers =\n    wide: a\n    sample(size): b\n    ci: c\n    further: d")
    pytester.makepyfile(CASES)

    def passed(chosen: str) -> int:
        run = pytester.runpytest_subprocess("-p", "wide", "-n", workers, "-m", chosen)
        return run.parseoutcomes()["passed"]

    assert [passed(chosen) for chosen in ("not ci", "ci", "not ci or wide")] == [3, 8, 11]
    assert [passed(chosen) for chosen in ("not ci or (wide and not further)", "further")] == [4, 7]


def test_every_case_is_run_by_ci() -> None:
    script = (TESTS.parent / ".ci" / "run").read_text("utf-8")
    assert all(part in script for part in ('test "${measured[@]}"', "MEASURE=1", "test-further"))
    assert " -m ci " in script and '-m "ci and not wide and not slow"' in script
