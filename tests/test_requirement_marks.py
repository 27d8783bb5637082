"""The list of proved requirements can itself be trusted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from maintenance import requirements_report
from requirement_marks import known

pytestmark = pytest.mark.ci

TESTS = Path(__file__).parent
THREE_TESTS = """
import pytest

@pytest.mark.requirement("PRE-1", "PRE-2")
def test_passes(): pass

@pytest.mark.requirement("PRE-3")
def test_fails(): assert False

@pytest.mark.requirement("PRE-4")
def test_is_skipped(): pytest.skip()

@pytest.fixture
def broken():
    yield
    raise RuntimeError

@pytest.mark.requirement("PRE-5")
def test_fails_afterwards(broken): pass
"""


Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    pytester.makeini("[pytest]\nmarkers = requirement(*ids): what it proves")
    return lambda *args: pytester.runpytest_subprocess("-p", "requirement_marks", *args)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_only_tests_that_passed_in_every_phase_are_recorded(run: Run, pytester: pytest.Pytester, workers: str) -> None:
    pytester.makepyfile(test_three=THREE_TESTS)
    run("-n", workers, "--requirements-out", "out.tsv")
    assert (pytester.path / "out.tsv").read_text(encoding="utf-8") == (
        "PRE-1\ttest_three.py::test_passes\nPRE-2\ttest_three.py::test_passes\n"
    )


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_test_that_cites_an_unknown_id_fails(run: Run, pytester: pytest.Pytester, workers: str) -> None:
    pytester.makepyfile('import pytest\n@pytest.mark.requirement("PRE-99")\ndef test_a(): pass')
    result = run("-n", workers)
    assert result.parseoutcomes() == {"errors": 1}
    result.stdout.fnmatch_lines("unknown requirement 'PRE-99'")


def test_a_requirement_without_a_passing_test_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [id_ for id_ in known() if not id_.startswith("X-")]
    (tmp_path / "out.tsv").write_text("".join(f"{id_}\ta\n" for id_ in ids if id_ != "STK-3"), encoding="utf-8")
    assert requirements_report.main(tmp_path / "out.tsv") == 1
    assert capsys.readouterr().out.startswith(f"STK-3: {known()['STK-3']}\n")
    (tmp_path / "out.tsv").write_text("".join(f"{id_}\ta\n" for id_ in ids), encoding="utf-8")
    assert requirements_report.main(tmp_path / "out.tsv") == 0
