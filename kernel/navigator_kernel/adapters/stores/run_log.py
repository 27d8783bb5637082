"""The events of a run, one JSON line each: one file for each run, in `mybox/logs/runs` (EVT-7), or rows of a database
that hosts share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.errors import Damaged, KernelError, NotFound
from navigator_kernel.events import Event, RunStarted, SkillUsed, Usage, event_from
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.chat import Spent, spent_by

if TYPE_CHECKING:
    from navigator_kernel.ports import SharedStores, Writer

_RUN = lazy_compile(r"[a-z0-9-]{1,80}")
LONGEST_WORK = 1_000  # runs that one work goes over
VERSIONS = (
    ("CREATE TABLE events (run TEXT NOT NULL, seq INTEGER NOT NULL, line TEXT NOT NULL, PRIMARY KEY (run, seq))",),
)


class RunLog(Struct, frozen=True):
    """The events of one run, one JSON line each. A last line without a newline was left by a crash and is ignored."""

    folder: Path
    writer: Writer
    add: Callable[[bytes], None] | None = None  # appends to the file of one run that is open
    shared: SharedStores | None = None

    @contextmanager
    def opened(self, run: str) -> Iterator[RunLog]:
        """The log for the events of one run, whose file stays open meanwhile."""
        if self.shared is not None:
            yield self
            return
        with self.writer.appending(self._file(run)) as add:
            yield replace(self, add=add)

    def append(self, event: Event) -> None:
        line = json.dumps(event.to_dict(), ensure_ascii=False, separators=(",", ":"), default=str)
        if self.shared is not None:
            with self._rows() as database:  # of two hosts that count an event alike, the first wins
                values = (event.run, event.seq, line.encode("utf-8", errors="backslashreplace").decode())
                database.execute("INSERT INTO events VALUES (?, ?, ?) ON CONFLICT (run, seq) DO NOTHING", values)
            return
        add = self.add or partial(self.writer.append, self._file(event.run))
        add((line + "\n").encode("utf-8", errors="backslashreplace"))

    def read(self, run: str, after: int = -1) -> Sequence[Event]:
        """The events of the run behind the position `after`; NotFound if there is no such run."""
        lines = self._lines(run, after)
        if lines is None:
            raise NotFound(f"no run is called {run!r}", hint="navigator why shows the newest run")
        try:
            return [event for event in (event_from(json.loads(line)) for line in lines) if event.seq > after]
        except (ValueError, KeyError, TypeError) as error:
            raise Damaged(f"the log of run {run!r} cannot be read: {error}", hint="remove the file") from error

    def _lines(self, run: str, after: int = -1) -> Sequence[str | bytes] | None:
        """The lines of the run, in a database those behind `after`; None if there is no run of that name."""
        file = self._file(run)
        if self.shared is not None:
            with self._rows() as database:
                query = "SELECT line FROM events WHERE run = ? AND seq > ? ORDER BY seq"
                rows = database.execute(query, (run, after)).fetchall()
            return [line for (line,) in rows] if rows or after >= 0 else None
        try:
            return file.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return None

    def began(self, run: str) -> str:
        """The run in which the work of `run` began; `run` itself if no log says that it goes on with another's."""
        for _ in range(LONGEST_WORK):
            try:
                started = event_from(json.loads((self._lines(run) or [""])[0])).body
            except (KernelError, ValueError, KeyError, TypeError):
                break
            if not isinstance(started, RunStarted) or not _RUN.fullmatch(started.continues):
                break
            run = started.continues
        return run

    def runs(self) -> Sequence[str]:
        if self.shared is not None:
            with self._rows() as database:
                rows = database.execute("SELECT DISTINCT run FROM events ORDER BY run DESC").fetchall()
            return [run for (run,) in rows]
        try:
            return sorted((path.stem for path in self.folder.iterdir() if path.suffix == ".jsonl"), reverse=True)
        except FileNotFoundError:
            return []

    def _rows(self) -> AbstractContextManager[Any]:
        if self.shared is None:
            raise TypeError("the events are in files")
        return self.shared.open("events", VERSIONS, beside=True)

    def _file(self, run: str) -> Path:
        if not _RUN.fullmatch(run):
            raise NotFound(f"{run!r} is not a name of a run", hint="navigator why shows the newest run")
        return self.folder / f"{run}.jsonl"


def uses_of(log: RunLog, most: int) -> tuple[str, dict[str, list[str]]]:
    """The time of the oldest of the newest `most` runs, empty without one, and when each skill did its work in them,
    newest first. A log that cannot be read is left out."""
    uses: dict[str, list[str]] = {}
    since = ""
    for run in log.runs()[:most]:
        try:
            events = log.read(run)
        except KernelError:
            continue
        since = events[0].ts if events else since
        for event in reversed(events):
            if isinstance(event.body, SkillUsed) and event.body.state in {"success", "partial"}:
                uses.setdefault(event.body.skill, []).append(event.ts)
    return since, uses


def usage_of(log: RunLog, wanted: Callable[[str], bool], most: int) -> tuple[int, dict[str, Spent]]:
    """How many of the newest `most` runs belong to a session that is `wanted`, and what each model took in them. A log
    that cannot be read is left out."""
    models: dict[str, Spent] = {}
    count = 0
    for run in log.runs()[:most]:
        try:
            bodies = [event.body for event in log.read(run)]
        except KernelError:
            continue
        first = bodies[0] if bodies else None
        if not isinstance(first, RunStarted) or not wanted(first.session):
            continue
        count += 1
        for body in bodies:
            if isinstance(body, Usage):
                models[body.model] = models.get(body.model, Spent()) + spent_by(body)
    return count, dict(sorted(models.items()))
