"""Owners and workers carry out plans while something fails every few seconds; then the history is checked: no step is
lost, none is done twice, and no owner writes behind a newer fence. SOAK_SECONDS and SOAK_SEED choose another soak."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from dispatch.nats_broker import Broker
from dispatch.soak_owner import STEPS, open_journal
from navigator_kernel.values.workflow import WorkflowPlan, WorkflowStep
from postgres_server import PostgresServer, new_project
from tables import table

SECONDS = float(os.environ.get("SOAK_SECONDS", "1800"))
SEED = int(os.environ.get("SOAK_SEED", "51"))
LEASE = 2.0  # seconds, as `new_project` sets it
GRACE = max(180.0, SECONDS)  # seconds without a fault for what is left
TESTS = Path(__file__).parents[1]
STEP = WorkflowStep(text="step", skill="x", agent="skills", input="do it")
PLAN = WorkflowPlan(name="soak", description="three steps", steps=(STEP,) * len(STEPS))
# Of each write to a step: the fence and the owner of the run's claim at that time, and the connection that wrote
HISTORY = table(__file__, "HISTORY")


class Cluster:
    """Two owners and three workers, each in a process; `killed` are the names of workers that were killed."""

    def __init__(self, folder: Path, broker: Broker, postgres: PostgresServer, choice: random.Random) -> None:
        self.folder, self.broker, self.postgres, self.choice = folder, broker, postgres, choice
        self.killed: set[str] = set()
        self.numbers = count(1)
        self.owners = [self.owner() for _ in range(2)]
        self.workers = dict(self.worker() for _ in range(3))

    def started(self, module: str, *words: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent / 'kernel'}"}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen([sys.executable, "-m", module, *words], env=env, stdout=log, stderr=log)

    def owner(self) -> subprocess.Popen[bytes]:
        return self.started("dispatch.soak_owner", self.broker.url, str(next(self.numbers)))

    def worker(self) -> tuple[str, subprocess.Popen[bytes]]:
        name = f"w{next(self.numbers)}"
        return name, self.started("dispatch.nats_worker", self.broker.url, name, str(self.folder / "notes"))

    def kill_worker(self) -> None:
        name = self.choice.choice(sorted(self.workers))
        process = self.workers.pop(name)
        process.kill()
        process.wait()
        self.killed.add(name)
        self.workers |= [self.worker()]

    def kill_owner(self) -> None:
        number = self.choice.randrange(len(self.owners))
        self.owners[number].kill()
        self.owners[number].wait()
        self.owners[number] = self.owner()

    def freeze_owner(self) -> None:
        owner = self.choice.choice(self.owners)
        owner.send_signal(signal.SIGSTOP)
        time.sleep(LEASE + 1)
        owner.send_signal(signal.SIGCONT)

    def kill_broker(self) -> None:
        self.broker.kill()
        time.sleep(self.choice.uniform(0.2, 3))
        self.broker.start()

    def stop_database(self) -> None:
        self.postgres.stop()
        time.sleep(self.choice.uniform(0.2, 3))
        self.postgres.start()

    def end(self) -> None:
        for process in (*self.owners, *self.workers.values()):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


@contextmanager
def cluster_of(folder: Path, postgres: PostgresServer, choice: random.Random) -> Iterator[Cluster]:
    (folder / "notes").mkdir()
    broker = Broker(folder / "store").start()
    cluster = Cluster(folder, broker, postgres, choice)
    try:
        yield cluster
    finally:
        cluster.end()
        cluster.broker.kill()


@pytest.mark.slow
@pytest.mark.timeout(int(SECONDS + GRACE) + 120)
@pytest.mark.requirement("X-6")
def test_no_step_is_lost_or_done_twice_and_no_fence_is_passed_while_all_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_server: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    new_project(monkeypatch, postgres_server.url)
    stores, journal = open_journal("test")
    plans = [f"plan-{number:05}" for number in range(int(SECONDS / 1.5) + 1)]
    journal.propose(plans[0], "s", PLAN)
    with journal.hold(plans[0]), stores.open("journal", (), beside=True) as database:
        for statement in HISTORY:
            database.execute(statement)
    for plan in plans[1:]:
        journal.propose(plan, "s", PLAN)
    choice, faults = random.Random(SEED), Counter[str]()
    with cluster_of(tmp_path, postgres_server, choice) as cluster:
        kinds: tuple[Callable[[], None], ...] = (
            cluster.kill_worker, cluster.kill_owner, cluster.freeze_owner, cluster.kill_broker, cluster.stop_database,
        )  # fmt: skip
        began = time.monotonic()
        while time.monotonic() - began < SECONDS and any(owner.poll() is None for owner in cluster.owners):
            time.sleep(choice.uniform(1, 5))
            fault = choice.choice(kinds)
            fault()
            faults[fault.__name__] += 1
        for owner in cluster.owners:
            owner.wait(GRACE)
        killed = cluster.killed
    with capsys.disabled():
        print(f"\n{len(plans)} plans in {time.monotonic() - began:.0f} s, seed {SEED}, faults: {dict(faults)}")
    for run in journal.listed():
        done = Counter(record.step for record in run.records if record.report and record.report.state == "success")
        assert (run.state, done) == ("done", dict.fromkeys(STEPS, 1)), run
        for step in STEPS:
            check_notes((tmp_path / "notes" / f"{run.token}-{step}").read_text().splitlines(), killed)
    with stores.open("journal", (), beside=True) as database:
        rows = database.execute("SELECT token, fence, owner, writer FROM history ORDER BY n").fetchall()
        (writes,) = database.execute("SELECT count(*) + count(report) FROM steps").fetchone() or (0,)
    assert len(rows) == writes >= len(plans) * 2 * len(STEPS)
    newest: dict[str, int] = {}
    for token, fence, holder, writer in rows:
        assert fence >= newest.get(token, 1) and writer == f"pid-{holder.split()[1]}", (token, fence, holder, writer)
        newest[token] = fence
    assert sum(faults.values()) >= SECONDS / 12


def check_notes(lines: list[str], killed: set[str]) -> None:
    """A step is never done by two workers at once, and a second time only if the first one was killed before it had
    reported: an order is done at least once. A killed worker notes nothing more."""
    working, ended = "", list[str]()
    for line in lines:
        name, what = line.split()
        if what == "begun":
            assert not working or working in killed, lines
            working = name
        elif what == "ended":
            ended.append(name)
        if what in {"ended", "stopped"}:
            assert working == name, lines
            working = ""
    assert ended and all(name in killed for name in ended[:-1]), lines


@pytest.mark.parametrize(
    "lines",
    [
        ["a begun", "b begun", "a ended"],
        ["a begun", "a ended", "b begun", "b ended"],
        ["a begun"],
        ["b begun", "a ended"],
    ],
)
def test_the_check_of_the_history_sees_what_is_wrong(lines: list[str]) -> None:
    with pytest.raises(AssertionError):
        check_notes(lines, killed={"c"})
    check_notes(["c begun", "a begun", "a stopped", "b begun", "b ended"], killed={"c"})
    check_notes(["c begun", "c ended", "b begun", "b ended"], killed={"c"})
