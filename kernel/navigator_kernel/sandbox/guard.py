"""The gate that every process goes through: consent first, then whatever contains it (AGT-2, X-4, SAF-1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from navigator_kernel.text import clean

if TYPE_CHECKING:
    from navigator_kernel.ports import Consents, Sandbox
    from navigator_kernel.values.job import Job, Outcome


@dataclass(frozen=True, slots=True)
class ConsentGate:
    """Implements `ports.Sandbox` before another one. Until the sandbox lands, what is not shipped needs a yes."""

    consents: Consents
    inner: Sandbox

    async def run(self, job: Job) -> Outcome:
        if not job.shipped:
            detail = f"run {job.subject}: {clean(' '.join(job.argv), lines=False)}"
            self.consents.require(job.run, subject_of(job), detail)
        return await self.inner.run(job)


def subject_of(job: Job) -> str:
    """What a consent to this job is bound to: `type_a:word-count@sha256:…`."""
    return f"{job.actor}:{job.subject}@{job.digest}"
