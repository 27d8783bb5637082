"""The journal of workflow runs, on SQLite and on Postgres: the same entries, the same refusals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.journal import SqliteJournal
from navigator_kernel.errors import Busy, NotFound
from navigator_kernel.values.packet import Meta, Report
from navigator_kernel.values.workflow import WorkflowPlan, WorkflowStep
from navigator_postgres.stores import PostgresStores

PLAN = WorkflowPlan(
    name="plan", description="数一数 100%", steps=(WorkflowStep(text="count?", skill="c", agent="skills", input="in"),)
)
REPORT = Report(state="success", summary="counted", meta=Meta(agent="skills", time=1, ts="2026-01-31T00:00:00.000Z"))
HELD = """
import sys
from pathlib import Path
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.journal import SqliteJournal
from navigator_kernel.errors import Busy
from navigator_postgres.plugin import kernel_register_stores
folder = Path(sys.argv[1])
journal = SqliteJournal(folder / "w.sqlite", FolderWriter([folder]), SystemClock(), shared=kernel_register_stores(None))
try:
    with journal.hold("t"):
        print("held")
except Busy as error:
    print(error.message)
"""


@pytest.fixture
def journal(tmp_path: Path, shared: PostgresStores | None) -> SqliteJournal:
    return SqliteJournal(tmp_path / "w.sqlite", FolderWriter([tmp_path]), SystemClock(), shared=shared)


def held_elsewhere(folder: Path) -> str:
    """What another process says that tries to hold the run."""
    return subprocess.run([sys.executable, "-c", HELD, folder], capture_output=True, text=True, check=True).stdout


def test_a_run_is_read_as_it_was_written(journal: SqliteJournal) -> None:
    journal.propose("t", "s", PLAN, ["a"])
    with journal.hold("t"):
        journal.mark("t", "running", ["b", "a"])
        journal.begin("t", 1, 1, "sha256:0")
        journal.end("t", 1, 1, REPORT)
        journal.begin("t", 1, 2, "sha256:0")
    run = journal.load("t")
    assert (run.token, run.session, run.state, run.plan, run.granted) == ("t", "s", "running", PLAN, ("a", "b"))
    assert [(one.step, one.attempt, one.report) for one in run.records] == [(1, 1, REPORT), (1, 2, None)]
    assert journal.listed() == [run]


def test_an_unknown_run_is_not_found(journal: SqliteJournal) -> None:
    with pytest.raises(NotFound, match="no run of a workflow is called 'x'"):
        journal.load("x")


def test_a_run_is_held_by_one_process_and_free_afterwards(journal: SqliteJournal, tmp_path: Path) -> None:
    journal.propose("t", "s", PLAN)
    with journal.hold("t"):
        assert held_elsewhere(tmp_path) == "workflow run 't' is under way elsewhere\n"
        with pytest.raises(Busy), journal.hold("t"):
            pass
    assert held_elsewhere(tmp_path) == "held\n"


def test_what_is_not_finished_is_written_as_a_whole_or_not_at_all(journal: SqliteJournal) -> None:
    journal.propose("t", "s", PLAN, ["a"])
    with journal.hold("t"), pytest.raises(TypeError):
        journal.mark("t", "done", ["b"], plan=object())  # type: ignore[arg-type]  # fails after the first statement
    assert (journal.load("t").state, journal.load("t").granted) == ("proposed", ("a",))
