"""200 workflows, killed at every use of their journal and at random times, all finish (WFL-7, WFL-8)."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cli.support import Done
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.values.workflow import WorkflowRun
from person_state import state_of
from workflows.crashing import DOUBLES, DRAWS, KILLED, REPEATS, TAKES_TEXT, Box, box_in, ended

RUNS = 200
AT_ONCE = 2
STEPS = (1, 2, 3)
ENTRIES = ("mark:running", *(f"{name}:{step}" for step in STEPS for name in ("begin", "end")), "mark:done")
POINTS = tuple(f"{side} {entry}" for entry in ENTRIES for side in ("before", "after"))
NAMES = ("draw", "double", "repeat")


@dataclass(kw_only=True)
class Trial:
    """One workflow and its session. If `safe`, its steps may be repeated; `told` counts what happened to it."""

    box: Box
    number: int
    seed: str
    length: float
    token: str = ""
    told: Counter[str] = field(default_factory=Counter)
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(f"{self.seed}/{self.number}")

    @property
    def safe(self) -> bool:
        return self.number % 4 < 2

    @property
    def session(self) -> str:
        return f"s{self.number}"

    @property
    def names(self) -> list[str]:
        return [f"{name}-{'safe' if self.safe else 'once'}" for name in NAMES]

    def held(self) -> WorkflowRun:
        return Project(self.box.place.root, agents=False).journal.load(self.token)

    def goes_through(self) -> Counter[str]:
        """Proposes the workflow, kills it one to three times, then resumes it until it is done."""
        message = " and then ".join(f"run {name}" for name in self.names)
        if self.number % 10 == 0:
            self.killed(("ask", "--session", self.session, message), "after propose")
        self.token = self.box.proposed(message, session=self.session)
        for time_ in range(self.rng.randint(1, 3)):
            if self.held().state == "done":
                break
            by_point = self.number % 2 == 0 and time_ == 0
            self.kept(by_point)
        before = self.finished()
        for _ in range(4):
            if self.held().state == "done":
                break
            self.resumed()
        assert before.items() <= self.finished().items(), self.number
        self.judged()
        return self.told

    def kept(self, by_point: bool) -> None:
        """Kills it once; steps that had succeeded by then are not started or done again, now or later."""
        before = self.finished()
        self.killed(self.words(), POINTS[self.number // 2 % len(POINTS)] if by_point else "")
        assert before.items() <= self.finished().items(), self.number

    def killed(self, words: tuple[str, ...], point: str) -> None:
        """Kills a command at `point`, or at a random time if there is none; the process can end before."""
        process = self.box.start(*words, place=self.box.dying(point))
        if not point:
            time.sleep(self.rng.uniform(0.1, 1.1) * self.length)
            process.kill()
        done = ended(process)
        assert done.code in {KILLED, 0, 9}, (self.number, words, point, done)
        self.told["kills"] += done.code == KILLED
        self.told[f"ended with {done.code}"] += done.code != KILLED

    def words(self) -> tuple[str, ...]:
        """What a person would say next."""
        yes = ("ask", "--session", self.session, "yes")
        if self.held().state == "proposed":
            return self.rng.choice([("workflow", "approve", self.token), yes])
        return ("workflow", "resume", self.token, *(("--repeat",) if self.rng.random() < 0.5 else ()))

    def resumed(self) -> None:
        """Resumes it once, undisturbed; it asks only about a step in doubt that may not be repeated."""
        if self.held().state == "proposed":
            self.expect(0, "workflow", "approve", self.token)
            return
        doubt = any(record.report is None for record in self.held().records[-1:])
        self.told["in doubt"] += doubt
        if not doubt or self.safe:
            self.expect(0, "workflow", "resume", self.token)
            return
        before = self.finished()
        asked = self.expect(9, "workflow", "resume", self.token)
        assert "was under way when the program ended" in asked.err, self.number
        assert self.finished() == before, self.number
        self.expect(0, "workflow", "resume", self.token, "--repeat")

    def expect(self, code: int, *words: str) -> Done:
        done = self.box.place.run(*words)
        assert done.code == code, (self.number, words, done)
        return done

    def finished(self) -> dict[int, tuple[int, int]]:
        """How often each successful step was started, and how often it has acted."""
        acts, records = self.box.acts(self.token), self.held().records
        tries = Counter(record.step for record in records)
        won = [record.step for record in records if record.report is not None and record.report.state == "success"]
        assert len(won) == len(set(won)), (self.number, "a step has succeeded twice")
        return {step: (tries[step], acts[self.names[step - 1]]) for step in won}

    def judged(self) -> None:
        """Checks the finished run: each step acted once, or once more for each doubt, on the previous result."""
        run, found = self.held(), self.finished()
        assert (run.state, sorted(found)) == ("done", list(STEPS)), self.number
        assert all(1 <= acts <= tries for tries, acts in found.values()), (self.number, found)
        assert all(acts == 1 for tries, acts in found.values() if tries == 1), (self.number, found)
        last = [record.report for step in STEPS if (record := run.last(step)) is not None]
        drawn, doubled, seen = [str(report.raw) for report in last if report is not None]
        assert (int(doubled), seen) == (2 * int(drawn), f"seen {doubled}"), self.number
        assert Project(self.box.place.root, agents=False).sessions.load(self.session).turn >= 1
        self.told["repeats"] += sum(tries - 1 for tries, _ in found.values())


@pytest.fixture
def box(tmp_path: Path) -> Box:
    made = box_in(tmp_path)
    for kind in ("safe", "once"):
        for name, script, takes in zip(NAMES, (DRAWS, DOUBLES, REPEATS), ((), TAKES_TEXT, ()), strict=True):
            made.skill(f"{name}-{kind}", script, takes=takes, idempotent=kind == "safe")
    return made


def whole(file: Path) -> bool:
    database = sqlite3.connect(file)
    try:
        return bool(database.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    finally:
        database.close()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.requirement("WFL-7", "WFL-8")
def test_200_workflows_that_are_killed_all_come_to_their_end(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    seed, began = os.environ.get("SOAK_SEED") or "1", time.monotonic()
    with capsys.disabled():
        print(f"\nsoak of {RUNS} workflows: SOAK_SEED={seed}", flush=True)
    token = box.proposed("run draw-safe and then run double-safe and then run repeat-safe", session="first")
    started = time.monotonic()
    assert box.place.run("workflow", "approve", token).code == 0
    length = time.monotonic() - started
    told: Counter[str] = Counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        trials = [Trial(box=box, number=number, seed=seed, length=length) for number in range(RUNS)]
        for one in pool.map(Trial.goes_through, trials):
            told += one
    with capsys.disabled():
        print(f"{time.monotonic() - began:.0f} s, one run {length:.2f} s, {dict(sorted(told.items()))}", flush=True)
    state = state_of(box.place.root)
    assert whole(state / "workflows.sqlite")
    assert whole(state / "sessions.sqlite")
    held = {one["id"] for one in Project(box.place.root, agents=False).sessions.listed()}
    assert held == {"first", *(trial.session for trial in trials)}
    done = [run.token for run in Project(box.place.root, agents=False).journal.listed() if run.state == "done"]
    assert sorted(done) == sorted([token, *(trial.token for trial in trials)])
    assert told["kills"] >= RUNS // 2
    assert told["in doubt"] > 0
