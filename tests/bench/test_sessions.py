"""What a session adds to a turn, what opening a long one costs, and what a step's journal entries cost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import quantiles

import pytest

from navigator_kernel.bootstrap.project import Project
from navigator_kernel.cli.chat.ask import open_session, take_turn
from navigator_kernel.cli.project import App
from navigator_kernel.values.packet import Meta, Report
from navigator_kernel.values.request import Message, Said, Session
from navigator_kernel.values.workflow import WorkflowPlan, WorkflowStep

pytestmark = pytest.mark.bench

ROUNDS = 400
WARM = 20  # rounds that do not count
TURNS = 10_000
SHOWN = 20  # entries of the history that a resumed session shows
ADDED_BUDGET = 0.003  # seconds that a session may add to a turn
OPEN_BUDGET = 0.050  # seconds


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def p95(seconds: list[float]) -> float:
    return quantiles(seconds, n=20)[-1]


def told(what: str, seconds: list[float], capsys: pytest.CaptureFixture[str]) -> float:
    """The 95th percentile in seconds, printed with how busy the machine is."""
    bare = timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
    with capsys.disabled():
        p50 = quantiles(seconds, n=2)[0]
        figures = f"p50 {p50 * 1000:.2f} ms, p95 {p95(seconds) * 1000:.2f} ms, {len(seconds)} rounds"
        print(f"\n{what}: {figures}; bare python {bare * 1000:.0f} ms, load {os.getloadavg()[0]:.1f}")
    return p95(seconds)


def test_a_session_adds_under_3_ms_to_a_turn(
    many_skills: Callable[[int], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    app = App(root_flag=str(many_skills(200)))

    def turn(number: int, name: str | None) -> None:
        message = Message(text=f"why is the sky blue {number}")
        reply = take_turn(app, message, open_session(app, name), listeners=(), keep=name is not None)
        assert reply.report.data["reason"] == "no_model"

    without, within = [], []
    for number in range(ROUNDS + WARM):
        without.append(timed(partial(turn, number, None)))
        within.append(timed(partial(turn, number, "bench")))
    assert Project(app.root, agents=False).sessions.load("bench").turn == ROUNDS + WARM
    alone = told("turn without a session, 200 skills", without[WARM:], capsys)
    kept = told("the same turn in a session", within[WARM:], capsys)
    assert kept - alone < ADDED_BUDGET


def test_a_session_of_10_000_turns_opens_in_under_50_ms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = [Said(role="user", text=f"question {n}, and a few words more", run=f"run-{n}") for n in range(2 * TURNS)]
    Project(tmp_path, agents=False).sessions.save(Session(id="long", turn=TURNS), said)

    def opens() -> None:
        store = Project(tmp_path, agents=False).sessions
        assert store.load("long").turn == TURNS
        assert store.history("long", last=SHOWN)[-1].text == said[-1].text

    seconds = [timed(opens) for _ in range(ROUNDS + WARM)][WARM:]
    assert told(f"opening a session of {TURNS:,} turns", seconds, capsys) < OPEN_BUDGET


def test_the_entries_of_a_step_cost_under_50_ms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = Project(tmp_path, agents=False).journal
    step = WorkflowStep(text="run x", skill="x", agent="skills", input="run x")
    journal.propose("run", "s", WorkflowPlan(name="x", description="run x", steps=(step,)))
    report = Report(state="success", summary="x done", meta=Meta(agent="skills", time=0.1, ts=""), raw="x" * 1_000)

    def entries(attempt: int) -> None:
        journal.begin("run", 1, attempt, f"sha256:{attempt:064d}")
        journal.end("run", 1, attempt, report)

    seconds = [timed(partial(entries, attempt)) for attempt in range(ROUNDS + WARM)][WARM:]
    assert len(journal.load("run").records) == ROUNDS + WARM
    assert told("begin and end of one step in the journal", seconds, capsys) < OPEN_BUDGET
