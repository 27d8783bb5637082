"""The list of cases names existing tests, and the files that run as another user."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from authority.cases import AS_ANOTHER, BOTH, CASES, IN_PROCESS, Case
from cli.support import SOURCE

TESTS = Path(__file__).parents[1]
pytestmark = pytest.mark.requirement("X-43")


@pytest.mark.parametrize("case", [*CASES, *IN_PROCESS], ids=lambda case: f"{case.item} {case.what}")
def test_each_test_of_a_case_is_there(case: Case) -> None:
    text = (TESTS / case.file).read_text("utf-8")
    assert not [name for name in case.tests if not re.search(rf"^def test_{name}\(", text, re.MULTILINE)]


@pytest.mark.parametrize("case", [one for one in CASES if one.rungs], ids=lambda case: f"{case.item} {case.what}")
def test_a_case_with_a_sandbox_runs_under_both_kinds(case: Case) -> None:
    file = TESTS / case.file
    fixtures = file.with_name("conftest.py")
    text = file.read_text("utf-8") + (fixtures.read_text("utf-8") if "rung: str" in file.read_text("utf-8") else "")
    assert "params=RUNGS" in text or '"rung", RUNGS' in text or '"landlock"' in text


def test_every_item_has_its_cases() -> None:
    assert {case.item for case in CASES} == {1, 2, 3, 4, 5, 6}


def test_ci_only_cases_run_as_another_user() -> None:
    script = (SOURCE / ".ci" / "run").read_text("utf-8")
    marked = {case.file for case in CASES if "pytest.mark.ci" in (TESTS / case.file).read_text("utf-8")}
    assert marked - {*AS_ANOTHER, *BOTH} == {"state/test_generated_projects.py"}  # involves no process and no owner
    assert not [file for file in AS_ANOTHER if f"tests/{file}" not in script]
