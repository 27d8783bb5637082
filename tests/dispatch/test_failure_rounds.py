"""The failures of many hosts in twenty rounds: what goes wrong rarely is seen here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FILES = ("dispatch/test_nats_failures.py", "dispatch/test_nats_skills.py", "postgres/test_hosts.py")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.requirement("X-6")
@pytest.mark.parametrize("number", range(20))
@pytest.mark.parametrize("file", FILES)
def test_every_failure_ends_as_it_should_in_each_round(file: str, number: int) -> None:
    argv = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", str(TESTS / file)]
    done = subprocess.run(argv, cwd=TESTS.parent, capture_output=True, text=True)
    assert done.returncode == 0, f"round {number}: {done.stdout[-8000:]}"
