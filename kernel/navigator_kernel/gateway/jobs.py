"""Long work outside of runs: installs and updates, one at a time, each of which can be followed by its id."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, to_builtins

from navigator_kernel.bootstrap.lifecycle import lifecycle_of
from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.gateway.problems import problem_of

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.ports import Clock, Ids
    from navigator_kernel.skills.lifecycle import Lifecycle

KEPT = 100  # ended jobs that can still be requested


class Job(Struct, kw_only=True):
    """`state` is `waiting`, `running`, `done` or `failed`; `done` counts the skills checked so far, of `all`. `result`
    is the document of the command, `problem` the error (RFC 9457)."""

    id: str
    operation: str
    owner: str
    started: str
    state: str = "waiting"
    done: int = 0
    all: int = 0
    result: Mapping[str, Any] | None = None
    problem: Mapping[str, Any] | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Jobs:
    """Keeps jobs in memory: the next command finishes a change that a killed process left (LIF-5)."""

    def __init__(self, project: Project, ids: Ids, clock: Clock) -> None:
        self._project, self._ids, self._clock = project, ids, clock
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="navigator-job")
        self._jobs: dict[str, Job] = {}

    def start(self, owner: str, operation: str, run: Callable[[Lifecycle], Struct]) -> Job:
        """Carries out a skill command when those before it have ended."""
        job = Job(id=self._ids.new(), operation=operation, owner=owner, started=self._clock.now())
        self._jobs[job.id] = job
        for old in [one.id for one in self._jobs.values() if one.ended.is_set()][:-KEPT]:
            del self._jobs[old]
        loop = asyncio.get_running_loop()

        def progress(done: int, of: int) -> None:
            job.done, job.all = done, of

        def work() -> None:
            job.state = "running"
            try:
                lifecycle = lifecycle_of(self._project)  # its own, because of what is told of its progress
                lifecycle.deps.progress = progress
                job.result, job.state = to_builtins(run(lifecycle)), "done"
            except Exception as error:
                if not isinstance(error, KernelError):
                    logging.getLogger("navigator").error("job %s failed", job.id, exc_info=error)
                job.problem, job.state = problem_of(error).document, "failed"
            with suppress(RuntimeError):  # the loop is closed: the server has ended
                loop.call_soon_threadsafe(job.ended.set)

        self._pool.submit(work)
        return job

    def find(self, owner: str, name: str) -> Job:
        """The job called `name`; NotFound also for a job of another token."""
        job = self._jobs.get(name)
        if job is None or job.owner != owner:
            raise NotFound(f"no job is called {name!r}", hint="jobs are forgotten when the server ends")
        return job

    def all(self, owner: str) -> list[Job]:
        """The jobs of `owner`, newest first."""
        return [job for job in reversed(self._jobs.values()) if job.owner == owner]

    async def close(self) -> None:
        """Waits for the job that is under way; jobs that still wait are not started."""
        await asyncio.to_thread(partial(self._pool.shutdown, wait=True, cancel_futures=True))
