"""Gives a job the Python packages that it declares, out of an environment that is made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from navigator_kernel.ports import Sandbox
    from navigator_kernel.values.job import Job, Outcome


class PackagedRunner(Struct, frozen=True):
    """Implements `ports.Sandbox` before another one. Whoever asks it has asked the person first; `made` is the
    environment with these requirements (SAF-3)."""

    inner: Sandbox
    made: Callable[[Sequence[str]], Path]

    async def run(self, job: Job) -> Outcome:
        """NotLoadable without uv, FetchFailed for packages that cannot be had, and what the inner one raises."""
        return await self.inner.run(await self._equipped(job) if job.packages else job)

    async def _equipped(self, job: Job) -> Job:
        import asyncio

        from navigator_kernel.adapters.environments import activated, argv_in

        place = await asyncio.to_thread(self.made, job.packages)
        env = {**job.env, **activated(place)}
        return replace(job, argv=argv_in(place, job.argv), reads=(*job.reads, place), env=env)
