"""An owner in a process of its own that carries out plans of the shared journal until all are done:
`python -m dispatch.soak_owner URL SEED`. It may be killed, frozen or cut off at any time."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

from dispatch.nats_parts import owner, settings
from dispatch.orders import order
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.journal import SqliteJournal
from navigator_kernel.errors import KernelError
from navigator_nats.dispatcher import NatsDispatcher
from navigator_postgres.plugin import LEASE_SECONDS, PROJECT_ID, URL
from navigator_postgres.stores import PostgresStores

STEPS = (1, 2, 3)


def open_journal(name: str) -> tuple[PostgresStores, SqliteJournal]:
    """The journal of the project in the environment; the database knows its connections by `name`."""
    stores = PostgresStores(
        f"{os.environ[URL]}?application_name={name}", os.environ[PROJECT_ID], os.environ[LEASE_SECONDS]
    )
    return stores, SqliteJournal(Path("journal"), FolderWriter([]), SystemClock(), shared=stores)


async def carry_out(journal: SqliteJournal, sender: NatsDispatcher, token: str) -> None:
    """Carries out the plan from the first step that has not succeeded; a step that fails ends it for now."""
    with journal.hold(token):
        records = journal.load(token).records
        for step in STEPS:
            mine = [record for record in records if record.step == step]
            if any(record.report is not None and record.report.state == "success" for record in mine):
                continue
            packet = order(run=f"{token}-{step}", step=step, key=f"{token}/{step}", request="sleep 0.3", timeout=30)
            journal.begin(token, step, len(mine) + 1, "digest")
            report = await sender.result(str(await sender.submit(packet)))
            journal.end(token, step, len(mine) + 1, report)
            if report.state != "success":
                return
        journal.mark(token, "done")


async def main(url: str, seed: str) -> None:
    _, journal = open_journal(f"pid-{os.getpid()}")
    sender, choice = owner(settings(url)), random.Random(seed)
    while True:
        try:
            left = [run.token for run in journal.listed() if run.state != "done"]
            if not left:
                break
            await carry_out(journal, sender, choice.choice(left[-20:]))
        except KernelError:  # another one has the plan, or something is away
            await asyncio.sleep(0.2)
    await sender.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
