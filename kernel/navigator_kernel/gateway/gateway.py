"""The objects that the endpoints of one project share."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.bootstrap.models import load_client
from navigator_kernel.bootstrap.turns import MOST
from navigator_kernel.errors import KernelError, NotFound, UsageProblem
from navigator_kernel.gateway.jobs import Jobs
from navigator_kernel.gateway.runs import Runs
from navigator_kernel.gateway.tokens import TokenStore
from navigator_kernel.gateway.tracing import open_tracing
from navigator_kernel.gateway.workers import TurnWorkers
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.http.endpoint import SESSION, Caller

if TYPE_CHECKING:
    from navigator_kernel.adapters.stores.sessions import SqliteSessions
    from navigator_kernel.bootstrap.project import Project

PING = 15.0  # seconds between two pings of an idle stream
_NAME = lazy_compile(SESSION)


class Gateway:
    """The shared state of the endpoints; created before the event loop starts, and opened in it."""

    def __init__(self, project: Project, *, most: int = MOST, ping: float = PING, publishes: bool = False) -> None:
        self.project, self.root, self.settings = project, project.root, project.settings
        self.clock, self.ids, self.log = project.clock, project.ids, project.run_log
        self.workers = TurnWorkers(project, most=most)
        self.runs = Runs(self.workers, self.log, self.ids, project.sessions.queue, open_tracing())
        self.jobs = Jobs(project, self.ids, self.clock)
        self.metrics = Metrics()
        self.tokens = open_tokens(project)
        self.session_by_run: dict[str, str] = {}  # of runs read before, so that logs of other sessions are skipped
        self.workflow_files = threading.Lock()  # makes comparing and writing a stored workflow one step
        self.is_warm = False
        self.endings: list[Callable[[], None]] = []  # called when the server ends, before a signal ends the process
        self.listed: tuple[float, Sequence[dict[str, Any]]] | None = None  # when all skills were read, and the skills
        self.site: tuple[float, Mapping[str, bytes]] | None = None  # when it was made, and its files
        self.site_guard = asyncio.Lock()  # makes comparing its time and making it again one step
        self.publishes = publishes  # without a token
        self._ping = ping

    @property
    def sessions(self) -> SqliteSessions:
        return self.project.sessions

    def warm(self) -> None:
        """Reads the skills and the index, and imports the model's client, before the first message needs them."""
        try:
            self.project.router.retrieve("which skill is meant", 1)
            if self.settings.models.default:
                asyncio.run(load_client(self.settings.models))
        except KernelError as error:
            logging.getLogger("navigator").warning("%s", error.message)
        self.is_warm = True

    def session_id(self, caller: Caller, name: str) -> str:
        """The id of the session that `caller` calls `name`: one of the terminal for an administrator, one of its own
        for another token. UsageProblem for an invalid name."""
        if not _NAME.fullmatch(name):
            raise UsageProblem(f"{name!r} is not a session name", hint="letters, digits, '.', '_' and '-', 1 to 64")
        return name if caller.may("admin") else f"{caller.id}.{name}"

    def session_name(self, caller: Caller, session: str) -> str | None:
        """The name of the session for `caller`; None if it belongs to another token."""
        if caller.may("admin"):
            return session
        own = f"{caller.id}."
        return session.removeprefix(own) if session.startswith(own) else None

    def session_of_run(self, caller: Caller, run: str) -> str:
        """The session of a run, as `caller` calls it. NotFound also for a run of another token."""
        name = self.session_name(caller, self.runs.session_of(run))
        if name is None:
            raise NotFound(f"no run is called {run!r}", hint="the list of runs shows yours")
        return name

    async def close(self, patience: float) -> None:
        """Waits `patience` seconds for active turns, then for a running install, and calls the `endings`."""
        await self.runs.close(patience)
        await self.jobs.close()
        self.runs.feeds.end()
        for ending in self.endings:
            ending()

    async def pings(self) -> None:
        """Wakes all readers at regular intervals, until it is cancelled. The file of sessions stays open in between,
        and is then closed, so that SQLite empties its log: that may have text that was deleted."""
        while True:
            with self.sessions.held():
                await asyncio.sleep(self._ping)
            self.runs.feeds.wake()


def open_tokens(project: Project) -> TokenStore:
    """The token store of the project, in the person's state."""
    file = project.state.folder / "gateway-tokens.json"
    return TokenStore(file=file, writer=project.state_writer, clock=SystemClock())


# Counts for Prometheus, in its text format.

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Metrics:
    """Counts requests by endpoint and status, and the time to the beginning of their answers."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[float] = Counter()
        self._sum = 0.0
        self._count = 0
        self._began = time.time()

    def note(self, method: str, path: str, status: int, seconds: float) -> None:
        """Counts a request. `path` is the pattern of an endpoint, so that there are few different ones."""
        self.requests[method, path, status] += 1
        self._count += 1
        self._sum += seconds
        for bound in BOUNDS:
            self._seconds[bound] += seconds <= bound

    def text(self, ended: Mapping[str, int], under_way: int) -> str:
        """The metrics as text. `ended` counts the ended runs by state, `under_way` is the number of the others."""
        requests = [
            f'{{method="{method}",path="{path}",status="{status}"}} {count}'
            for (method, path, status), count in sorted(self.requests.items())
        ]
        seconds = [f'_bucket{{le="{bound}"}} {self._seconds[bound]}' for bound in BOUNDS]
        seconds += [f'_bucket{{le="+Inf"}} {self._count}', f"_sum {self._sum:.6f}", f"_count {self._count}"]
        runs = [f'{{state="{state}"}} {count}' for state, count in sorted(ended.items())]
        lines = []
        for name, kind, text, samples in (
            ("requests_total", "counter", "Requests that were answered", requests),
            ("request_seconds", "histogram", "Time to the beginning of an answer", seconds),
            ("runs_total", "counter", "Runs that ended, by their state", runs),
            ("runs_under_way", "gauge", "Runs that have a thread or wait for one", [f" {under_way}"]),
            ("start_time_seconds", "gauge", "When the server began, in Unix time", [f" {self._began:.3f}"]),
        ):
            lines += [f"# HELP navigator_{name} {text}", f"# TYPE navigator_{name} {kind}"]
            lines += [f"navigator_{name}{sample}" for sample in samples]
        return "\n".join(lines) + "\n"
