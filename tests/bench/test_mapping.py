"""What a look-up in a mapping of 3,000 rows costs, in CPU time, beside that of bare python."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

import pytest

from navigator_kernel.skills.source.mapping import SkillMapping

pytestmark = [pytest.mark.bench, pytest.mark.requirement("LIF-8", "LIF-14", "SEN-6")]

ROWS = 3_000
READ_BUDGET = 0.100  # seconds of CPU for the first look-up, which reads the page
FIND_BUDGET = 0.001  # seconds of CPU for each further one


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page of the length of a long catalogue's."""
    head = "| name | description | upstream_repo | subpath |\n|---|---|---|---|\n"
    rows = [
        f"| `skill-{n}` | Does a thing of kind {n} | [owner/repo-{n % 90}](https://github.com/owner/repo-{n % 90})"
        f" | `skills/skill-{n}` |\n"
        for n in range(ROWS)
    ]
    path = tmp_path / "skills-mapping.md"
    path.write_text(head + "".join(rows))
    return path


def p95(act: Callable[[int], object], rounds: int) -> float:
    """The 95th percentile of CPU seconds that `act` takes."""
    seconds: list[float] = []
    for number in range(rounds):
        began = time.process_time()
        act(number)
        seconds.append(time.process_time() - began)
    return quantiles(seconds, n=20)[-1]


def bare_python() -> float:
    """CPU seconds of an interpreter that does nothing."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def told(what: str, seconds: float, capsys: pytest.CaptureFixture[str]) -> float:
    with capsys.disabled():
        beside = f"bare python {bare_python() * 1000:.0f} ms, load {os.getloadavg()[0]:.1f}"
        print(f"\n{what}, {ROWS} rows: p95 {seconds * 1000:.3f} ms CPU; {beside}")
    return seconds


def test_the_first_look_up_reads_three_thousand_rows_within_100_ms(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def first(number: int) -> None:
        assert SkillMapping([page]).find(f"skill-{number}") is not None

    assert told("first look-up in the mapping", p95(first, 60), capsys) < READ_BUDGET


def test_every_further_look_up_costs_under_1_ms(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = SkillMapping([page])
    held.find("skill-0")

    def find(number: int) -> None:
        assert (held.find(f"skill-{number % (2 * ROWS)}") is None) == (number % (2 * ROWS) >= ROWS)

    assert told("further look-up in the mapping", p95(find, 10_000), capsys) < FIND_BUDGET
