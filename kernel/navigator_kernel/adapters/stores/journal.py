"""The journal of workflow runs: what was planned, agreed to, started and finished."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.stores.sqlite import Versions, tables
from navigator_kernel.errors import Busy, Damaged, NotFound, Refused
from navigator_kernel.values.packet import Report, report_of, report_to_dict
from navigator_kernel.values.redact import Redact, same
from navigator_kernel.values.workflow import RunState, StepRecord, WorkflowPlan, WorkflowRun, plan_from, plan_to_dict

if TYPE_CHECKING:
    from navigator_kernel.adapters.stores.sessions import TurnQueue
    from navigator_kernel.ports import Clock, SharedStores, Writer

PATIENCE = 20.0  # seconds for another host to stop what it does in a run
VERSIONS: Versions = (
    (
        "CREATE TABLE IF NOT EXISTS runs (token TEXT PRIMARY KEY, session TEXT NOT NULL, state TEXT NOT NULL,"
        " plan TEXT NOT NULL, granted TEXT NOT NULL, created TEXT NOT NULL, updated TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS steps (token TEXT NOT NULL, step INTEGER NOT NULL, attempt INTEGER NOT NULL,"
        " digest TEXT NOT NULL, started TEXT NOT NULL, ended TEXT, report TEXT,"
        " PRIMARY KEY (token, step, attempt)) WITHOUT ROWID",
    ),
)
_SHOWN = "SELECT token, session, state, plan, granted, created, updated FROM runs"


class SqliteJournal(Struct, frozen=True):
    """Implements `ports.Journal` over one SQLite file, in the person's state of the project, or over a database that
    hosts share. Each entry is durable when its call returns. Secrets in a plan are not stored: whoever continues the
    run is asked for them again."""

    file: Path
    writer: Writer
    clock: Clock
    redact: Redact = same
    shared: SharedStores | None = None

    def propose(self, token: str, session: str, plan: WorkflowPlan, granted: Sequence[str] = ()) -> None:
        now, stored = self.clock.now(), self._plan(plan)
        covered = json.dumps(list(granted), ensure_ascii=False)
        with self._open() as database:
            database.execute(
                "INSERT INTO runs VALUES (?, ?, 'proposed', ?, ?, ?, ?)", (token, session, stored, covered, now, now)
            )

    def load(self, token: str) -> WorkflowRun:
        with self._open(reads=True) as database:
            row = database.execute(f"{_SHOWN} WHERE token = ?", (token,)).fetchone()
            steps = database.execute(
                "SELECT step, attempt, digest, started, ended, report FROM steps WHERE token = ?"
                " ORDER BY step, attempt",
                (token,),
            ).fetchall()
        if row is None:
            raise NotFound(f"no run of a workflow is called {token!r}", hint="navigator workflow list shows them")
        return _run(row, steps)

    def listed(self) -> list[WorkflowRun]:
        with self._open(reads=True) as database:
            rows = database.execute(f"{_SHOWN} ORDER BY created DESC, token DESC").fetchall()
            steps = database.execute(
                "SELECT token, step, attempt, digest, started, ended, report FROM steps"
            ).fetchall()
        mine: dict[str, list[Sequence[Any]]] = {}
        for token, *rest in sorted(steps, key=lambda row: row[:3]):
            mine.setdefault(token, []).append(rest)
        return [_run(row, mine.get(row[0], [])) for row in rows]

    def mark(self, token: str, state: RunState, granted: Sequence[str] = (), plan: WorkflowPlan | None = None) -> None:
        with self._open(token) as database:
            row = database.execute("SELECT granted FROM runs WHERE token = ?", (token,)).fetchone()
            known = dict.fromkeys([*json.loads(row[0] if row else "[]"), *granted])
            database.execute(
                "UPDATE runs SET state = ?, granted = ?, updated = ? WHERE token = ?",
                (state, json.dumps(list(known), ensure_ascii=False), self.clock.now(), token),
            )
            if plan is not None:
                stored = self._plan(plan)
                database.execute("UPDATE runs SET plan = ? WHERE token = ?", (stored, token))

    def begin(self, token: str, step: int, attempt: int, digest: str) -> None:
        with self._open(token) as database:
            database.execute(
                "INSERT INTO steps (token, step, attempt, digest, started) VALUES (?, ?, ?, ?, ?)",
                (token, step, attempt, digest, self.clock.now()),
            )

    def end(self, token: str, step: int, attempt: int, report: Report) -> None:
        whole = report_to_dict(report)  # `progress` is JSON text from which the secrets were removed before
        stored = json.dumps({**self.redact(whole), "progress": whole["progress"]}, ensure_ascii=False, default=str)
        with self._open(token) as database:
            database.execute(
                "UPDATE steps SET ended = ?, report = ? WHERE token = ? AND step = ? AND attempt = ?",
                (self.clock.now(), stored, token, step, attempt),
            )

    @contextmanager
    def hold(self, token: str) -> Iterator[None]:
        """Locks the run, whose entries only the holder writes. The lock ends with its process, so that a run whose
        process was killed can be continued at once; where hosts share the journal, a moment later."""
        folder = self.file.parent / "workflows"
        if self.shared is None:
            self.writer.make_folder(folder)
        try:
            with self.shared.claim(_claim(token)) if self.shared else file_lock(folder / f"{token}.lock", timeout=0.2):
                yield
        except Busy as error:
            raise Busy(f"workflow run {token!r} is under way elsewhere", hint="wait for it, then try again") from error

    def abort(self, token: str, queue: TurnQueue) -> None:
        """Ends the run; the effects of its steps stay. Where hosts share the journal, the one that carries it out is
        asked to stop first. Refused if it has ended."""
        session, end, is_asked = self.load(token).session, monotonic() + PATIENCE, False
        while True:
            try:
                with self.hold(token):
                    if (state := self.load(token).state) in {"done", "aborted"}:
                        raise Refused(f"workflow run {token!r} has ended: {state}", hint="nothing to abort")
                    self.mark(token, "aborted")
                    return
            except Busy:
                is_asked = is_asked or queue.stop(session, _claim(token))
                if not is_asked or monotonic() > end:
                    raise
                sleep(0.2)

    def _plan(self, plan: WorkflowPlan) -> str:
        return json.dumps(self.redact(plan_to_dict(plan)), ensure_ascii=False)

    def _open(self, token: str = "", *, reads: bool = False) -> AbstractContextManager[Any]:
        claimed = _claim(token) if token else ""
        return tables(self.shared, self.file, self.writer, VERSIONS, durable=True, reads=reads, claimed=claimed)


def _claim(token: str) -> str:
    return f"run:{token}"


def _run(row: Sequence[Any], steps: Sequence[Sequence[Any]]) -> WorkflowRun:
    token, session, state, plan, granted, created, updated = row
    try:
        return WorkflowRun(
            token=token,
            session=session,
            state=state,
            plan=plan_from(json.loads(plan)),
            created=created,
            updated=updated,
            granted=tuple(json.loads(granted)),
            records=tuple(map(_record, steps)),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"workflow run {token!r} cannot be read: {error}", hint="abort it, and run it again") from error


def _record(row: Sequence[Any]) -> StepRecord:
    step, attempt, digest, started, ended, report = row
    stored = None if report is None else report_of(json.loads(report))
    return StepRecord(step=step, attempt=attempt, digest=digest, started=started, ended=ended or "", report=stored)
