"""What an answer of a resident process takes, from the call to the document, with bare python and load beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

import pytest

from bench.conftest import TOPICS
from navigator_kernel.daemon.client import ask
from routing.serving import serving
from tables import table

pytestmark = pytest.mark.bench

MESSAGES, WARM = 200, 20
BUDGET = 0.015  # seconds
DOINGS = table(__file__, "DOINGS")


@pytest.mark.parametrize("meaning", ["off", "auto"], ids=["words", "meaning"])
def test_an_answer_comes_within_15_ms(
    meaning: str,
    many_skills: Callable[[int], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("NAVIGATOR_ENCODER", meaning)
    with serving(many_skills(200)) as found:
        taken = [round_trip(str(found.root), number) for number in range(WARM + MESSAGES)][WARM:]
    p50, p95 = quantiles(taken, n=2)[0], quantiles(taken, n=20)[-1]
    with capsys.disabled():
        figures = f"p50 {p50 * 1000:.1f} ms, p95 {p95 * 1000:.1f} ms, {MESSAGES} messages"
        beside = f"bare python {bare_python() * 1000:.0f} ms, load {os.getloadavg()[0]:.1f}"
        print(f"\nround trip to a resident process, encoder {meaning}, 200 skills: {figures}; {beside}")
    assert p95 <= BUDGET


def round_trip(root: str, number: int) -> float:
    text = DOINGS[number % len(DOINGS)].format(TOPICS[number // len(DOINGS) % len(TOPICS)], number)
    began = time.perf_counter()
    told = ask(text, root, timeout=10)
    taken = time.perf_counter() - began
    assert told is not None
    return taken


def bare_python() -> float:
    """Seconds that the interpreter takes to start and to end."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - began
