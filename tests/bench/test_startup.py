"""What starting costs, in CPU time beyond the bare interpreter, with machine load beside it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import pytest

pytestmark = pytest.mark.bench

ROUNDS = 15
BUDGET = 0.150  # seconds of CPU
HEAVY = ("numpy", "tantivy", "git", "pydantic_ai", "openai", "anthropic", "starlette", "fastapi", "mcp")


def cpu_of(words: Sequence[str], cwd: Path) -> float:
    """Seconds of user and system time of one child."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], cwd=cwd, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def beyond(words: Sequence[str], cwd: Path) -> tuple[float, float]:
    """Median CPU seconds of the bare interpreter and of `words` beyond it, measured in turns."""
    bare, held = [], []
    for _ in range(ROUNDS):
        bare.append(cpu_of(["-c", "pass"], cwd))
        held.append(cpu_of(words, cwd))
    return median(bare), median(held) - median(bare)


@pytest.mark.parametrize(
    "words", [("skill", "list"), ("--help",), ("route", "review this code")], ids=["list", "help", "route"]
)
def test_a_command_starts_within_its_budget(
    words: tuple[str, ...], many_skills: Callable[[int], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    project = many_skills(50)
    bare, ours = beyond(["-m", "navigator_kernel.cli.main", *words], project)
    with capsys.disabled():
        figures = f"{ours * 1000:.0f} ms CPU beyond {bare * 1000:.0f} ms of bare python, load {os.getloadavg()[0]:.1f}"
        print(f"\nstart-up of `navigator {' '.join(words)}`, 50 skills: {figures}")
    assert ours <= (BUDGET if words[0] != "route" else 2 * BUDGET)


def test_listing_skills_imports_nothing_heavy(many_skills: Callable[[int], Path]) -> None:
    code = (
        "import sys; from navigator_kernel.cli.main import run; run(['skill', 'list']);"
        f"sys.exit([m for m in {HEAVY!r} if m in sys.modules] or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=many_skills(10), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
