"""Opens the store of consents."""

from __future__ import annotations

from functools import partial

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import make_private
from navigator_kernel.adapters.stores.project_state import PrivateWriter
from navigator_kernel.config.settings import user_state
from navigator_kernel.ports import Audit, NullAudit
from navigator_kernel.sandbox.consents import ConsentStore


def open_consents(audit: Audit | None = None) -> ConsentStore:
    """Opens the store, which lies outside every project, so that no project can bring its own."""
    folder = user_state()
    writer = PrivateWriter(folder, partial(make_private, folder))
    return ConsentStore(folder / "trust.json", writer, SystemClock(), audit or NullAudit())
