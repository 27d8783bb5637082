"""The gate that every process goes through: policy, then consent, then whatever contains it (AGT-2, X-4, SAF-1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from navigator_kernel.errors import Refused
from navigator_kernel.sandbox.policy import GIVEN, refusal
from navigator_kernel.settings import Policy
from navigator_kernel.text import clean
from navigator_kernel.values.job import ASKED

if TYPE_CHECKING:
    from navigator_kernel.ports import Consents, Sandbox
    from navigator_kernel.values.job import Job, Outcome


@dataclass(frozen=True, slots=True)
class ConsentGate:
    """Implements `ports.Sandbox` before another one."""

    consents: Consents
    inner: Sandbox
    policy: Policy = field(default_factory=Policy)

    async def run(self, job: Job) -> Outcome:
        """What `check` raises, then what the inner one does."""
        self.check(job)
        return await self.inner.run(job)

    def check(self, job: Job) -> None:
        """Refused where the person's policy denies what it asks for, ConsentNeeded where nobody agreed to it."""
        denied = refusal(self.policy, job.actor, job.subject, job.wants)
        if denied is not None:
            message = f"{clean(job.subject, lines=False)!r} may not {denied.what}"
            raise Refused(message, hint=f"{denied.rule}; change that if it should", reason="policy", rule=denied.rule)
        asked = [GIVEN[want] for want in ASKED if want in job.wants]
        if asked or not job.shipped:
            what = f"run {job.subject}: {clean(' '.join(job.argv), lines=False)}"
            packages = f" ({', '.join(job.packages)})" if job.packages else ""
            self.consents.require(job.run, job.consent, "; let it ".join([what, *asked]) + packages)
