"""Sessions survive other processes, kills and damage."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.sessions import SqliteSessions, session_from, session_to_dict
from navigator_kernel.errors import Busy, Damaged, NotFound
from navigator_kernel.values.packet import Context, Packet, TaskSpec
from navigator_kernel.values.request import PendingApproval, PendingQuestion, Said, Session, Sticky
from navigator_postgres.stores import PostgresStores

WORKER = """
import sys
from msgspec.structs import replace
from pathlib import Path
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.sessions import SqliteSessions
from navigator_kernel.values.request import Said, Session
from navigator_postgres.plugin import kernel_register_stores

folder, names, turns = Path(sys.argv[1]), sys.argv[2].split(","), int(sys.argv[3])
store = SqliteSessions(folder / "sessions.sqlite", FolderWriter([folder]), SystemClock(), shared=kernel_register_stores(None))
for turn in range(1, turns + 1):
    for name in names:
        session = Session(id=name, turn=turn) if turn == 1 else replace(store.load(name), turn=turn)
        store.save(session, [Said(role="user", text=f"{name} {turn}", run="r"), Said(role="assistant", text="ok", run="r")])
        print(name, turn, flush=True)
"""


@pytest.fixture
def store(tmp_path: Path, shared: PostgresStores | None) -> SqliteSessions:
    return SqliteSessions(
        tmp_path / "state" / "sessions.sqlite", FolderWriter([tmp_path]), SystemClock(), shared=shared
    )


@pytest.fixture
def file_store(tmp_path: Path) -> SqliteSessions:
    return SqliteSessions(tmp_path / "state" / "sessions.sqlite", FolderWriter([tmp_path]), SystemClock())


def full_session() -> Session:
    spec = TaskSpec(intent="x 你好", operation="run", target="skill:x")
    packet = Packet(agent="skills", task_spec=spec, context=Context(run="r", step=0, idempotency_key="r/0"))
    return Session(
        id="s",
        turn=3,
        notice_shown=True,
        sticky=Sticky(agent="skills", target="x"),
        approval=PendingApproval(
            packets=(packet,),
            subject="a@b",
            asked_at="2026-01-31T00:00:00.000Z",
            agreed=("skill:x@sha256:0",),
            wider="right:edit:docs/@x@sha256:0",
        ),
        question=PendingQuestion(
            original="创建任务", question="?", missing=("title",), rounds=2, asked_at="2026-01-31"
        ),
        failures=1,
        private=True,
    )


@pytest.mark.parametrize("session", [full_session(), Session(id="plain")], ids=["full", "plain"])
def test_a_session_is_the_same_after_it_was_kept(session: Session) -> None:
    assert session_from(session_to_dict(session)) == session


@pytest.mark.requirement("X-43")
def test_a_session_that_does_not_say_what_was_read_counts_as_private() -> None:
    held = session_to_dict(Session(id="plain"))
    del held["private"]
    assert session_from(held).private


def test_a_session_is_loaded_as_it_was_saved(store: SqliteSessions) -> None:
    store.save(full_session(), [Said(role="user", text="创建任务 明天", run="r")])
    assert store.load("s") == full_session()
    assert [(one.role, one.text, one.run) for one in store.history("s")] == [("user", "创建任务 明天", "r")]


def test_the_last_entries_come_oldest_first(store: SqliteSessions) -> None:
    store.save(Session(id="s", turn=1), [Said(role="user", text=str(n), run="r") for n in range(5)])
    assert [one.text for one in store.history("s", last=2)] == ["3", "4"]


def test_a_turn_that_was_taken_elsewhere_is_busy_and_changes_nothing(store: SqliteSessions) -> None:
    store.save(Session(id="s", turn=1), [Said(role="user", text="first", run="r")])
    with pytest.raises(Busy):
        store.save(Session(id="s", turn=1, failures=9), [Said(role="user", text="second", run="r")])
    assert store.load("s").failures == 0
    assert [one.text for one in store.history("s")] == ["first"]


def test_an_unknown_session_is_not_found(store: SqliteSessions) -> None:
    with pytest.raises(NotFound):
        store.load("nobody")
    with pytest.raises(NotFound):
        store.delete("nobody")


def test_deleting_takes_the_history_too(store: SqliteSessions) -> None:
    store.save(Session(id="s", turn=1), [Said(role="user", text="x", run="r")])
    store.delete("s")
    assert store.listed() == []
    assert store.history("s") == []


def test_the_session_list_shows_what_is_asked_last(store: SqliteSessions) -> None:
    store.save(full_session())
    store.save(Session(id="free", turn=1))
    assert {one["id"]: one["waiting"] for one in store.listed()} == {"s": "question", "free": ""}


def test_a_file_that_is_not_a_database_is_reported_as_damaged_and_left_untouched(file_store: SqliteSessions) -> None:
    file_store.file.parent.mkdir(parents=True)
    file_store.file.write_bytes(b"not a database" * 100)
    with pytest.raises(Damaged):
        file_store.load("s")
    assert file_store.file.read_bytes() == b"not a database" * 100


@pytest.mark.parametrize(("many", "turns"), [(16, 10), pytest.param(100, 50, marks=pytest.mark.wide)])
def test_many_sessions_by_8_processes_lose_nothing(store: SqliteSessions, many: int, turns: int) -> None:
    names = [f"s{number:03d}" for number in range(many)]
    shares = [",".join(names[at::8]) for at in range(8)]
    folder = store.file.parent
    folder.mkdir(parents=True)
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(folder), share, str(turns)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for share in shares
    ]
    complaints = [run.communicate()[1] for run in runs]
    assert [run.returncode for run in runs] == [0] * 8, complaints
    assert {one["id"]: one["turns"] for one in store.listed()} == dict.fromkeys(names, turns)
    assert [one.text for one in store.history("s012")][::2] == [f"s012 {turn}" for turn in range(1, turns + 1)]


@pytest.mark.wide
def test_saved_turns_survive_a_kill(store: SqliteSessions) -> None:
    folder = store.file.parent
    folder.mkdir(parents=True)
    for round_ in range(5):
        name = f"k{round_}"
        run = subprocess.Popen([sys.executable, "-c", WORKER, str(folder), name, "5000"], stdout=subprocess.PIPE)
        assert run.stdout is not None
        run.stdout.readline()
        time.sleep(random.Random(round_).uniform(0.01, 0.2))
        os.kill(run.pid, signal.SIGKILL)
        told = int((run.stdout.read().split(b"\n")[-2:-1] or [b"k 1"])[0].split()[1])
        run.wait()
        run.stdout.close()
        held = store.load(name).turn
        assert held >= told
        assert len(store.history(name)) == 2 * held


def test_an_open_file_keeps_its_log_until_it_is_closed(file_store: SqliteSessions) -> None:
    """A running server closes it every few seconds, so that no deleted text stays in the log (issue 49)."""
    log = file_store.file.with_name(f"{file_store.file.name}-wal")
    file_store.save(full_session())
    with file_store.held():
        file_store.delete("s")
        assert log.exists()
    assert not log.exists()


def test_a_damaged_file_is_reported_by_what_reads_it_not_by_what_keeps_it_open(file_store: SqliteSessions) -> None:
    file_store.save(full_session())
    file_store.file.write_bytes(b"no database" * 100)
    with file_store.held(), pytest.raises(Damaged):
        file_store.load("s")
