"""Gives a job its declared Python packages, from an environment that is made on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.values.job import NPM

if TYPE_CHECKING:
    from navigator_kernel.ports import Sandbox
    from navigator_kernel.values.job import Job, Outcome


class PackagedRunner(Struct, frozen=True):
    """Implements `ports.Sandbox` over another one. Callers must have asked the person first; `made` returns the
    environment with these requirements (SAF-3)."""

    inner: Sandbox
    made: Callable[[Sequence[str]], Path]

    async def run(self, job: Job) -> Outcome:
        """NotLoadable without uv or npm, FetchFailed for packages that cannot be fetched, and any error of `inner`."""
        return await self.inner.run(await self._equipped(job) if job.packages else job)

    async def _equipped(self, job: Job) -> Job:
        from navigator_kernel.adapters.processes.environments import activated, argv_in
        from navigator_kernel.adapters.processes.node_environments import node_activated

        node = [one for one in job.packages if one.startswith(NPM)]
        python = [one for one in job.packages if not one.startswith(NPM)]
        if python:
            place = await asyncio.to_thread(self.made, python)
            env = {**job.env, **activated(place)}
            job = replace(job, argv=argv_in(place, job.argv), reads=(*job.reads, place), env=env)
        if node:
            place = await asyncio.to_thread(self.made, node)
            env = {**job.env, **node_activated(place, job.env.get("PATH", ""))}
            job = replace(job, reads=(*job.reads, place), env=env)
        return job
