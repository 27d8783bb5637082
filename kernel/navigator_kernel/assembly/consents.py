"""Opens the record of what the person agreed to."""

from __future__ import annotations

from functools import partial

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files import make_private
from navigator_kernel.adapters.project_state import PrivateWriter
from navigator_kernel.ports import Audit, Unrecorded
from navigator_kernel.sandbox.consents import ConsentBook
from navigator_kernel.settings import user_state


def open_consents(audit: Audit | None = None) -> ConsentBook:
    """Kept outside every project, so that none can bring its own."""
    folder = user_state()
    writer = PrivateWriter(folder, partial(make_private, folder))
    return ConsentBook(folder / "trust.json", writer, SystemClock(), audit or Unrecorded())
